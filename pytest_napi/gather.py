# SPDX-License-Identifier: GPL-2.0-only
"""Gathers the records of all tests; at the end makes the summary, results and exit status of them.

An object of its own among the plugins, since a report comes without the config that would lead to
the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_napi.bounds.judge import Outcome
from pytest_napi.errors import HostUnfit
from pytest_napi.report import expect, layouts
from pytest_napi.report.compare import Comparison, compare, measured
from pytest_napi.report.expect import Standing
from pytest_napi.report.record import EITHER, TestRecord, from_plain, write_results
from pytest_napi.report.table import reasons, tables
from pytest_napi.run import Run

INCONCLUSIVE_STATUS = 6
"""Exit status of a run in which nothing failed, but a verdict could not be given."""

UNFIT = "napi_unfit"
"""What a worker of pytest-xdist that cannot run guests calls the reason in its output."""

_BAD = ("invalid: ", "not a success: ")
"""How the lines of the summary begin that are shown in red."""


class Gatherer:
    """The hooks that see all tests of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._expected = dict(run.settings.expect)
        self._unbooted: list[TestRecord] = []
        """Of tests that were skipped, or failed, before they had a guest."""
        self._lost: list[str] = []
        """The node id of each failed report of a lost guest."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the record of a finished test; a worker of pytest-xdist sends its reports here."""
        for name, records in (
            ("napi_record", self._run.records),
            ("napi_unbooted", self._unbooted),
        ):
            plain = getattr(report, name, None)
            if plain is not None:
                records.append(from_plain(plain))
        if report.failed and getattr(report, "napi_outcome", "") == "lost":
            self._lost.append(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """End the run where a worker cannot run guests: pytest-xdist would wait for it for ever."""
        why = getattr(node, "workeroutput", {}).get(UNFIT)
        if why:
            raise pytest.UsageError(f"worker {node.gateway.id} ({node.gateway.spec}): {why}")

    def _all_records(self) -> list[TestRecord]:
        for record in self._run.open_records:
            record.outcome = record.outcome or "interrupted"
        return [*self._run.records, *self._run.open_records]

    def _compared(
        self, records: Sequence[TestRecord], labels: Sequence[str]
    ) -> tuple[list[Comparison], list[str]]:
        return compare(list(measured(records)), labels)

    @property
    def _labels(self) -> list[str]:
        return [kernel.label for kernel in self._run.kernels]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the results file; a run without a verdict is no success."""
        if hasattr(session.config, "workerinput") or session.config.getoption("collectonly"):
            return
        records = self._all_records()
        path = self._run.settings.results
        if path is not None:
            try:
                write_results(path, records, self._labels)
            except HostUnfit as error:
                self._run.say(str(error))
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        session.exitstatus = self._status(session, records)

    def _status(self, session: pytest.Session, records: Sequence[TestRecord]) -> int:
        """Return the exit status: pytest's own, unless it would hide what the records say."""
        status = session.exitstatus
        judgement = expect.judge([*records, *self._unbooted], self._expected)
        undecided = any(
            record.outcome == Outcome.INCONCLUSIVE
            for record in records
            if record.expected != EITHER or not record.results
        )
        if status == pytest.ExitCode.TESTS_FAILED and judgement.standing is Standing.UNDECIDED:
            # Where an expectation is held against it, a lost guest says as little as a busy host.
            lost = len(self._lost) == session.testsfailed and judgement.undecided >= {*self._lost}
            return INCONCLUSIVE_STATUS if lost else status
        if status != pytest.ExitCode.OK:
            return status
        if judgement.standing is Standing.CONTRADICTED:
            return pytest.ExitCode.TESTS_FAILED
        if undecided or judgement.standing is Standing.UNDECIDED:
            return INCONCLUSIVE_STATUS
        return pytest.ExitCode.TESTS_FAILED if self._invalid(records) else status

    def _invalid(self, records: Sequence[TestRecord]) -> bool:
        """Whether kernels cannot be compared that count: with expectations, the mentioned ones."""
        labels = [x for x in self._labels if not self._expected or x in self._expected]
        return any(comparison.invalid for comparison in self._compared(records, labels)[0])

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the tables of what was measured, the unfinished included, and the comparisons."""
        records = self._all_records()
        comparisons, absent = self._compared(records, self._labels)
        blocks = [[*tables(records), *reasons(records)], *map(layouts.terminal, comparisons)]
        blocks += [absent, self._verdicts(terminalreporter.config, records)]
        lines = [line for block in blocks if block for line in ("", *block)][1:]
        if lines:
            terminalreporter.write_sep("=", "napi")  # section() leaves an empty line below
            for line in lines:
                terminalreporter.write_line(line, red=line.startswith(_BAD))

    def _verdicts(self, config: pytest.Config, records: Sequence[TestRecord]) -> list[str]:
        if config.getoption("collectonly"):
            return []
        lines = [*expect.judge([*records, *self._unbooted], self._expected).lines]
        if self._invalid(records):
            lines.append("not a success: the figures of the kernels cannot be compared")
        return lines

# SPDX-License-Identifier: GPL-2.0-only
"""The pytest hooks: each calls one room below."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from pytest_napi import options
from pytest_napi.bounds.judge import Outcome
from pytest_napi.errors import (
    BoundsError,
    GuestLost,
    HostUnfit,
    ImageError,
    KernelUnusable,
    NapiError,
)
from pytest_napi.fixtures import *  # noqa: F403 - pytest looks for fixtures here
from pytest_napi.fixtures import PROGRESS, RUN, TEST, Inconclusive, test_settings
from pytest_napi.report.progress import Progress
from pytest_napi.report.record import (
    SplatRecord,
    TestRecord,
    from_plain,
    to_plain,
    write_results,
)
from pytest_napi.report.table import reasons, tables
from pytest_napi.run import GuestTest, Run

INCONCLUSIVE_STATUS = 6
"""Exit status of a run in which nothing failed, but a verdict could not be given."""

# Their message says all there is to say; a traceback would hide it.
_WITHOUT_TRACEBACK = (BoundsError, GuestLost, HostUnfit, ImageError, KernelUnusable)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini values."""
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings."""
    config.addinivalue_line("markers", options.MARKER)
    try:
        settings = options.settings(config)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    run = Run(settings, say=lambda line: _say(config, line))
    config.stash[RUN] = run
    config.pluginmanager.register(Gatherer(run), "napi-gatherer")
    config.stash[PROGRESS] = Progress(None)


def _say(config: pytest.Config, line: str) -> None:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"napi: {line}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the kernels and check the host, before anything is collected."""
    run = session.config.stash[RUN]
    session.config.stash[PROGRESS] = Progress(_live_writer(session.config))
    if run.settings.kernels:
        try:
            run.prepare()
        except NapiError as error:
            raise pytest.UsageError(_with_detail(error)) from None


def _live_writer(config: pytest.Config) -> Any:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if reporter is None or not reporter.isatty:
        return None

    def write(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write(text, flush=True)

    return write


def _with_detail(error: NapiError) -> str:
    return f"{error}\n{error.detail}" if error.detail else str(error)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name QEMU, the accelerator and the kernels."""
    run = config.stash[RUN]
    return run.header() if run.kernels else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that wants a guest on each kernel and preemption model."""
    if "napi_target" not in metafunc.fixturenames:
        return
    run = metafunc.config.stash[RUN]
    try:
        settings = test_settings(run.settings, metafunc.definition)
    except ValueError:
        return  # refused when the collection is complete: here it would be shown as a traceback
    targets = run.targets(settings.preempt)
    # The scope groups the tests by kernel; each still boots a guest of its own.
    metafunc.parametrize(
        "napi_target", targets, indirect=True, ids=[t.id for t in targets], scope="session"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to go on with a wrong marker, or without a kernel when a test wants one."""
    run = config.stash[RUN]
    wanting = [item for item in items if "napi_target" in getattr(item, "fixturenames", ())]
    for item in wanting:
        try:
            test_settings(run.settings, item)
        except ValueError as error:
            raise pytest.UsageError(f"{item.nodeid}: {error}") from None
    if wanting and not run.kernels:
        raise pytest.UsageError(
            f"no --kernel, but {wanting[0].nodeid.partition('[')[0]} boots one: "
            "give --kernel=bzImage, --kernel=FILE.deb or --kernel=debian:6.12"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test during which the kernel logged a splat, whatever the test itself found."""
    try:
        returned = yield
    except pytest.skip.Exception:  # an inconclusive figure is one
        _fail_on_splats(item)
        raise
    except (Exception, pytest.fail.Exception):
        _show_splats(item, _new_splats(item))
        raise
    _fail_on_splats(item)
    return returned


def _new_splats(item: pytest.Item) -> list[SplatRecord]:
    test = item.stash.get(TEST, None)
    return test.new_splats() if test is not None else []


def _show_splats(item: pytest.Item, splats: list[SplatRecord]) -> None:
    for splat in splats:
        item.add_report_section("call", f"kernel log: {splat.kind}", splat.excerpt)


def _fail_on_splats(item: pytest.Item) -> None:
    splats = _new_splats(item)
    _show_splats(item, splats)
    if splats:
        kinds = ", ".join(dict.fromkeys(splat.kind for splat in splats))
        pytest.fail(f"the kernel logged: {kinds}\n{splats[0].line}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell a lost guest and an inconclusive figure from failures, and attach the records."""
    report = yield
    test = item.stash.get(TEST, None)
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, _WITHOUT_TRACEBACK):
        report.longrepr = _with_detail(error)
    if test is None:
        return report
    _note_outcome(test, report, error)
    if call.when == "teardown":
        test.finish(test.record.outcome, test.record.reason)
        report.napi_record = to_plain(test.record)  # type: ignore[attr-defined]
    return report


def _note_outcome(test: GuestTest, report: pytest.TestReport, error: BaseException | None) -> None:
    outcome: str = report.outcome
    if isinstance(error, GuestLost):
        outcome = "lost"
    elif isinstance(error, Inconclusive):
        outcome = "inconclusive"
    if report.when == "call" or outcome != "passed":
        test.record.outcome = outcome
        test.record.reason = str(error) if error is not None else ""
    report.napi_outcome = outcome  # type: ignore[attr-defined]


def pytest_report_teststatus(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Count a lost guest as an error, and an inconclusive figure as what it is."""
    outcome = getattr(report, "napi_outcome", "")
    if outcome == "lost":
        return "error", "E", ("LOST", {"red": True})
    if outcome == "inconclusive":
        return "inconclusive", "I", ("INCONCLUSIVE", {"yellow": True})
    return None


class Gatherer:
    """Gathers the records of all tests, and reports them at the end.

    An object of its own, since a report comes without the config that would lead to the run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the record of a finished test; a worker of pytest-xdist sends its reports here."""
        plain = getattr(report, "napi_record", None)
        if plain is not None:
            self._run.records.append(from_plain(plain))

    def _all_records(self) -> list[TestRecord]:
        for record in self._run.open_records:
            record.outcome = record.outcome or "interrupted"
        return [*self._run.records, *self._run.open_records]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the results file; a run without a verdict is no success."""
        records = self._all_records()
        path = self._run.settings.results
        if path is not None and not hasattr(session.config, "workerinput"):
            try:
                write_results(path, records)
            except HostUnfit as error:
                self._run.say(str(error))
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        undecided = any(record.outcome == Outcome.INCONCLUSIVE for record in records)
        if undecided and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = INCONCLUSIVE_STATUS

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table of what was measured, the unfinished included."""
        records = self._all_records()
        lines = [*tables(records), *reasons(records)]
        if lines:
            terminalreporter.section("napi")
            for line in lines:
                terminalreporter.write_line(line)

# SPDX-License-Identifier: GPL-2.0-only
"""What ``--napi-expect`` makes of the records: ``before:fail,after:pass``.

A fix is shown by both halves: that the load brings the fault about on one kernel, and not on the
other.  Each is to hold for every measuring test and preemption model by itself: a fault that one
model shows says nothing of the load under another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from pytest_napi.options import FAIL, PASS
from pytest_napi.report.record import EITHER, TestRecord

_AS_EXPECTED = ": as expected"


class Standing(IntEnum):
    """How it stands with an expectation; of several the highest counts."""

    MET = 0
    UNDECIDED = 1
    """Nothing contradicts it, but something that was to be measured was not."""
    CONTRADICTED = 2


@dataclass(frozen=True)
class Finding:
    """How it stands with one expectation, of one record or more, and why."""

    standing: Standing
    text: str


@dataclass(frozen=True)
class Judgement:
    """How it stands with all expectations."""

    standing: Standing
    lines: tuple[str, ...]
    """One a kernel that does as expected; else one for each test and model in which it does not."""
    undecided: frozenset[str]
    """The node ids of the tests that ran, but decide nothing."""


def check_labels(expected: Mapping[str, str], labels: Sequence[str]) -> None:
    """Raise ValueError when an expectation is about a kernel that is not there."""
    for label in expected:
        if label not in labels:
            there = f"the kernels are {', '.join(labels)}" if labels else "there is no --kernel"
            raise ValueError(f"no kernel is labelled {label!r}: {there}")


def expected_of(record: TestRecord, expected: Mapping[str, str]) -> str:
    """Return what is expected of a test: FAIL, PASS or EITHER, or "" without expectations."""
    return expected.get(record.label, EITHER) if expected else ""


def no_reproduction(label: str) -> str:
    """Return why the pass of a kernel that was to fail is an error."""
    return (
        f"this load does not reproduce the fault on this kernel ({label}): "
        "the pass of the others proves nothing"
    )


def excuse(record: TestRecord) -> str:
    """Return why the fault that a test shows is not held against the run."""
    if record.expected == FAIL:
        return f"expected: {record.label}:{FAIL}"
    return f"not counted: no expectation of {record.label}"


def finding(record: TestRecord) -> Finding:
    """Return what a measuring test says of the expectation about its kernel."""
    label, failed = record.label, "failed"
    if record.faults:
        failed += f" ({', '.join(record.faults)})"
    if record.outcome == "passed":
        if record.expected == FAIL:
            return Finding(Standing.CONTRADICTED, f"passed: {no_reproduction(label)}")
        return Finding(Standing.MET, "passed")
    if record.outcome == "failed":
        if record.expected == PASS:
            return Finding(Standing.CONTRADICTED, f"{label} was to pass and {failed}")
        if record.shows_fault:
            return Finding(Standing.MET, failed)
        first = f": {record.reason.splitlines()[0]}" if record.reason else ""
        return Finding(
            Standing.CONTRADICTED, f"{label} failed by an error of the test, not a fault{first}"
        )
    return Finding(Standing.UNDECIDED, f"{label} was {record.outcome or 'not judged'}")


def judge(records: Sequence[TestRecord], expected: Mapping[str, str]) -> Judgement:
    """Return how it stands with the expectations, label -> FAIL or PASS.

    ``records`` include those of tests that were skipped before their guest was booted.  What no
    test of any kernel measures does not count.
    """
    measuring = {record.test for record in records if record.results}
    counting = [record for record in records if record.test in measuring]
    groups = list(dict.fromkeys((record.test, record.preemption) for record in counting))
    worst, lines = Standing.MET, []
    for label, what in expected.items():
        own = [record for record in counting if record.label == label]
        texts = []
        for test, model in groups:
            ran = [finding(r) for r in own if (r.test, r.preemption) == (test, model)]
            for one in ran or [Finding(Standing.UNDECIDED, f"{label} was not run")]:
                worst = max(worst, one.standing)
                where = f" (preempt={model}, {test})" if one.standing else ""
                texts.append((one.standing, one.text + where))
        if not texts:
            worst = max(worst, Standing.UNDECIDED)
            texts = [(Standing.UNDECIDED, "nothing was measured: an expectation about nothing")]
        unmet = [text for standing, text in texts if standing]
        met = ", ".join(dict.fromkeys(text for _, text in texts)) + _AS_EXPECTED
        lines += [f"expected {label}:{what} — {text}" for text in unmet or [met]]
    undecided = {
        record.nodeid for record in counting if finding(record).standing is Standing.UNDECIDED
    }
    return Judgement(worst, tuple(lines), frozenset(undecided))

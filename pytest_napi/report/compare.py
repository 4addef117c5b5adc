# SPDX-License-Identifier: GPL-2.0-only
"""The same measurement on several kernels, side by side, and whether that may be done at all.

"The packet rate is the control: the same work is done in both runs, so the difference is not a
lighter load" (seed: threaded NAPI poll loop).  Here the control is the frames a second of traffic
from outside, and the re-entries of a load that feeds itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_napi.report.record import GuestRecord, Result, TestRecord

TOLERANCE = 0.10
"""How far apart the rates of the loads may be, relative to the largest.  The seed's packet rates
were 0.1 % apart; a load held up by the very fault it shows may do a little less."""


@dataclass(frozen=True)
class Subject:
    """What is measured, whatever the kernel."""

    test: str
    """Node id without kernel and preemption model."""
    operation: str
    preemption: str
    """The model read back from the guest."""
    occurrence: int = 1
    """Which one it is of the test's measurements of the operation, from 1."""

    def __str__(self) -> str:
        again = f" no. {self.occurrence}" if self.occurrence > 1 else ""
        return f"{self.operation}{again}, preempt={self.preemption}, {self.test}"


@dataclass(frozen=True)
class Measured:
    """One measurement on one kernel: a column."""

    subject: Subject
    label: str
    guest: GuestRecord
    result: Result
    stalls: int
    """RCU stalls during the whole test."""

    @property
    def rate(self) -> float:
        """Frames/s of traffic, re-entries/s of another load; 0: none, or nobody measured it."""
        return self.result.load.rate if self.result.load is not None else 0.0

    @property
    def frames(self) -> float | None:
        """Frames/s a NIC received; None where the load is no traffic."""
        return self.result.load.frames_per_second if self.result.load is not None else None

    @property
    def reentries(self) -> float:
        """Re-entries/s of the load."""
        return self.result.load.reentries_per_second if self.result.load is not None else 0.0


@dataclass(frozen=True)
class Comparison:
    """One measurement on two or more kernels; the first is the base."""

    subject: Subject
    columns: tuple[Measured, ...]

    @property
    def apart(self) -> float:
        """How far apart the rates of the loads are, relative to the largest: 0 to 1."""
        rates = [column.rate for column in self.columns]
        return 1 - min(rates) / max(rates) if max(rates) else 0.0

    @property
    def invalid(self) -> str:
        """Why the figures cannot be compared; "" when they can."""
        without = [column.label for column in self.columns if not column.rate]
        if without:
            return f"invalid: no load was measured on {listed(without)}"
        if self.apart > TOLERANCE:
            return f"invalid: the loads differ by {percent(self.apart)}"
        return ""

    @property
    def rates(self) -> str:
        """The rates of the loads, in the order of the columns: ``19984/s and 20010/s``."""
        return listed([f"{column.rate:.0f}/s" for column in self.columns])

    @property
    def control(self) -> str:
        """One line: whether the loads did the same work."""
        if self.invalid:
            return f"{self.invalid}: the figures cannot be compared"
        return f"load: {self.rates}, {percent(self.apart)} apart"


def percent(share: float) -> str:
    """Return ``share`` (0 to 1) as ``0.1 %`` or ``34 %``."""
    return f"{100 * share:.{1 if share < 0.2 else 0}f} %"


def listed(words: Sequence[str]) -> str:
    """Return ``words`` as ``a, b and c``."""
    return " and ".join([*([", ".join(words[:-1])] if words[:-1] else []), *words[-1:]])


def measured(
    records: Sequence[TestRecord], renamed: Mapping[str, str] | None = None
) -> Iterator[Measured]:
    """Yield every measurement in ``records``; ``renamed`` maps labels to other ones."""
    for record in records:
        seen: dict[str, int] = {}
        for result in record.results:
            if record.guest is None:
                continue  # cannot be: only a guest is measured in
            operation = result.measurement.operation
            seen[operation] = seen.get(operation, 0) + 1
            yield Measured(
                subject=Subject(record.test, operation, record.preemption, seen[operation]),
                label=(renamed or {}).get(record.label, record.label),
                guest=record.guest,
                result=result,
                stalls=record.stalls,
            )


def compare(found: Sequence[Measured], labels: Sequence[str]) -> tuple[list[Comparison], list[str]]:
    """Compare the kernels ``labels``, the base first, wherever one subject was measured on several.

    Returns the comparisons, and a line for each that cannot be made, with the reason.  Of a subject
    measured again on the same kernel the last measurement counts.
    """
    comparisons: list[Comparison] = []
    absent: list[str] = []
    if len(labels) < 2:
        return comparisons, absent
    by_subject: dict[Subject, dict[str, Measured]] = {}
    for one in found:
        if one.label in labels:
            by_subject.setdefault(one.subject, {})[one.label] = one
    for subject, columns in by_subject.items():
        fit = [columns[x] for x in labels if x in columns and columns[x].result.complete]
        for label in labels:
            if label not in columns:
                absent.append(f"no comparison with {label}: not measured: {subject}")
            elif not columns[label].result.complete:
                absent.append(f"no comparison with {label}: cut short: {subject}")
        if len(fit) > 1 and fit[0].label == labels[0]:
            comparisons.append(Comparison(subject, tuple(fit)))
    return comparisons, absent

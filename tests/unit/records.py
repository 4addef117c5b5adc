# SPDX-License-Identifier: GPL-2.0-only
"""Makers of the records of tests that nobody ran."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_napi.measure.series import Measurement, Sample, Series
from pytest_napi.net.load import LoadWindow
from pytest_napi.report.record import GuestRecord, Result, SplatRecord, TestRecord

MS = 10**6
TEST = "test_deletion.py::test_it"
OVER = "netdev_deletion under load: max 60.3 s over its bound of 1.00 s (idle 0.050 s)"
STALL = SplatRecord("rcu_stall", "rcu: INFO: rcu_sched self-detected stall on CPU", "excerpt")


def series(*milliseconds: float, unfinished: bool = False) -> Series:
    """Return samples of these lengths; ``unfinished`` says that the last one was given up."""
    last = len(milliseconds) - 1
    return Series(
        tuple(
            Sample(i * 10**9, int(ms * MS), unfinished=unfinished and i == last)
            for i, ms in enumerate(milliseconds)
        )
    )


# 1.22 s in the mean, 60.32 s at worst, 7 of 172 over 1 s: the seed's figures.
BEFORE = series(60320, *[20000] * 6, *[177.81] * 165)
AFTER = series(160, *[99.7] * 178)


def result(
    loaded: Series = AFTER,
    rate: float | None = 20010.0,
    operation: str = "netdev_deletion",
    **fields: object,
) -> Result:
    """Return one measurement under a load of ``rate`` re-entries/s (None: without a load)."""
    load = None if rate is None else LoadWindow(10.0, rate, 8.0, 1.0, 0.0, (0,))
    idle = series(*[20] * 60)
    measurement = Measurement(operation, 1, "rtnl", 10**9, 11 * 10**9, idle, loaded)
    return Result(measurement, load=load, **fields)  # type: ignore[arg-type]


def record(
    label: str,
    *results: Result,
    model: str = "none",
    test: str = TEST,
    outcome: str = "passed",
    release: str = "6.18.41",
    **fields: object,
) -> TestRecord:
    """Return the record of a test on the kernel ``label``."""
    guest = GuestRecord(
        kernel=label,
        release=release,
        banner="#1",
        source="bzImage",
        preemption_asked=model,
        preemption=model,
        preemption_evidence="sched/preempt",
        accelerator="tcg",
        qemu="QEMU 7.2.22",
        cpus=2,
        memory_mib=512,
    )
    return TestRecord(
        f"{test}[{label}-{model}]",
        kernel=label,
        model=model,
        guest=guest,
        outcome=outcome,
        results=list(results),
        **fields,  # type: ignore[arg-type]
    )


def before(*splats: SplatRecord, rate: float | None = 19984.0, **fields: object) -> TestRecord:
    """Return the record of a kernel with the fault, as the seed measured it."""
    failed = result(BEFORE, rate, outcome="failed", message=OVER)
    given = {"outcome": "failed", "reason": OVER, **fields}
    return record("before", failed, splats=list(splats), **given)  # type: ignore[arg-type]


def after(rate: float | None = 20010.0, **fields: object) -> TestRecord:
    """Return the record of a kernel without the fault."""
    return record("after", result(AFTER, rate, outcome="passed"), **fields)  # type: ignore[arg-type]


def seed_pair() -> Sequence[TestRecord]:
    """Return the two records whose table the seed has."""
    return before(STALL, STALL), after()

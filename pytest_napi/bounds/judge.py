# SPDX-License-Identifier: GPL-2.0-only
"""Checks a measurement against its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pytest_napi.bounds.model import Bounds
from pytest_napi.measure.series import Measurement, Sample, Series
from pytest_napi.measure.units import seconds
from pytest_napi.net.load import LoadWindow


class Outcome(StrEnum):
    """What a measurement says about the kernel."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    """Nothing: the host or the load was not what the figure needs.  Neither good nor bad."""


@dataclass(frozen=True)
class Check:
    """One statistic against its bound.  Times in ns."""

    statistic: str
    value_ns: float
    bound_ns: float
    idle_ns: float
    without_host_ns: float
    """The statistic with the time taken off that the host withheld the CPU."""

    @property
    def outcome(self) -> Outcome:
        """A value over its bound is a failure unless the host alone put it there."""
        if self.value_ns <= self.bound_ns:
            return Outcome.PASSED
        if self.without_host_ns <= self.bound_ns:
            return Outcome.INCONCLUSIVE
        return Outcome.FAILED


@dataclass(frozen=True)
class Verdict:
    """The outcome of all checks of one measurement, and why."""

    outcome: Outcome
    checks: tuple[Check, ...]
    message: str


def _statistic(series: Series, name: str) -> float:
    return float(getattr(series, f"{name}_ns"))


def _without_host(series: Series) -> Series:
    def shortened(sample: Sample) -> Sample:
        left = sample.duration_ns - sample.withheld_ns
        return replace(sample, duration_ns=max(left, 0))

    return Series(tuple(map(shortened, series.samples)))


def checks(measurement: Measurement, bounds: Bounds) -> tuple[Check, ...]:
    """Return every statistic that has a bound, checked."""
    without_host = _without_host(measurement.loaded)
    done = []
    for name in ("mean", "p99", "max"):
        bound = getattr(bounds, name)
        if bound is not None:
            idle = _statistic(measurement.idle, name)
            done.append(
                Check(
                    statistic=name,
                    value_ns=_statistic(measurement.loaded, name),
                    bound_ns=max(float(bound.limit), bound.idle * idle),
                    idle_ns=idle,
                    without_host_ns=_statistic(without_host, name),
                )
            )
    return tuple(done)


def judge(
    measurement: Measurement, bounds: Bounds, load: LoadWindow | None, load_wanted: bool
) -> Verdict:
    """Return the verdict on ``measurement``.

    ``load`` is what the load did in the measurement's window; ``load_wanted`` says that there was
    to be one.  A figure over its bound fails whatever the load; one in bounds proves nothing when
    the load did not do its work.
    """
    done = checks(measurement, bounds)
    outcomes = {check.outcome for check in done}
    weak = _weakness(bounds, load) if load_wanted else None
    if Outcome.FAILED in outcomes:
        return Verdict(Outcome.FAILED, done, _failure(measurement, done, load))
    if measurement.loaded.n == 0 or measurement.idle.n == 0:
        window = "loaded" if measurement.loaded.n == 0 else "idle"
        why = f"no {measurement.operation} ended in the {window} window"
    elif Outcome.INCONCLUSIVE in outcomes:
        why = _host_failure(done)
    elif weak is not None:
        why = weak
    else:
        return Verdict(Outcome.PASSED, done, "")
    return Verdict(Outcome.INCONCLUSIVE, done, f"{measurement.operation}: {why}")


def _weakness(bounds: Bounds, load: LoadWindow | None) -> str | None:
    if load is None:
        return "the load did not run during the measurement"
    if load.frames_per_second is not None:
        return _shortfall(load.frames_per_second, load.asked_per_second)
    least = bounds.load.reentries_per_second if bounds.load is not None else 0.0
    if load.reentries_per_second < least:
        return (
            f"the load made {load.reentries_per_second:.0f} re-entries/s, at least {least:.0f} are "
            "needed for the figure to mean anything"
        )
    return None


def _shortfall(received: float, asked: float | None) -> str | None:
    """Traffic has to arrive as it was asked for (10 %), or it is another load than it is called."""
    if asked is not None and received < 0.9 * asked:
        return f"{received:.0f} frames/s arrived of the {asked:.0f} the traffic is to bring"
    return "no frame arrived" if received == 0 else None


def _host_failure(done: Sequence[Check]) -> str:
    over = ", ".join(
        f"{check.statistic} {seconds(check.value_ns)} over {seconds(check.bound_ns)}, but "
        f"{seconds(check.without_host_ns)} without the time the host withheld the CPU"
        for check in done
        if check.outcome is Outcome.INCONCLUSIVE
    )
    return f"{over}: measure again on a quieter host"


def _failure(measurement: Measurement, done: Sequence[Check], load: LoadWindow | None) -> str:
    over = "; ".join(
        f"{check.statistic} {seconds(check.value_ns)} over its bound of {seconds(check.bound_ns)}"
        f" (idle {seconds(check.idle_ns)})"
        for check in done
        if check.outcome is Outcome.FAILED
    )
    lines = [f"{measurement.operation} under load: {over}"]
    lines += _where(measurement)
    if load is not None:
        frames = load.frames_per_second
        received = f"{frames:.0f} frames/s, " if frames is not None else ""
        lines.append(
            f"the load: {received}{load.reentries_per_second:.0f} re-entries/s of "
            f"{load.mean_work:.1f} frames"
            f" each, its kthread {load.busy:.0%} of CPU"
            f" {','.join(map(str, load.cpus))}, {load.sleeps_per_second:.1f} sleeps/s"
        )
    return "\n".join(lines)


def _where(measurement: Measurement) -> list[str]:
    worst = measurement.loaded.worst
    if worst is None:
        return []
    lines = []
    if worst.unfinished:
        lines.append(f"the longest had not ended after {seconds(worst.duration_ns)}")
    elif worst.longest_phase is not None:
        lines.append(
            f"the longest waited in {worst.longest_phase}: "
            f"{seconds(worst.phases[worst.longest_phase])} of {seconds(worst.duration_ns)}"
        )
    totals = measurement.loaded.phase_totals()
    if totals:
        lines.append("all: " + ", ".join(f"{name} {seconds(ns)}" for name, ns in totals.items()))
    elif measurement.phases_absent is not None:
        lines.append(f"no phases: {measurement.phases_absent}")
    return lines

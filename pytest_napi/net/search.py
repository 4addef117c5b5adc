# SPDX-License-Identifier: GPL-2.0-only
"""Looks for the load that keeps a NAPI kthread on its CPU.

Which rate and burst does it depends on the driver: polls have to complete below their budget, and
to find new work before the kthread sleeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_napi.net.load import Tick
from pytest_napi.net.watch import NicTick

RATES = (5_000, 10_000, 20_000, 40_000)
"""Frames a second: around what emulated NICs take under TCG."""

BURSTS = (4, 16, 48)
"""Frames at once, all below a NIC's budget of 64."""

VETH_FRAMES = (4, 8, 12, 32)
"""Frames in flight on a veth pair: on both sides of the 16 from which polls reach their budget."""

VETH_RATES = (20_000, 80_000)
"""Re-entries a second."""

POINT_SECONDS = 2.0

_KEPT_UP = 0.7
"""A guest that takes less of what it is offered takes no more of a higher rate."""


@dataclass(frozen=True)
class Point:
    """One load that was tried, and what the polling was like."""

    pps: float | None
    """Frames a second that were asked for (on a veth pair: re-entries); None: a flood."""
    burst: int
    """Frames at once."""
    received_per_second: float
    mean_work: float
    """Frames a poll."""
    below_budget: float
    """Share of the polls that did not use up their budget, 0 to 1."""
    reentries_per_second: float
    """Polls that did work, less than their budget, after which the kthread did not sleep."""
    switches_per_second: float
    """Of the kthread: sleeps, yields and preemptions."""
    longest_ns: int
    """The longest time without one."""

    @property
    def name(self) -> str:
        """What was tried, for people."""
        return f"{self.pps:.0f}/s in bursts of {self.burst}" if self.pps else "flood"


@dataclass(frozen=True)
class Curve:
    """All points that were tried, in their order."""

    points: tuple[Point, ...]

    @property
    def best(self) -> Point:
        """The point with the most re-entries without sleep."""
        return max(self.points, key=lambda point: point.reentries_per_second)

    @property
    def flood(self) -> Point:
        """The flood, for comparison."""
        return next(point for point in self.points if point.pps is None)

    def table(self) -> str:
        """Return the curve as a table, a row a point; the best is marked."""
        head = f"{'':<26}{'frames/s':>9}{'work/poll':>10}{'below':>7}{'re-entries/s':>13}"
        rows = [head + f"{'switches/s':>11}{'longest':>10}"]
        for point in self.points:
            mark = " <-" if point is self.best else ""
            rows.append(
                f"{point.name:<26}{point.received_per_second:>9.0f}{point.mean_work:>10.1f}"
                f"{point.below_budget:>7.0%}{point.reentries_per_second:>13.0f}"
                f"{point.switches_per_second:>11.0f}{point.longest_ns / 1e9:>8.2f} s{mark}"
            )
        return "\n".join(rows)


def point_of(pps: float | None, burst: int, ticks: Sequence[NicTick]) -> Point:
    """Return what the polling was like under traffic, by all the ticks of its life."""
    # From the first frame to the last: the ticks go on for a while on both sides.
    moving = [b for a, b in pairwise(ticks) if b.rx_packets > a.rx_packets]
    first, last = (moving[0], moving[-1]) if len(moving) > 1 else (ticks[0], ticks[-1])
    return _point(
        first,
        last,
        pps=pps,
        burst=burst,
        received=last.rx_packets - first.rx_packets,
        below=last.polls - first.polls - (last.full - first.full),
        longest_ns=last.longest_ns,
    )


def point_of_reentries(pps: float | None, burst: int, ticks: Sequence[Tick]) -> Point:
    """Return what the polling was like under the self-feeding load: ``burst`` frames in flight."""
    first, last = ticks[0], ticks[-1]
    since, longest = first, 0
    for tick in ticks:
        if _switches(tick) != _switches(since):
            since = tick
        longest = max(longest, tick.time_ns - since.time_ns)
    return _point(
        first,
        last,
        pps=pps,
        burst=burst,
        received=last.work - first.work,
        below=last.reentries - first.reentries,
        longest_ns=longest,
    )


def _switches(tick: Tick) -> int:
    return tick.voluntary + tick.nonvoluntary


def _point(
    first: Tick,
    last: Tick,
    *,
    pps: float | None,
    burst: int,
    received: int,
    below: int,
    longest_ns: int,
) -> Point:
    seconds = (last.time_ns - first.time_ns) / 1e9
    polls = last.polls - first.polls
    slept = last.voluntary - first.voluntary
    return Point(
        pps=pps,
        burst=burst,
        received_per_second=received / seconds,
        mean_work=(last.work - first.work) / polls if polls else 0.0,
        below_budget=below / polls if polls else 0.0,
        reentries_per_second=max(last.reentries - first.reentries - slept, 0) / seconds,
        switches_per_second=(_switches(last) - _switches(first)) / seconds,
        longest_ns=longest_ns,
    )


def search(
    measure: Callable[[float | None, int], Point],
    rates: Sequence[float] = RATES,
    bursts: Sequence[int] = BURSTS,
) -> Curve:
    """Measure a flood and then every burst at every rate, as far up as the guest keeps up.

    ``measure(pps, burst)`` runs one load (None: a flood) and returns its point.
    """
    points = [measure(None, 64)]
    for burst in bursts:
        for pps in sorted(rates):
            points.append(measure(pps, burst))
            if points[-1].received_per_second < _KEPT_UP * pps:
                break
    return Curve(tuple(points))

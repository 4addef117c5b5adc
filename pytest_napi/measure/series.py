# SPDX-License-Identifier: GPL-2.0-only
"""Samples of one operation, and the figures made of them.  All times are ns."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """One timed operation in the guest."""

    start_ns: int
    """When it began, on the guest's CLOCK_MONOTONIC."""
    duration_ns: int
    phases: Mapping[str, int] = field(default_factory=dict)
    """Where the time went, ns by phase; empty where the kernel cannot be probed."""
    withheld_ns: int = 0
    """How long the host withheld the CPU from the worst-served vCPU meanwhile."""
    unfinished: bool = False
    """The operation had not ended when the measurement was given up; it took at least this long."""

    @property
    def longest_phase(self) -> str | None:
        """The phase that took most of the time, or None without phases."""
        return max(self.phases, key=lambda phase: self.phases[phase], default=None)


@dataclass(frozen=True)
class Series:
    """The samples of one window, oldest first."""

    samples: tuple[Sample, ...] = ()

    @property
    def n(self) -> int:
        """How many samples there are."""
        return len(self.samples)

    @property
    def mean_ns(self) -> float:
        """Arithmetic mean, 0 without samples."""
        return statistics.fmean(s.duration_ns for s in self.samples) if self.samples else 0.0

    @property
    def p99_ns(self) -> int:
        """The 99th percentile by nearest rank: a value that occurred, the maximum below n = 100."""
        ordered = sorted(sample.duration_ns for sample in self.samples)
        return ordered[math.ceil(0.99 * len(ordered)) - 1] if ordered else 0

    @property
    def max_ns(self) -> int:
        """The longest, 0 without samples."""
        return max((sample.duration_ns for sample in self.samples), default=0)

    @property
    def worst(self) -> Sample | None:
        """The longest sample."""
        return max(self.samples, key=lambda sample: sample.duration_ns, default=None)

    def over(self, limit_ns: float) -> int:
        """Return how many samples are longer than ``limit_ns``."""
        return sum(sample.duration_ns > limit_ns for sample in self.samples)

    def phase_totals(self) -> dict[str, int]:
        """Return the time spent in each phase over all samples, longest first."""
        totals: Counter[str] = Counter()
        for sample in self.samples:
            totals.update(sample.phases)
        return dict(totals.most_common())


@dataclass(frozen=True)
class Measurement:
    """One operation measured in one guest: idle first, then under the load."""

    operation: str
    """``netdev_deletion`` or ``rcu_barrier``: also the name of its bounds."""
    cpu: int
    """The guest's CPU the operation was called on."""
    method: str
    """How the guest program reached the operation, e.g. ``rtnl``, ``kprobe``."""
    start_ns: int
    """Begin of the loaded window, on the guest's CLOCK_MONOTONIC."""
    end_ns: int
    idle: Series
    loaded: Series
    phases_absent: str | None = None
    """Why there are no phases, where there are none."""

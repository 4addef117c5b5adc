# SPDX-License-Identifier: GPL-2.0-only
"""What the public fixtures are: the calls a test makes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import pytest
from _pytest.outcomes import Skipped

from pytest_napi.bounds.judge import Outcome, Verdict
from pytest_napi.measure.series import Measurement
from pytest_napi.net import load as net_load
from pytest_napi.net.guest_traffic import GuestShape, GuestTraffic, Pktgen
from pytest_napi.net.load import LoadRate, LoadUnsupportedError, ReentryLoad
from pytest_napi.net.nic import Nic
from pytest_napi.net.search import (
    BURSTS,
    POINT_SECONDS,
    RATES,
    VETH_FRAMES,
    VETH_RATES,
    Curve,
    Point,
    point_of,
    point_of_reentries,
    search,
)
from pytest_napi.net.shapes import Flood, Paced, Shape
from pytest_napi.net.traffic import Traffic
from pytest_napi.report.progress import Progress
from pytest_napi.run import LOADED_SECONDS, GuestTest


class Inconclusive(Skipped):
    """Outcome of a test whose figure says nothing about the kernel; neither passed nor failed."""


class StartLoad(Protocol):
    """What the ``reentry_load`` fixture is."""

    def __call__(
        self,
        cpu: int = 0,
        frames: int = net_load.FRAMES,
        seconds: float = net_load.LIFE_SECONDS,
        rate: int = net_load.RATE,
    ) -> AbstractContextManager[ReentryLoad]:
        """Run the load while inside the context: ``rate`` re-entries a second, 0 for unlimited."""


class StartTraffic:
    """What the ``traffic`` fixture is."""

    def __init__(self, test: GuestTest, nics: Sequence[Nic], progress: Progress) -> None:
        self._test = test
        self._nics = nics
        self._progress = progress

    @contextmanager
    def __call__(
        self,
        shape: Shape | GuestShape,
        nic: Nic | None = None,
        *,
        flows: int = 64,
        size: int = 64,
        protocol: str = "udp4",
        cpu: int | None = None,
    ) -> Iterator[Any]:
        """Send frames to ``nic`` (default: the first) while inside the context.

        ``size`` is bytes without FCS, ``protocol`` udp4, udp6 or raw; ``cpu`` is where the NIC's
        interrupts arrive and its kthreads run (default: where the kernel puts them).  What a shape
        of the guest's own sends is in the shape, and it is polled on CPU 0 unless told otherwise.
        """
        test, nic = self._test, nic or self._nics[0]
        assert test.booted is not None
        load: Traffic | GuestTraffic
        if isinstance(shape, GuestShape):
            load = GuestTraffic(test.booted, shape, nic, cpu or 0)
        else:
            load = Traffic(
                test.booted,
                nic,
                shape,
                flows=flows,
                size=size,
                protocol=protocol,
                cpu=cpu,
                show=self._progress.show,
            )
        try:
            with load:
                test.loads.append(load)
                try:
                    yield load
                finally:
                    test.loads.remove(load)
        except LoadUnsupportedError as error:
            pytest.skip(str(error))
        finally:
            self._progress.clear()

    def search(
        self,
        nic: Nic | None = None,
        *,
        rates: Sequence[float] = RATES,
        bursts: Sequence[int] = BURSTS,
        cpu: int | None = 0,
    ) -> Curve:
        """Look for the load under which ``nic``'s kthread is re-entered most without sleeping.

        The NIC is made threaded.  Takes about a minute.
        """
        (nic or self._nics[0]).threaded = True

        def measure(pps: float | None, burst: int) -> Point:
            shape = Paced(pps, burst) if pps is not None else Flood(burst)
            with self(shape, nic, cpu=cpu) as load:
                time.sleep(POINT_SECONDS)
            return point_of(pps, burst, load.ticks)

        return search(measure, rates, bursts)

    def search_veth(
        self,
        *,
        rates: Sequence[float] = VETH_RATES,
        frames: Sequence[int] = VETH_FRAMES,
        cpu: int = 0,
    ) -> Curve:
        """Look for it on a veth pair: how many frames in flight, re-entered how often.

        The flood it is held against is pktgen's across a pair.  Takes about a minute.
        """
        booted = self._test.booted
        assert booted is not None

        def measure(pps: float | None, burst: int) -> Point:
            if pps is None:
                with self(Pktgen(pps=None, sender=booted.config.cpus - 1), cpu=cpu) as flood:
                    time.sleep(POINT_SECONDS)
                return point_of(None, burst, flood.ticks)
            with ReentryLoad(booted, cpu, burst, rate=int(pps)) as load:
                time.sleep(POINT_SECONDS)
            return point_of_reentries(pps, burst, load.rate.ticks)

        return search(measure, rates, frames)


class Measure(Protocol):
    """What the ``netdev_deletion`` and ``rcu_barrier`` fixtures are."""

    def __call__(self, cpu: int | None = None, seconds: float = LOADED_SECONDS) -> Measurement:
        """Measure for ``seconds`` on the guest's ``cpu`` (default: its last)."""


class CheckedBounds:
    """What the ``bounds`` fixture is."""

    def __init__(self, test: GuestTest) -> None:
        self._test = test

    def check(self, measurement: Measurement, control: LoadRate | None = None) -> Verdict:
        """Check ``measurement`` against its bounds; fail the test when it is over one.

        ``control`` is the load's rate.  Given, the figure counts only when the load did its work in
        the same window; otherwise the test's outcome is *inconclusive*.
        """
        verdict = self._test.check(measurement, control)
        if verdict.outcome is Outcome.FAILED:
            pytest.fail(verdict.message, pytrace=False)
        if verdict.outcome is Outcome.INCONCLUSIVE:
            raise Inconclusive(verdict.message)
        return verdict

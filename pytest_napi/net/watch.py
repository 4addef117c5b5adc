# SPDX-License-Identifier: GPL-2.0-only
"""What a device's NAPIs do while a load from elsewhere runs, by the guest program nic_watch."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from operator import attrgetter

from pytest_napi.closing import Closing, closed_on_error
from pytest_napi.errors import GuestLost
from pytest_napi.guest.boot import Booted
from pytest_napi.guest.events import EventStream
from pytest_napi.net.load import LoadRate, LoadUnsupportedError, LoadWindow, Tick
from pytest_napi.net.ticks import Ticks

LIFE_SECONDS = 300.0
"""A load that is watched ends by itself after this, should nobody end it."""

_END_SECONDS = 30.0


@dataclass(frozen=True)
class KthreadWork:
    """What one NAPI kthread did during the traffic."""

    pid: int
    comm: str
    napi_id: int
    runtime_ns: int
    voluntary: int
    """Times it went to sleep."""
    nonvoluntary: int
    """Times it was preempted, or yielded."""
    cpu: int
    longest_ns: int
    """The longest time it was on its CPU without a switch; sampled every 20 ms."""


@dataclass(frozen=True)
class NicTick(Tick):
    """A NIC's counters at one time of the guest's CLOCK_MONOTONIC, of all its NAPIs together.

    Those of the polls count from the start, those of the device (``rx_…``) from its beginning.
    ``reentries`` are the polls that did some work, but less than their budget.
    """

    full: int = 0
    """Polls that used up their budget."""
    empty: int = 0
    longest_ns: int = 0
    """The longest time one of its kthreads was on its CPU without a switch."""
    rx_packets: int = 0
    rx_dropped: int = 0
    rx_missed: int = 0
    rx_errors: int = 0
    kthreads: tuple[KthreadWork, ...] = ()


class TrafficRate(LoadRate):
    """A traffic's counters over its life so far: the control of a figure."""

    def __init__(
        self, ticks: tuple[NicTick, ...], asked: float | None, frames: str = "rx_packets"
    ) -> None:
        """``asked`` frames a second, None: any; ``frames`` is the counter that has them."""
        super().__init__(ticks)
        self._nic_ticks = ticks
        self._asked = asked
        self._frames = attrgetter(frames)

    def window(self, start_ns: int, end_ns: int) -> LoadWindow | None:
        """Return what the traffic did between two guest times; None when it was not running."""
        window = super().window(start_ns, end_ns)
        if window is None:
            return None
        inside = [tick for tick in self._nic_ticks if start_ns <= tick.time_ns <= end_ns]
        first, last = inside[0], inside[-1]
        seconds = (last.time_ns - first.time_ns) / 1e9
        frames = (self._frames(last) - self._frames(first)) / seconds if seconds else 0.0
        return replace(window, frames_per_second=frames, asked_per_second=self._asked)


class NicWatch(Closing):
    """The watch over one device: armed once it is made, which must be before the load begins.

    Arming takes grace periods, which the load could hold up.  Raises LoadUnsupportedError where the
    kernel has no histogram of polls.
    """

    def __init__(self, booted: Booted, device: str) -> None:
        argv = ["/selftests/nic_watch", "--json", "--stdin-stop", "--device", device]
        self._stream = EventStream(booted.guest, [*argv, "--seconds", str(LIFE_SECONDS)])
        with closed_on_error(self._stream):
            self._ticks = Ticks(
                self._stream,
                NicTick,
                LIFE_SECONDS,
                working=_at_work,
                unsupported=LoadUnsupportedError,
            )
            self._ticks.wait_armed()

    @property
    def ticks(self) -> list[NicTick]:
        """The counters of every 100 ms so far."""
        return self._ticks.all

    @property
    def error(self) -> BaseException | None:
        """What the watch ended of, if it was an error."""
        return self._ticks.error

    def wait_working(self) -> None:
        """Wait until the device is polled.  Raises what kept it from that."""
        self._ticks.wait_working()

    def stop(self) -> None:
        """Take the last counters, and end the watch."""
        with contextlib.suppress(OSError, GuestLost):
            self._stream.end_input()
        self._ticks.wait_ended(_END_SECONDS)

    def close(self) -> None:
        """Kill the program if it still runs."""
        self._stream.close()


def _at_work(ticks: list[NicTick]) -> bool:
    return ticks[-1].work > 0

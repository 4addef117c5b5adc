# SPDX-License-Identifier: GPL-2.0-only
"""The load that keeps a NAPI kthread busy, and the proof that it did.

A self-feeding XDP load (selftests/napi_reentry.c): frames go round a veth pair whose receiving side
is polled by a kthread.  Each poll does less than its budget and finds its ring full again, which is
the shape of load under which a threaded NAPI that does not yield holds its CPU (seed: threaded NAPI
poll loop, "the loop to be re-entered tens of thousands of times a second").
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from types import TracebackType

from pytest_napi.closing import closed_on_error
from pytest_napi.errors import GuestLost, NapiError
from pytest_napi.guest.boot import Booted
from pytest_napi.guest.events import EventStream
from pytest_napi.net.ticks import Ticks

FRAMES = 8
"""Frames in flight.  From 16 on the devmap's bulk queue flushes inside the poll, the poll reaches
its budget of 64, and the kernel yields: the load would hide the fault (DEV_MAP_BULK_SIZE)."""

RATE = 20_000
"""Re-entries a second.  Tens of thousands show the fault (seed 000), and TCG manages this many on a
slow host too (34 000 to 87 000 unpaced, on one host within hours): so the load is the same from
boot to boot, from host to host, and before and after a change."""

LIFE_SECONDS = 30.0
"""The load ends by itself after this, since who would stop it may itself be blocked by it.  Longer
than the 21 s after which the kernel reports an RCU stall (CONFIG_RCU_CPU_STALL_TIMEOUT)."""


class LoadUnsupportedError(NapiError):
    """This kernel cannot carry the load; the message is the guest program's reason."""


@dataclass(frozen=True)
class Tick:
    """The load's counters at one time of the guest's CLOCK_MONOTONIC; all count from its start."""

    time_ns: int
    polls: int
    """Calls of the kthread's poll function."""
    reentries: int
    """Polls that did some work, but less than their budget."""
    work: int
    """Frames those polls handled."""
    runtime_ns: int
    """CPU time of the kthread."""
    voluntary: int
    """Times the kthread went to sleep."""
    nonvoluntary: int
    """Times the kthread was preempted."""
    cpu: int
    """The CPU the kthread last ran on."""


@dataclass(frozen=True)
class LoadWindow:
    """What the load did within one window."""

    seconds: float
    reentries_per_second: float
    mean_work: float
    """Frames a poll."""
    busy: float
    """The kthread's share of its CPU, 0 to 1."""
    sleeps_per_second: float
    cpus: tuple[int, ...]
    """The CPUs the kthread was seen on; -1: no kthread polls, but softirq does."""
    frames_per_second: float | None = None
    """What the NIC received; None for a load that has no frames from outside."""
    asked_per_second: float | None = None
    """What its shape asked for; None: as many as there can be."""

    @property
    def rate(self) -> float:
        """What the load is held against in another run: frames a second, or else re-entries."""
        frames = self.frames_per_second
        return frames if frames is not None else self.reentries_per_second


class LoadRate:
    """The load's counters over its life so far."""

    def __init__(self, ticks: tuple[Tick, ...]) -> None:
        self.ticks = ticks

    def window(self, start_ns: int, end_ns: int) -> LoadWindow | None:
        """Return what the load did between two guest times; None when it was not running then.

        The ticks nearest outside the window bound it.
        """
        before = [tick for tick in self.ticks if tick.time_ns <= start_ns][-1:]
        inside = [tick for tick in self.ticks if start_ns < tick.time_ns < end_ns]
        after = [tick for tick in self.ticks if tick.time_ns >= end_ns][:1]
        ticks = [*before, *inside, *after]
        if len(ticks) < 2:
            return None
        first, last = ticks[0], ticks[-1]
        seconds = (last.time_ns - first.time_ns) / 1e9
        polls = last.polls - first.polls
        return LoadWindow(
            seconds=seconds,
            reentries_per_second=(last.reentries - first.reentries) / seconds,
            mean_work=(last.work - first.work) / polls if polls else 0.0,
            busy=(last.runtime_ns - first.runtime_ns) / 1e9 / seconds,
            sleeps_per_second=(last.voluntary - first.voluntary) / seconds,
            cpus=tuple(sorted({tick.cpu for tick in ticks})),
        )


class ReentryLoad:
    """The load in one guest: a context manager, running while inside.

    Entering waits until the kthread has been seen at work on its CPU.  Raises LoadUnsupportedError
    when the kernel cannot carry it, NapiError when it does not run as asked.  ``rate`` is in
    re-entries a second, 0 for as many as the CPU manages.
    """

    def __init__(
        self,
        booted: Booted,
        cpu: int = 0,
        frames: int = FRAMES,
        seconds: float = LIFE_SECONDS,
        rate: int = RATE,
    ) -> None:
        self.cpu = cpu
        self.seconds = seconds
        self._booted = booted
        self._frames = frames
        self._rate = rate

    @property
    def rate(self) -> LoadRate:
        """The counters so far."""
        return LoadRate(tuple(self._ticks.all))

    @property
    def remaining_seconds(self) -> float:
        """How long the load still lives."""
        deadline = self._ticks.ready.get("deadline_ns", 0)
        assert isinstance(deadline, int)
        return max((deadline - self._booted.guest_now_ns()) / 1e9, 0.0)

    def __enter__(self) -> ReentryLoad:
        keep_agent_off(self._booted, self.cpu)
        argv = ["/selftests/napi_reentry", "--json", "--stdin-stop"]
        argv += ["--cpu", str(self.cpu), "--frames", str(self._frames)]
        argv += ["--rate", str(self._rate)]
        self._stream = EventStream(self._booted.guest, [*argv, "--seconds", str(self.seconds)])
        self._ticks = Ticks(
            self._stream,
            Tick,
            self.seconds,
            working=self._at_work,
            unsupported=LoadUnsupportedError,
        )
        with closed_on_error(self._stream):
            self._ticks.wait_working()
        return self

    def _at_work(self, ticks: list[Tick]) -> bool:
        # Polls, not re-entries: a load whose polls use up their budget runs, and is too weak.
        return ticks[-1].polls > ticks[0].polls and ticks[-1].cpu == self.cpu

    def stop(self) -> None:
        """Stop the load and wait until it has removed its devices."""
        # A guest that is lost has no load any more; whoever needed the guest says so.
        with contextlib.suppress(OSError, GuestLost):
            self._stream.end_input()
        self._ticks.wait_ended(self.remaining_seconds + 30)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Interrupted, the guest is about to end, and the load with it.  Killing the load alone
        # would take its tracepoint out of the poll function while that is running flat out.
        if kind is None or issubclass(kind, Exception):
            self.stop()
            self._stream.close()
        if kind is None and self._ticks.error is not None:
            raise self._ticks.error


def keep_agent_off(booted: Booted, cpu: int) -> None:
    """Keep the guest's agent off the CPU a load monopolises, or nobody would answer.

    Raises NapiError when that leaves no CPU.
    """
    mask = (1 << booted.config.cpus) - 1 & ~(1 << cpu)
    if cpu >= booted.config.cpus or mask == 0:
        raise NapiError(
            f"a load on CPU {cpu} leaves none to measure on: the guest has "
            f"{booted.config.cpus}, see --napi-cpus"
        )
    booted.guest.run(["taskset", "-p", f"{mask:x}", "1"], check=True)

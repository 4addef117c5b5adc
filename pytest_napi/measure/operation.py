# SPDX-License-Identifier: GPL-2.0-only
"""Runs a guest program that times one operation again and again, and gathers its samples."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from pytest_napi.closing import Closing
from pytest_napi.errors import GuestCommandTimeout, GuestLost, NapiError
from pytest_napi.guest.boot import Booted
from pytest_napi.guest.events import Event, EventStream, number
from pytest_napi.measure.series import Sample, Series

GIVE_UP_SECONDS = 90.0
"""How much longer than its window an operation may take: three times the longest load's life."""

_ARM_SECONDS = 60.0


class OperationUnsupportedError(NapiError):
    """This kernel cannot do the operation; the message is the guest program's reason."""


class Watcher(Protocol):
    """What is told of a measurement while it goes on."""

    def __call__(self, series: Series, in_progress_ns: int) -> None:
        """Take the samples so far, and how long the present operation has taken (0: none)."""


@dataclass(frozen=True)
class Window:
    """One window of an operation's samples."""

    method: str
    start_ns: int
    end_ns: int
    series: Series
    phases_absent: str | None


class Operation(Closing):
    """A program of ``selftests/`` that times one operation, armed and waiting for its windows.

    Arming the probes that split an operation into its phases takes the kernel a grace period on
    every CPU.  Under the very load that is to be measured it may take as long as that load lives,
    so one program is armed first and then serves every window, the idle ones and the loaded.
    Raises OperationUnsupportedError, GuestLost, and NapiError when the program fails.
    """

    def __init__(self, booted: Booted, program: str) -> None:
        self._booted = booted
        self._stream = EventStream(
            booted.guest, [f"/selftests/{program}", "--json", "--stdin-start"]
        )
        try:
            self._await_armed()
        except BaseException:
            self._stream.close()
            raise

    def _await_armed(self) -> None:
        for event in self._stream.events(_ARM_SECONDS, every=1):
            if event is not None and event["event"] == "armed":
                return
        self._stream.check(unsupported=OperationUnsupportedError)

    def window(self, cpu: int, seconds: float, watch: Watcher | None = None) -> Window:
        """Time the operation on the guest's ``cpu`` for ``seconds``.

        An operation that has not ended GIVE_UP_SECONDS after that is kept as an unfinished sample,
        and the program serves no further window.
        """
        gathered = _Gathered(self._booted.withheld_ns)
        self._stream.say(f"--cpu {cpu} --seconds {seconds}")
        try:
            for event in self._stream.events(seconds + GIVE_UP_SECONDS, every=0.25):
                if event is not None:
                    gathered.take(event)
                if watch is not None:
                    watch(gathered.series, gathered.in_progress_ns(self._booted.guest_now_ns()))
                if gathered.ended:
                    return gathered.window()
        except GuestCommandTimeout:
            gathered.give_up(self._booted.guest_now_ns())
            return gathered.window()
        self._stream.check(unsupported=OperationUnsupportedError)
        raise NapiError(f"{self._stream.argv[0]} ended without a word in the guest")

    def close(self) -> None:
        """Let the program end: it removes its probes, which killing it would leave behind."""
        # A guest that is lost has no probes any more.
        with contextlib.suppress(OSError, GuestLost):
            self._stream.end_input()


class _Gathered:
    """What a program's events amount to so far."""

    def __init__(self, withheld_ns: Callable[[int, int], int]) -> None:
        self._withheld_ns = withheld_ns
        self._samples: list[Sample] = []
        self._begun_ns = 0
        self._start: Event = {}
        self._end_ns = 0

    def take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "start":
            self._start = event
        elif kind == "begin":
            self._begun_ns = number(event, "time_ns")
        elif kind == "sample":
            self._begun_ns = 0
            phases = event["phases"]
            assert isinstance(phases, dict)
            self._add(Sample(number(event, "start_ns"), number(event, "duration_ns"), phases))
        elif kind == "end":
            self._end_ns = number(event, "time_ns")

    def _add(self, sample: Sample) -> None:
        withheld = self._withheld_ns(sample.start_ns, sample.start_ns + sample.duration_ns)
        self._samples.append(replace(sample, withheld_ns=withheld))

    @property
    def ended(self) -> bool:
        return self._end_ns != 0

    def in_progress_ns(self, now_ns: int) -> int:
        return max(now_ns - self._begun_ns, 0) if self._begun_ns else 0

    def give_up(self, now_ns: int) -> None:
        self._add(Sample(self._begun_ns, self.in_progress_ns(now_ns), unfinished=True))
        self._end_ns = now_ns

    @property
    def series(self) -> Series:
        return Series(tuple(self._samples))

    def window(self) -> Window:
        absent = self._start.get("phases_absent")
        return Window(
            method=str(self._start.get("method", "")),
            start_ns=number(self._start, "time_ns"),
            end_ns=self._end_ns,
            series=self.series,
            phases_absent=None if absent is None else str(absent),
        )

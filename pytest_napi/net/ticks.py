# SPDX-License-Identifier: GPL-2.0-only
"""Follows a guest program that prints its counters while a load runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from pytest_napi.errors import NapiError
from pytest_napi.guest.events import Event, EventStream

_START_SECONDS = 30.0

T = TypeVar("T")


class Ticks(Generic[T]):
    """The ticks of one program, taken by a thread as they come.

    ``tick`` is what one is converted to; ``working`` says of all so far whether the load is seen at
    work.  ``unsupported`` is raised when the program says that this kernel cannot do it.
    """

    def __init__(
        self,
        stream: EventStream,
        tick: type[T],
        seconds: float,
        *,
        working: Callable[[list[T]], bool],
        unsupported: type[NapiError],
    ) -> None:
        self.all: list[T] = []
        self.ready: Event = {}
        """The program's first event."""
        self.error: BaseException | None = None
        self.working = False
        self._stream = stream
        self._tick = tick
        self._seconds = seconds
        self._works = working
        self._unsupported = unsupported
        self._armed = threading.Event()
        self._settled = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="napi-load", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for event in self._stream.events(self._seconds + 60, every=1):
                self._take(event or {})
            self._stream.check(unsupported=self._unsupported)
        except Exception as error:  # raised in the thread that uses the load
            self.error = error
        for state in (self._ended, self._settled, self._armed):
            state.set()

    def _take(self, event: Event) -> None:
        if event.get("event") == "ready":
            self.ready = event
            self._armed.set()
        elif event.get("event") in ("tick", "end"):
            self.all.append(msgspec.convert(event, self._tick))
            if self._works(self.all):
                self.working = True
                self._settled.set()

    def wait_armed(self) -> None:
        """Wait for the program's first event.  Raises what kept it from coming."""
        self._wait(self._armed, "its program did not start")

    def wait_working(self) -> None:
        """Wait until the load is seen at work.  Raises what kept it from that."""
        self._wait(self._settled, "it did not start")
        if not self.working:
            raise NapiError("the load ended before it was seen at work")

    def _wait(self, event: threading.Event, failure: str) -> None:
        if not event.wait(_START_SECONDS):
            raise NapiError(f"no load: {failure} within {_START_SECONDS:.0f} s")
        if self.error is not None:
            raise self.error

    def wait_ended(self, timeout: float) -> None:
        """Wait until the program has ended."""
        self._ended.wait(timeout)

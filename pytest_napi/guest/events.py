# SPDX-License-Identifier: GPL-2.0-only
"""Guest programs that tell what they do as JSON lines."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence

import msgspec

from pytest_napi.closing import Closing
from pytest_napi.errors import GuestCommandTimeout, NapiError
from pytest_napi.guest.guest import Guest
from pytest_napi.untrusted import printable

UNSUPPORTED_STATUS = 4
"""Exit status of a program that cannot do its work on this kernel (kselftest's skip)."""

Event = dict[str, object]


def number(event: Event, key: str) -> int:
    """Return an integer of ``event``.  Raises NapiError when the program left it out."""
    value = event.get(key)
    if not isinstance(value, int):
        raise NapiError(f"a guest program's event lacks {key}: {printable(str(event))[:200]}")
    return value


class EventStream(Closing):
    """One running guest program and the events it prints.

    A context manager: leaving it kills the program if it still runs.
    """

    def __init__(self, guest: Guest, argv: Sequence[str]) -> None:
        self.argv = list(argv)
        self.process = guest.start(argv, stdin=True)
        self._queue: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        self._complaint = ""
        self._thread = threading.Thread(target=self._read, name="napi-events", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        decoder = msgspec.json.Decoder(dict[str, object])
        try:
            for line in self.process.stdout:
                self._queue.put(decoder.decode(line))
            self._queue.put(None)
        except msgspec.DecodeError:
            shown = printable(line)[:200]
            self._queue.put(NapiError(f"{self.argv[0]} printed a line that is no event: {shown}"))
        except Exception as error:  # for the thread that reads the queue
            self._queue.put(error)

    def events(self, timeout: float, every: float) -> Iterator[Event | None]:
        """Yield the events until the program closes its output.

        None is yielded when ``every`` seconds passed without one.  Raises GuestCommandTimeout
        ``timeout`` seconds from now, GuestLost when the guest is lost, and NapiError for output
        that is no event.
        """
        deadline = time.monotonic() + timeout
        while True:
            if time.monotonic() > deadline:
                raise GuestCommandTimeout(self.argv, timeout)
            try:
                event = self._queue.get(timeout=every)
            except queue.Empty:
                yield None
                continue
            if event is None:
                return
            if isinstance(event, BaseException):
                raise event
            if event.get("event") in ("error", "unsupported"):
                self._complaint = printable(str(event.get("message", "")))
            yield event

    def check(self, unsupported: type[NapiError] = NapiError) -> None:
        """Wait for the program's end and raise when it was no success.

        ``unsupported`` is raised when the program said that this kernel cannot do it.
        """
        status = self.process.wait(timeout=30)
        if status == 0:
            return
        reason = self._complaint or printable(self.process.stderr.read()).strip()
        reason = reason or f"exit status {status}"
        if status == UNSUPPORTED_STATUS:
            raise unsupported(reason)
        raise NapiError(f"{self.argv[0]} failed in the guest: {reason}")

    def say(self, line: str) -> None:
        """Write a line to the program's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def end_input(self) -> None:
        """Close the program's stdin, which asks a load to end."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    def close(self) -> None:
        """Kill the program if it still runs."""
        if self.process.poll() is None:
            self.process.kill()

# SPDX-License-Identifier: GPL-2.0-only
"""The traffic generator, seen from pytest's side: a process of its own that writes frames.

Not a thread: it would share the interpreter's lock with whatever the test does.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from pytest_napi.closing import Closing
from pytest_napi.errors import NapiError
from pytest_napi.machine.tether import tethered
from pytest_napi.net.shapes import Shape, check, to_plain
from pytest_napi.untrusted import printable

_STOP_SECONDS = 5.0


class GeneratorError(NapiError):
    """The generator ended other than it should; the message says how and after how many frames."""


@dataclass(frozen=True)
class Count:
    """What the generator has done since it started."""

    time_ns: int
    """The host's CLOCK_MONOTONIC."""
    offered: int = 0
    """Frames wholly written."""
    bytes: int = 0
    """Their bytes, without FCS and framing."""
    refused: int = 0
    """Frames a tap's full queue did not take."""
    cpu_ns: int = 0
    """CPU time of the generator."""
    given_up_ns: int = 0
    """How long the schedule was put off because the guest did not take what was due."""
    reason: str = ""
    """Why it ended: ``done``, ``stopped`` or ``peer gone``; empty while it runs."""
    broken: bool = False
    """It had to leave a frame half written: no frame after it can be told from it any more."""
    error_p50_ns: int = 0
    error_p99_ns: int = 0
    error_max_ns: int = 0
    """How far the times between two bursts were off, at the end of a shape with a pace."""


class Generator(Closing):
    """A running generator, from the moment it is made.

    ``descriptor`` is the host's end of a NIC's wire: frames go out as ``framing`` says (``stream``:
    each after its length in 4 bytes, big-endian; ``dgram``: one a send).  ``seconds`` None is until
    it is stopped.  ``watch`` is told every count, and returns how many frames may have been offered
    until the next, None: any; ``ahead`` is that until the first.  Raises ValueError for a shape
    that makes no sense.
    """

    def __init__(
        self,
        descriptor: int,
        framing: str,
        frames: Sequence[bytes],
        shape: Shape,
        *,
        seconds: float | None = None,
        ahead: int | None = None,
        watch: Callable[[Count], int | None] | None = None,
    ) -> None:
        check(shape)
        self._watch = watch
        self._counts: list[Count] = []
        data = os.memfd_create("frames")
        orders = {
            "descriptor": descriptor,
            "framing": framing,
            "frames": data,
            "sizes": [len(frame) for frame in frames],
            "shape": to_plain(shape),
            "seconds": seconds,
            "ahead": ahead,
        }
        try:
            os.write(data, b"".join(frames))
            self._process = subprocess.Popen(
                tethered([sys.executable, "-m", "pytest_napi.net.sender"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(descriptor, data),
                # A Ctrl-C at the terminal is pytest's to handle.
                start_new_session=True,
            )
        finally:
            os.close(data)
        self._thread = threading.Thread(target=self._read, name="napi-generator", daemon=True)
        self._thread.start()
        assert self._process.stdin is not None
        self._tell(json.dumps(orders) + "\n")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except OSError:  # it has ended; its last words tell why
            return

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._counts.append(msgspec.json.decode(line, type=Count))
            if self._watch is not None:
                allowed = self._watch(self._counts[-1])
                if allowed is not None:
                    self._tell(f"{allowed}\n")

    @property
    def counts(self) -> tuple[Count, ...]:
        """The counts of every 100 ms so far."""
        return tuple(self._counts)

    @property
    def latest(self) -> Count:
        """The last count; all 0 before the first."""
        return self._counts[-1] if self._counts else Count(0)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def stop(self) -> Count:
        """Let it end after the frame it is at; return its last count.

        Raises GeneratorError when it has died.
        """
        self._tell("\n")
        return self.wait(_STOP_SECONDS)

    def wait(self, timeout: float | None = None) -> Count:
        """Wait until it has ended; return its last count.

        Raises GeneratorError when it died, or has not ended after ``timeout`` seconds.
        """
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.close()
            raise GeneratorError(f"the traffic generator does not end{self._after}") from None
        self._thread.join()
        if self.latest.reason:
            return self.latest
        assert self._process.stderr is not None
        said = printable(self._process.stderr.read()).strip().splitlines()
        how = signal.Signals(-status).name if status < 0 else f"status {status}"
        because = f": {said[-1]}" if said else ""
        raise GeneratorError(f"the traffic generator died ({how}){self._after}{because}")

    @property
    def _after(self) -> str:
        return f" after {self.latest.offered} frames"

    def close(self) -> None:
        """Kill it if it still runs."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was still to be written to it
                    continue


def framing_of(sock: socket.socket) -> str:
    """Return how frames are written to ``sock``."""
    return "stream" if sock.type == socket.SOCK_STREAM else "dgram"

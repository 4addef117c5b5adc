# SPDX-License-Identifier: GPL-2.0-only
"""A program in the guest: what ``subprocess.Popen`` is on the host."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Any, Final

from pytest_napi.errors import GuestCommandTimeout
from pytest_napi.guest import command, streams, wire
from pytest_napi.guest.channel import Channel
from pytest_napi.guest.wire import Exited, Failed, Flag, Frame, Kind, Spawn, StreamMask

_STDIN_FRAME: Final = 32768

# What was written before a program was killed for its timeout is in its pipes and here at once,
# unless a descendant of it holds the pipes open.
_LAST_OUTPUT_S: Final = 1.0


class GuestProcess:
    """A running program.  Like ``Popen`` with three pipes, but for what the attributes say.

    Made by ``Guest.start``.  All waits end with GuestLost when the guest is gone.
    """

    args: command.Argv
    """As given."""
    stdin: IO[Any] | None
    """Unbuffered; None if it was not asked for."""
    stdout: IO[Any]
    """Bytes, or text; read line by line it has each line as soon as the guest has written it."""
    stderr: IO[Any]
    """Empty if the program has a terminal, which has but one output."""

    def __init__(
        self,
        channel: Channel,
        args: command.Argv,
        spawn: Spawn,
        encoding: str | None = None,
        errors: str | None = None,
    ) -> None:
        self.args = args
        self._channel = channel
        self._spawn = spawn
        self._changed = threading.Condition()
        self._pid: int | None = None
        self._failed: Failed | None = None
        self._exited: Exited | None = None
        self._stuck = False
        self._credit = wire.STDIN_CREDIT
        self._input: memoryview | None = None
        self._inboxes = {mask: streams.Inbox() for mask in StreamMask}
        self._inboxes[StreamMask.STDERR].ended = bool(spawn.flags & Flag.PTY)

        payload = command.payload(spawn)
        self._encoding, self._errors = encoding, errors
        self._id = channel.register(self)
        self.stdout = self._reader(StreamMask.STDOUT)
        self.stderr = self._reader(StreamMask.STDERR)
        self.stdin = None
        if not spawn.flags & Flag.NO_STDIN:
            raw = streams.InputWriter(self._write, self._end_input)
            self.stdin = streams.writer(raw, encoding, errors)
        channel.send(Kind.SPAWN, self._id, payload)

    def __enter__(self) -> GuestProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the streams and wait."""
        self.close()
        self.wait()

    def __repr__(self) -> str:
        state = "running" if self.returncode is None else f"returncode {self.returncode}"
        return f"<GuestProcess {self.args!r}: pid {self._pid}, {state}>"

    @property
    def pid(self) -> int:
        """The process id in the guest."""
        assert self._pid is not None
        return self._pid

    @property
    def returncode(self) -> int | None:
        """Exit status, or the negated signal number; None as long as it runs.

        Up to date without a call of ``poll``.
        """
        return None if self._exited is None else self._exited.returncode

    @property
    def elapsed_ns(self) -> int | None:
        """Time from fork to end as the guest measured it; None as long as it runs."""
        return None if self._exited is None else self._exited.elapsed_ns

    @property
    def timed_out(self) -> bool:
        """Was it killed because its ``timeout`` was over?"""
        return self._exited is not None and self._exited.timed_out

    @property
    def stuck(self) -> bool:
        """Has it survived a SIGKILL for more than 2 s?  It hangs in the guest's kernel."""
        return self._stuck and self._exited is None

    def wait_started(self) -> None:
        """Wait until the program runs; OSError or ValueError if a step before that failed."""
        self._wait(lambda: self._pid is not None or self._over, None)
        self.raise_failure()

    def poll(self) -> int | None:
        """Return the returncode, None as long as it runs; GuestLost."""
        if self._exited is None:
            self._channel.raise_if_lost()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the returncode; GuestCommandTimeout, which kills nothing."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._wait(lambda: self._exited is not None, deadline):
            assert timeout is not None
            raise GuestCommandTimeout(self.args, timeout)
        assert self._exited is not None
        return self._exited.returncode

    def communicate(
        self, input: str | bytes | None = None, timeout: float | None = None
    ) -> tuple[Any, Any]:
        """Send ``input``, close stdin, and return all of stdout and stderr when it has ended.

        GuestCommandTimeout has the output so far as bytes, kills nothing and loses nothing: a
        second call, whose ``input`` is ignored, goes on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        done = self.gather(input, deadline)
        done = done and self._wait(lambda: self._exited is not None and self._ended, deadline)
        if not done:
            assert timeout is not None
            raise GuestCommandTimeout(self.args, timeout, *self.partial_output())
        return self.output()

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, not to its descendants; nothing if it has ended."""
        if not 0 <= number < signal.NSIG:
            raise ValueError(f"there is no signal {number}")
        if self.poll() is None:
            self._channel.send(Kind.SIGNAL, self._id, wire.encode_signal(number))

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def resize(self, rows: int, cols: int) -> None:
        """Tell the program's terminal its size; the program gets SIGWINCH."""
        self._channel.send(Kind.RESIZE, self._id, wire.encode_size(rows, cols))

    def close(self) -> None:
        """Close all streams: a program that writes on gets SIGPIPE."""
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                stream.close()

    # For Guest -----------------------------------------------------------------------------------

    def raise_failure(self) -> None:
        """Raise what the failed step amounts to, if one failed."""
        if self._failed is not None:
            cpus = self._channel.wait_hello(None).cpus
            raise command.failure(self._failed, self._spawn, cpus)

    def gather(self, input: str | bytes | None, deadline: float | None) -> bool:
        """Send all input and let output come without limit; False at the deadline."""
        for mask, inbox in self._inboxes.items():
            with self._changed:
                held = inbox.want_all()
            if held:
                self._channel.post(Kind.RELEASE, self._id, wire.encode_u32(mask))
        if self.stdin is None:
            return True
        if self._input is None:
            self._input = memoryview(self._encode(input))
        if not self.stdin.closed:
            try:
                while self._input:
                    if not self._wait_for_credit(deadline):
                        return False
                    self._input = self._input[self._send_input(self._input) :]
            except BrokenPipeError:
                pass  # as subprocess: a program need not read its input
            self.stdin.close()
        return True

    def wait_verdict(self, deadline: float | None) -> bool:
        """Wait for the end of a program that the agent kills at its timeout.

        False if it overran its time: killed, stuck in the kernel, or ended but for a descendant
        that still had its streams open at the deadline.
        """
        self._wait(lambda: self._over or self._stuck, None)
        if self._failed is not None:
            return True
        in_time = not (self.stuck or self.timed_out)
        if not in_time:
            deadline = time.monotonic() + (0 if self.stuck else _LAST_OUTPUT_S)
        ended = self._wait(lambda: self._ended, deadline)
        return in_time and ended

    def output(self) -> tuple[Any, Any]:
        """Return what is left of stdout and stderr, and close them; for streams that have ended."""
        stdout, stderr = self.stdout.read(), self.stderr.read()
        self.close()
        return stdout, stderr

    def partial_output(self) -> tuple[bytes, bytes]:
        """Return what has come of stdout and stderr and was not read, and keep it."""
        with self._changed:
            return (
                self._inboxes[StreamMask.STDOUT].peek(),
                self._inboxes[StreamMask.STDERR].peek(),
            )

    def abandon(self) -> None:
        """Kill the program and want to hear no more of it.  Never blocks."""
        if not self._over:
            self._channel.post(Kind.SIGNAL, self._id, wire.encode_signal(signal.SIGKILL))
        self.close()

    # State ---------------------------------------------------------------------------------------

    @property
    def _over(self) -> bool:
        return self._exited is not None or self._failed is not None

    @property
    def _ended(self) -> bool:
        return self._failed is not None or all(inbox.ended for inbox in self._inboxes.values())

    def _wait(self, done: Callable[[], bool], deadline: float | None) -> bool:
        return self._channel.wait(self._changed, done, deadline)

    def deliver(self, frame: Frame) -> None:
        """Take a frame; called by the channel."""
        with self._changed:
            match frame.kind:
                case Kind.STDOUT:
                    self._add(StreamMask.STDOUT, frame.payload)
                case Kind.STDERR:
                    self._add(StreamMask.STDERR, frame.payload)
                case Kind.CONSUMED:
                    self._credit += wire.decode_u32(frame.payload)
                case Kind.STARTED:
                    self._pid = wire.decode_u32(frame.payload)
                case Kind.EXITED:
                    self._exited = Exited.decode(frame.payload)
                case Kind.FAILED:
                    self._failed = Failed.decode(frame.payload)
                case Kind.STUCK:
                    self._pid = wire.decode_u32(frame.payload)
                    self._stuck = True
            self._changed.notify_all()
            if self._over and self._ended:
                self._channel.forget(self._id)

    def channel_lost(self) -> None:
        """Wake all waits; called by the channel."""
        with self._changed:
            self._changed.notify_all()

    def _add(self, mask: StreamMask, data: bytes) -> None:
        if self._inboxes[mask].add(data):
            self._channel.post(Kind.HOLD, self._id, wire.encode_u32(mask))

    # Streams -------------------------------------------------------------------------------------

    def _reader(self, mask: StreamMask) -> IO[Any]:
        inbox = self._inboxes[mask]

        def read(limit: int) -> bytes:
            self._wait(lambda: inbox.readable or self._failed is not None, None)
            with self._changed:
                data, release = inbox.take(limit)
            if release:
                self._channel.post(Kind.RELEASE, self._id, wire.encode_u32(mask))
            return data

        def read_all() -> bytes:
            chunks = []
            while chunk := read(wire.PAYLOAD_MAX):
                chunks.append(chunk)
            return b"".join(chunks)

        def close() -> None:
            # Without the lock: a finaliser may run this anywhere.
            inbox.closed = True
            if not inbox.ended and self._failed is None:
                self._channel.post(Kind.CLOSE, self._id, wire.encode_u32(mask))

        return streams.reader(
            streams.OutputReader(read, read_all, close), self._encoding, self._errors
        )

    def _encode(self, input: str | bytes | None) -> bytes:
        if isinstance(input, str):
            return input.encode(self._encoding or "utf-8", self._errors or "strict")
        return b"" if input is None else bytes(input)

    def _wait_for_credit(self, deadline: float | None) -> bool:
        return self._wait(lambda: self._credit > 0 or self._over, deadline)

    def _send_input(self, data: memoryview) -> int:
        """Send as much as there is credit for and return how much that was; BrokenPipeError."""
        with self._changed:
            if self._over:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            length = min(len(data), self._credit, _STDIN_FRAME)
            self._credit -= length
        self._channel.send(Kind.STDIN, self._id, bytes(data[:length]))
        return length

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._wait_for_credit(None)
            rest = rest[self._send_input(rest) :]

    def _end_input(self) -> None:
        if not self._over:
            self._channel.post(Kind.STDIN, self._id)

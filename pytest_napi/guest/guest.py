# SPDX-License-Identifier: GPL-2.0-only
"""The guest as the rest of the plugin and its users see it."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any, Final, Literal, overload

from pytest_napi.errors import GuestCommandError, GuestCommandTimeout, GuestLost
from pytest_napi.guest import command
from pytest_napi.guest.channel import Channel
from pytest_napi.guest.command import Argv, Environment, Word
from pytest_napi.guest.process import GuestProcess
from pytest_napi.guest.wire import Hello, Mode, Ping, Spawn

# For the kernel's account of a program that cannot be killed: it is worth no more than this.
_STUCK_REPORT_S: Final = 2.0


class Guest:
    """A booted guest, through the command channel.  Any number of threads may use it at once.

    Every method that waits raises GuestLost when the guest is gone.
    """

    def __init__(
        self,
        sock: socket.socket,
        lost: Callable[[str], GuestLost] = GuestLost,
        *,
        silence: float = 30.0,
    ) -> None:
        """Take over the host's end of the command channel.

        ``lost(reason)`` is called once, in a thread of the channel, when the channel ends or the
        guest sends no byte for ``silence`` seconds while somebody waits for it; it returns the
        exception with what is known of the cause.
        """
        self._channel = Channel(sock, lost, silence)

    def wait_ready(self, timeout: float | None = None) -> Hello:
        """Wait until the agent runs; GuestLost after ``timeout`` seconds."""
        return self._channel.wait_hello(timeout)

    def wake(self, timeout: float | None = None) -> Hello:
        """Take over a guest that was saved and restored: set its clock, seed its random numbers.

        Returns its greeting; GuestLost when there is none after ``timeout`` seconds.
        """
        self._channel.wake()
        return self.wait_ready(timeout)

    def close(self) -> None:
        """Hang up.  On a virtio port the guest notices and powers itself off."""
        self._channel.close()

    # Programs ------------------------------------------------------------------------------------

    @overload
    def run(
        self,
        argv: Argv,
        *,
        input: bytes | None = None,
        text: Literal[False] | None = None,
        encoding: None = None,
        errors: None = None,
        check: bool = False,
        timeout: float | None = None,
        env: Environment | None = None,
        cwd: Word | None = None,
        cpu: int | None = None,
    ) -> subprocess.CompletedProcess[bytes]: ...

    @overload
    def run(
        self,
        argv: Argv,
        *,
        input: str | None = None,
        text: bool | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        check: bool = False,
        timeout: float | None = None,
        env: Environment | None = None,
        cwd: Word | None = None,
        cpu: int | None = None,
    ) -> subprocess.CompletedProcess[str]: ...

    def run(
        self,
        argv: Argv,
        *,
        input: str | bytes | None = None,
        text: bool | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        check: bool = False,
        timeout: float | None = None,
        env: Environment | None = None,
        cwd: Word | None = None,
        cpu: int | None = None,
    ) -> subprocess.CompletedProcess[Any]:
        """Run a program to its end: ``subprocess.run`` with stdout and stderr captured.

        A lone string is a program without arguments.  Without ``input`` stdin is empty.  Text is
        UTF-8 unless ``encoding`` says otherwise.  ``env`` replaces the environment and is where
        PATH is taken from; ``cwd`` is / by default; ``cpu`` is the one CPU to run on.

        Raises what ``subprocess.run`` raises: FileNotFoundError, PermissionError and other OSError
        with the guest's path, ValueError for a CPU that is not there, GuestCommandError with
        ``check``, and GuestCommandTimeout after ``timeout`` seconds of guest time.  By then the
        program's whole process group was killed; ``detail`` has the kernel's account of a program
        that survived even that.
        """
        spawn = command.command(
            argv, env=env, cwd=cwd, cpu=cpu, timeout=timeout, stdin=input is not None, pty=None
        )
        process = self._start(argv, spawn, _encoding(text, encoding, errors), errors)
        stdout, stderr = self._complete(process, input, timeout)
        assert process.returncode is not None
        if check and process.returncode:
            raise GuestCommandError(process.returncode, argv, stdout, stderr)
        return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)

    def start(
        self,
        argv: Argv,
        *,
        stdin: bool = True,
        text: bool | None = None,
        encoding: str | None = None,
        errors: str | None = None,
        timeout: float | None = None,
        env: Environment | None = None,
        cwd: Word | None = None,
        cpu: int | None = None,
        pty: tuple[int, int] | None = None,
    ) -> GuestProcess:
        """Start a program and return when it runs: ``subprocess.Popen`` with pipes.

        ``stdin`` False connects /dev/null.  After ``timeout`` seconds its process group is killed.
        ``pty`` gives it a terminal of (rows, columns) for stdin and stdout, and no stderr.  The
        rest, and what is raised, as for :meth:`run`.
        """
        spawn = command.command(
            argv, env=env, cwd=cwd, cpu=cpu, timeout=timeout, stdin=stdin, pty=pty
        )
        process = self._start(argv, spawn, _encoding(text, encoding, errors), errors)
        try:
            process.wait_started()
        except BaseException:
            process.abandon()
            raise
        return process

    def _start(
        self, argv: Argv, spawn: Spawn, encoding: str | None = None, errors: str | None = None
    ) -> GuestProcess:
        return GuestProcess(self._channel, argv, spawn, encoding, errors)

    def _complete(
        self, process: GuestProcess, input: str | bytes | None, timeout: float | None
    ) -> tuple[Any, Any]:
        """Feed a program, wait for its end and return its output."""
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            process.gather(input, None)
            in_time = process.wait_verdict(deadline)
            process.raise_failure()
            if in_time:
                return process.output()
            assert timeout is not None
            expired = GuestCommandTimeout(process.args, timeout, *process.partial_output())
            if process.stuck:
                expired.detail = self._where_stuck(process.pid)
            raise expired
        except BaseException:
            process.abandon()
            raise

    def _where_stuck(self, pid: int) -> str:
        """Return the kernel stack of a program that SIGKILL does not end, or why there is none."""
        path = f"/proc/{pid}/stack"
        try:
            stack = self._read(path, _STUCK_REPORT_S).decode("utf-8", "replace")
        except (OSError, GuestCommandTimeout) as error:
            return f"pid {pid} survived SIGKILL; its kernel stack cannot be read: {error}"
        return f"pid {pid} survived SIGKILL; its kernel stack:\n{stack}"

    # Files ---------------------------------------------------------------------------------------

    def read_bytes(self, path: Word) -> bytes:
        """Return a file's content; OSError with the guest's path."""
        return self._read(path, None)

    def read_text(self, path: Word, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return a file's content as text; OSError with the guest's path."""
        return self.read_bytes(path).decode(encoding, errors)

    def write_bytes(self, path: Word, data: bytes, mode: int = 0o644) -> None:
        """Replace a file's content, or make the file with exactly these permissions.

        Up to 64 KiB reach the file in one write(), as files in sysfs and procfs need it.  Raises
        the OSError of the step that failed, with the guest's path.
        """
        spawn = Spawn(command.words(path), mode=Mode.WRITE, file_mode=mode)
        self._complete(self._start(path, spawn), data, None)

    def write_text(self, path: Word, text: str, mode: int = 0o644, encoding: str = "utf-8") -> None:
        """As :meth:`write_bytes`."""
        self.write_bytes(path, text.encode(encoding), mode)

    def _read(self, path: Word, timeout: float | None) -> bytes:
        spawn = Spawn(command.words(path), mode=Mode.READ, timeout_ms=command.timeout_ms(timeout))
        content, _ = self._complete(self._start(path, spawn), None, timeout)
        assert isinstance(content, bytes)
        return content

    # Clocks --------------------------------------------------------------------------------------

    def ping(self) -> Ping:
        """Measure one round trip to the agent, and look at the guest's clock."""
        return self._channel.ping()

    def clock_offset(self, pings: int = 8) -> int:
        """Return ns to add to the host's ``time.monotonic_ns`` to get the guest's CLOCK_MONOTONIC.

        From the quickest of several round trips; wrong by half of that at most.
        """
        best = min((self.ping() for _ in range(pings)), key=lambda ping: ping.round_trip_ns)
        return best.guest_ns - best.host_ns


def _encoding(text: bool | None, encoding: str | None, errors: str | None) -> str | None:
    """Return the encoding of text, None for bytes, by the rule of ``subprocess``."""
    return encoding or "utf-8" if text or encoding or errors else None

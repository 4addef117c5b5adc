# SPDX-License-Identifier: GPL-2.0-only
"""The guest's console: read from the first byte, kept whole in a file, fed to the kernel log."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pexpect
from pexpect import fdpexpect

from pytest_napi.machine.kernel_log import KernelLog
from pytest_napi.untrusted import printable


class Console:
    """Reads one console until its end in a thread of its own.

    It must be read all the time: QEMU stops the guest's serial port when nobody takes the bytes.
    """

    def __init__(
        self, sock: socket.socket, path: Path, log: KernelLog, before: Path | None = None
    ) -> None:
        """Read ``sock`` into ``path`` and ``log``, behind what a file has of ``before``."""
        self.path = path
        self.log = log
        self._socket = sock
        printed = before.read_bytes() if before is not None else b""
        path.write_bytes(printed)
        for line in printed.split(b"\n"):
            self._feed(line)
        self._thread = threading.Thread(target=self._read, name="napi-console", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._socket, self.path.open("ab") as kept:
            lines: pexpect.spawnbase.SpawnBase[bytes] = fdpexpect.fdspawn(
                self._socket, timeout=None, maxread=65536, use_poll=True
            )
            lines.logfile_read = kept
            try:
                while lines.expect_exact([b"\n", pexpect.EOF], timeout=None) == 0:
                    self._feed(lines.before)
                self._feed(lines.before)
            except ConnectionResetError:
                self._feed(lines.buffer)  # QEMU was killed

    def _feed(self, raw: object) -> None:
        if isinstance(raw, bytes) and raw:
            self.log.feed(printable(raw.rstrip(b"\r")))

    def join(self, timeout: float) -> None:
        """Wait for the console's end, at most ``timeout`` seconds."""
        self._thread.join(timeout)

    def tail(self, lines: int = 25) -> str:
        """Return the last lines, an unfinished one included, safe to print."""
        try:
            kept = self.path.read_bytes()[-65536:]
        except OSError:
            return ""
        return "\n".join(printable(kept).splitlines()[-lines:])

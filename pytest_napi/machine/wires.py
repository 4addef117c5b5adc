# SPDX-License-Identifier: GPL-2.0-only
"""The host's ends of a guest's NICs: opened before QEMU starts, gone when they are closed.

Nothing has a name in a file system or in the host's network: sockets are connected pairs, and a tap
lives in a network namespace that ends with its descriptors.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from pytest_napi.closing import Closing, closed_on_error
from pytest_napi.errors import HostUnfit
from pytest_napi.machine.nics import NicConfig

TUN = Path("/dev/net/tun")

_TAP_SECONDS = 20.0

_BUFFER = 1 << 20
"""Bytes a socket may hold (the kernel takes what net.core.wmem_max allows an unprivileged user)."""


class Wire(Closing):
    """One NIC's wire: QEMU's ends until they are handed over, and the host's."""

    def __init__(self, nic: NicConfig) -> None:
        self.nic = nic
        self.theirs: tuple[int, ...] = ()
        """QEMU's descriptors, to be closed here once QEMU has them."""
        self.ours: socket.socket | None = None
        """Where frames for the guest are written; None where no process of the host can."""
        self._counters: int | None = None
        with closed_on_error(self):
            if nic.backend in ("stream", "dgram"):
                kind = socket.SOCK_STREAM if nic.backend == "stream" else socket.SOCK_DGRAM
                self.ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
                self.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
                self.theirs = (theirs.detach(),)
            elif nic.backend == "tap":
                self.ours, self._counters, self.theirs = _open_tap(nic.queues)

    def handed_over(self) -> None:
        """Close QEMU's ends in this process."""
        for descriptor in self.theirs:
            os.close(descriptor)
        self.theirs = ()

    def dropped(self) -> int:
        """Return the frames the backend has thrown away on their way to the guest.

        Only a tap does: the sockets hold their sender up instead.
        """
        if self._counters is None:
            return 0
        # proc_pid_net(5), dev: after the name 8 columns of what was received, and 8 of what was
        # sent; a tap sends what the guest receives.  Drops are the fourth.
        rows = os.pread(self._counters, 1 << 16, 0).decode().splitlines()
        row = next(row for row in rows if row.strip().startswith("tap"))
        return int(row.partition(":")[2].split()[8 + 3])

    def close(self) -> None:
        """Close everything; a tap and its namespace are gone with it."""
        self.handed_over()
        if self.ours is not None:
            self.ours.close()
        if self._counters is not None:
            os.close(self._counters)
            self._counters = None


def _open_tap(queues: int) -> tuple[socket.socket, int, tuple[int, ...]]:
    """Open a tap of ``queues`` queues in a namespace of its own; return a packet socket on it,
    /proc/net/dev of the namespace, and the queues.

    Raises HostUnfit with the reason and what to do.
    """
    if not os.access(TUN, os.R_OK | os.W_OK):
        why = "is not there" if not TUN.exists() else "may not be opened by this user"
        raise HostUnfit(
            f"backend=tap: {TUN} {why}: run as root after modprobe tun, or use backend=stream"
        )
    own = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = [sys.executable, "-m", "pytest_napi.machine.tap", str(theirs.fileno()), str(queues)]
        try:
            done = subprocess.run(
                ["unshare", *own, "--", *child],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                pass_fds=(theirs.fileno(),),
                timeout=_TAP_SECONDS,
                check=False,
            )
            said = done.stderr.strip().splitlines()
            failure = said[-1] if said else f"status {done.returncode}" if done.returncode else None
        except (OSError, subprocess.TimeoutExpired) as error:
            failure = str(error)
        if failure is not None:
            raise HostUnfit(
                f"backend=tap: no tap in a network namespace ({failure}): run as root, or use "
                "backend=stream"
            )
        _, descriptors, _, _ = socket.recv_fds(ours, 1, queues + 2)
    packets, counters, *rest = descriptors
    return socket.socket(fileno=packets), counters, tuple(rest)


class Drain(Closing):
    """Reads what a guest sends, and throws it away: a full socket would stop the guest's queue."""

    def __init__(self, wires: tuple[Wire, ...]) -> None:
        self._selector = selectors.DefaultSelector()
        for wire in wires:
            # A packet socket on a tap is bound to no protocol and gets nothing.
            if wire.ours is not None and wire.nic.backend != "tap":
                self._selector.register(wire.ours, selectors.EVENT_READ)
        self._wakeup, self._asleep = socket.socketpair()
        self._thread = threading.Thread(target=self._read, name="napi-drain", daemon=True)
        if self._selector.get_map():
            self._selector.register(self._asleep, selectors.EVENT_READ)
            self._thread.start()

    def _read(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._asleep:
                    return
                assert isinstance(key.fileobj, socket.socket)
                data = b""
                with suppress(OSError):
                    data = key.fileobj.recv(1 << 16, socket.MSG_DONTWAIT)
                if not data:  # QEMU is gone
                    self._selector.unregister(key.fileobj)

    def close(self) -> None:
        """End the thread: before the wires are closed."""
        self._wakeup.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._asleep.close()
        self._selector.close()

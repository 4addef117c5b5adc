# SPDX-License-Identifier: GPL-2.0-only
"""The host for one measurement alone, across the workers of a run and across runs.

Tests that use a guest share the host; a test that takes a figure has it for itself.  The locks are
flock(2)'s: the kernel frees those of a process that dies, however it does.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from pytest_napi.cache import writing


class Quiet:
    """This process's hold on the host; of one thread.  Its files are in ``folder``.

    Two files, since flock(2) alone would let those that share follow each other for ever while a
    measurement waits: whoever wants a hold passes the gate, and a measurement keeps the gate until
    it has the host.
    """

    def __init__(self, folder: Path) -> None:
        self._gate = folder / "quiet.gate"
        self._host = folder / "quiet.lock"
        self._held: int | None = None
        self._measuring = False

    @property
    def measuring(self) -> bool:
        """Whether the host is this process's alone."""
        return self._measuring

    @property
    def wanted(self) -> bool:
        """Whether a measurement of somebody else waits for the host."""
        try:
            os.close(_locked(self._gate, fcntl.LOCK_SH | fcntl.LOCK_NB))
        except BlockingIOError:
            return True
        return False

    @property
    def sharing(self) -> bool:
        """Whether the host is held together with others."""
        return self._held is not None and not self._measuring

    def share(self, waiting: Callable[[], None] = lambda: None) -> None:
        """Hold the host together with others; wait for a measurement that runs or waits.

        ``waiting`` is called once if there is one.  Raises HostUnfit when the lock's files cannot
        be made.
        """
        self._hold(fcntl.LOCK_SH, waiting)

    def measure(self, waiting: Callable[[], None] = lambda: None) -> None:
        """Hold the host alone; wait until the others have given it up.  Otherwise as ``share``."""
        if not self._measuring:
            self._hold(fcntl.LOCK_EX, waiting)

    def release(self) -> None:
        """Give the host up, if it is held."""
        # Forgotten before it is closed: an interrupt in between must not make a later call close
        # a descriptor that by then is someone else's.
        held, self._held = self._held, None
        self._measuring = False
        if held is not None:
            os.close(held)

    def _hold(self, how: int, waiting: Callable[[], None]) -> None:
        # First of all: two that share, and both want to measure, would wait for each other.
        self.release()
        told = False

        def wait() -> None:
            nonlocal told
            if not told:
                waiting()
            told = True

        # The gate is taken as the host is: those that share meet in it, and do not take each other
        # for a measurement; a measurement that waits in it keeps them out.
        gate = _locked(self._gate, how, wait)
        try:
            try:
                self._held = _locked(self._host, how, wait)
                self._measuring = how == fcntl.LOCK_EX
            finally:
                os.close(gate)
        except BaseException:  # an interrupt may come when the host is had already
            self.release()
            raise


def _locked(path: Path, how: int, waiting: Callable[[], None] = lambda: None) -> int:
    """Return an open descriptor that has the lock; closing it gives the lock up.

    Raises BlockingIOError where it cannot be had and ``how`` has LOCK_NB.
    """
    with writing(path.parent):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if how & fcntl.LOCK_NB:
                raise
            waiting()
            fcntl.flock(descriptor, how)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor

# SPDX-License-Identifier: GPL-2.0-only
"""Joins the user's terminal, or just his standard streams, to a program in a guest."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import Sequence
from typing import IO, Any

from pytest_napi.guest.guest import Guest
from pytest_napi.guest.process import GuestProcess


def _size() -> tuple[int, int]:
    columns, rows = shutil.get_terminal_size()
    return rows, columns


def _shell_status(returncode: int) -> int:
    """Return a shell's exit status for ``returncode``, which is negative for a signal."""
    return returncode if returncode >= 0 else 128 - returncode


def _copy(source: Any, target: IO[bytes]) -> None:
    # Both kinds of source, of the host and of the guest, are buffered readers.
    while chunk := source.read1(65536):
        target.write(chunk)
        target.flush()


def stream(guest: Guest, argv: Sequence[str]) -> int:
    """Run ``argv`` with this process's standard streams; return a shell's exit status for it."""
    piped = not sys.stdin.isatty()
    with guest.start(argv, stdin=piped) as process:
        threads = [
            threading.Thread(target=_copy, args=(process.stdout, sys.stdout.buffer)),
            threading.Thread(target=_copy, args=(process.stderr, sys.stderr.buffer)),
        ]
        for thread in threads:
            thread.start()
        if piped:
            _feed(process)
        for thread in threads:
            thread.join()
        return _shell_status(process.wait())


def _feed(process: GuestProcess) -> None:
    assert process.stdin is not None
    try:
        _copy(sys.stdin.buffer, process.stdin)
        process.stdin.close()
    except BrokenPipeError:
        pass  # the program ended before its input did


def interact(guest: Guest, argv: Sequence[str]) -> int:
    """Run ``argv`` on a terminal of its own, joined to ours; return its exit status."""
    ours = sys.stdin.fileno()
    before = termios.tcgetattr(ours)
    with guest.start(argv, pty=_size()) as process:
        resized = signal.signal(signal.SIGWINCH, lambda *_: process.resize(*_size()))
        output = threading.Thread(target=_copy, args=(process.stdout, sys.stdout.buffer))
        output.start()
        tty.setraw(ours)
        try:
            while output.is_alive():
                # Looks at the program now and then: a key may never come.
                if select.select([ours], [], [], 0.1)[0]:
                    assert process.stdin is not None
                    process.stdin.write(os.read(ours, 4096))
                    process.stdin.flush()
        except BrokenPipeError:
            pass  # the program ended between the look and the key
        finally:
            termios.tcsetattr(ours, termios.TCSADRAIN, before)
            signal.signal(signal.SIGWINCH, resized)
        output.join()
        return _shell_status(process.wait())

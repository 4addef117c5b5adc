# SPDX-License-Identifier: GPL-2.0-only
"""Children that cannot outlive this process, however it dies."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from pytest_napi.errors import HostUnfit


def find_setpriv() -> str:
    """Return the path of setpriv(1).  Raises HostUnfit with the command that installs it."""
    found = shutil.which("setpriv")
    if found is None:
        raise HostUnfit("setpriv is not installed: apt-get install util-linux")
    return found


def tethered(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` wrapped so that the kernel kills the program when its parent dies.

    The parent is the *thread* that spawns it: it must be one that lives as long as the child may.
    setpriv(1) sets the parent-death signal between fork and exec; a ``preexec_fn`` would do the
    same but may deadlock in a process with threads.  A parent that dies in the millisecond before
    it is set leaves the child; a guest then ends by itself when its channel is closed.
    """
    return [find_setpriv(), "--pdeathsig", "KILL", "--", *argv]

# SPDX-License-Identifier: GPL-2.0-only
"""Programs of the host for the guest, and the shared libraries they need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pytest_napi.errors import HostUnfit
from pytest_napi.image.manifest import HostProgram

# "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)" and "/lib64/ld-linux-x86-64.so.2 (0x…)".
_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x", re.MULTILINE)


def find(program: HostProgram) -> Path:
    """Return the host's file of ``program``.

    Raises HostUnfit with the command that installs it.
    """
    # Not on every user's PATH, but where distributions have what administers a network.
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    found = shutil.which(program.program, path=path)
    if found is None:
        raise HostUnfit(f"{program.program} is not installed: apt-get install {program.package}")
    return Path(found).resolve()


def libraries(path: Path) -> list[Path]:
    """Return the shared libraries ``path`` is linked to, the loader included; static: none.

    The paths are those the program's loader will ask for, not where links lead.
    """
    said = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
    return [Path(name) for name in _LIBRARY.findall(said)]


def applets(path: Path) -> list[str]:
    """Return the applets of a multi-call program, as its ``--list`` names them."""
    said = subprocess.run([str(path), "--list"], capture_output=True, text=True, check=False)
    return sorted(said.stdout.split())

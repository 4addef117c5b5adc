# SPDX-License-Identifier: GPL-2.0-only
"""The guest programs: compiled once by their own Makefile, kept by the hash of all inputs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from pytest_napi.cache import published
from pytest_napi.errors import HostUnfit, ImageError

_SOURCES = ("*.c", "*.h", "*.sh", "Makefile")
_INSTALL = "apt-get install gcc libc6-dev make"


def built(source: Path, cache: Path) -> Path:
    """Return a folder with the programs of ``source`` built in it.

    Raises HostUnfit when the host has no C compiler or no make, ImageError with the compiler's
    words when the programs do not compile.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    make = shutil.which("make")
    if compiler is None or make is None:
        lacking = "C compiler" if compiler is None else "make"
        raise HostUnfit(f"no {lacking} for the guest programs: {_INSTALL}")
    sources = sorted(path for pattern in _SOURCES for path in source.glob(pattern))
    key = hashlib.sha256(_identity(compiler).encode())
    for path in sources:
        content = path.read_bytes()
        key.update(f"{path.name} {len(content)}\n".encode() + content)

    def compile_into(folder: Path) -> None:
        for path in sources:
            shutil.copy(path, folder / path.name)
        done = subprocess.run(
            [make, f"-j{os.cpu_count() or 1}", "-C", str(folder), f"CC={compiler}"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            # The compiler's output names files of a folder that is removed in a moment.
            said = done.stderr.replace(str(folder), str(source))
            raise ImageError(f"the programs in {source} do not compile", said)

    return published(cache / "programs" / key.hexdigest()[:32], compile_into)


def _identity(compiler: str) -> str:
    """Return what tells this compiler from another one: its path, size and time of change."""
    path = Path(compiler).resolve()
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"

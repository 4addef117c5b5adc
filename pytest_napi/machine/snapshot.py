# SPDX-License-Identifier: GPL-2.0-only
"""Guests saved to files and restored from them, by QEMU's migration.

The memory is a file of its own and no part of the migration stream (QEMU's capability
``x-ignore-shared``): a restored guest maps it copy on write.  So a copy is there in the time QEMU
needs to start, and copies share what none of them has written to.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pytest_napi.machine.control import ControlError
from pytest_napi.machine.emulator import Emulator

if TYPE_CHECKING:
    from pytest_napi.machine.qmp import Qmp  # takes long to load

_FILE_URI_VERSION = (8, 2, 0)
"""The first QEMU whose migration knows ``file:``; before, a shell writes and reads the file."""

_MIGRATION_SECONDS = 60.0
"""The devices' state is 350 KB and takes 20 ms; a host whose disk is busy may need seconds."""

_POLL_SECONDS = 0.001
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Snapshot:
    """The files of one saved guest."""

    folder: Path

    @property
    def memory(self) -> Path:
        """The guest's memory, as large as it is; a sparse file."""
        return self.folder / "memory"

    @property
    def state(self) -> Path:
        """The state of its devices: QEMU's migration stream."""
        return self.folder / "state"

    @property
    def console(self) -> Path:
        """What its console had printed."""
        return self.folder / "console.log"


def save(qmp: Qmp, emulator: Emulator, memory: int, console: Path, snapshot: Snapshot) -> None:
    """Stop a guest and save it.  ``memory`` is the descriptor of its shared memory file.

    Raises ControlError when QEMU cannot save one of its devices, OSError when there is no space.
    """
    qmp.execute("stop")
    _ignore_shared(qmp)
    qmp.execute("migrate", {"uri": _uri(emulator, "cat >", snapshot.state)})
    _wait(qmp)
    with snapshot.memory.open("wb") as file:
        _copy_sparse(memory, file)
    shutil.copyfile(console, snapshot.console)
    # Else the files of a host that lost power could have the right size and no content.
    for path in (snapshot.memory, snapshot.state, snapshot.console):
        with path.open("rb") as written:
            os.fsync(written.fileno())


def load(qmp: Qmp, emulator: Emulator, snapshot: Snapshot) -> None:
    """Give a QEMU that waits for it the state of a saved guest, which is then stopped as it was.

    Raises ControlError; QEMU may have ended with a message that says more.
    """
    _ignore_shared(qmp)
    # A copy is no guest that has moved: frames that announce it would count as received.
    qmp.execute("migrate-set-parameters", {"announce-rounds": 0})
    qmp.execute("migrate-incoming", {"uri": _uri(emulator, "cat <", snapshot.state)})
    _wait(qmp)


def _ignore_shared(qmp: Qmp) -> None:
    capability = {"capability": "x-ignore-shared", "state": True}
    qmp.execute("migrate-set-capabilities", {"capabilities": [capability]})


def _uri(emulator: Emulator, command: str, path: Path) -> str:
    if emulator.version >= _FILE_URI_VERSION:
        return f"file:{path}"
    return f"exec:{command} {shlex.quote(str(path))}"


def _wait(qmp: Qmp) -> None:
    """Wait for the end of a migration."""
    deadline = time.monotonic() + _MIGRATION_SECONDS
    while True:
        answer = qmp.execute("query-migrate")
        assert isinstance(answer, dict)  # MigrationInfo in QEMU's schema
        status = answer.get("status")
        if status == "completed":
            return
        if status == "failed":
            raise ControlError(f"migration failed: {answer.get('error-desc', 'no reason given')}")
        if time.monotonic() > deadline:
            raise ControlError(f"migration did not end within {_MIGRATION_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)


def _copy_sparse(source: int, target: IO[bytes]) -> None:
    """Copy what a file holds; its holes stay holes."""
    size = os.fstat(source).st_size
    target.truncate(size)
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole is left
            return
        end = os.lseek(source, at, os.SEEK_HOLE)
        target.seek(at)
        while at < end:
            data = os.pread(source, min(_CHUNK, end - at), at)
            target.write(data)
            at += len(data)

# SPDX-License-Identifier: GPL-2.0-only
"""Small texts in the cache: written whole or not at all, and keyed so that none can be stale."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pytest_napi.cache import writing
from pytest_napi.errors import HostUnfit


def identity(path: Path) -> str:
    """Return a key for the present content of a file without reading it (64 hex digits).

    The inode's change time is in it: unlike the modification time no program can set it back, so a
    replaced or rewritten file has another key.
    """
    real = path.resolve()
    status = real.stat()
    facts = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return hashlib.sha256(f"{real}\0{facts}".encode(errors="surrogateescape")).hexdigest()


def read_text(path: Path) -> str | None:
    """Return a cached text, or None if it is not there or not readable."""
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text()
    return None


def write_text(path: Path, text: str) -> None:
    """Write a cached text so that no reader, and no run that is killed, ever leaves a part of it.

    Raises HostUnfit if the file system is full or not writable.
    """
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def remember(path: Path, text: str) -> None:
    """Write a text that saves time, and is not missed where it cannot be written."""
    with suppress(HostUnfit):
        write_text(path, text)


@contextmanager
def locked(folder: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Make a folder and keep other runs out of it; says so where it has to wait for one.

    Raises HostUnfit if the file system is full or not writable.
    """
    # Loaded only here: it takes longer to load than a cached kernel to find.
    from filelock import FileLock, Timeout  # noqa: PLC0415

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            progress(f"waiting for another run that fills {folder}")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

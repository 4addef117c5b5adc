# SPDX-License-Identifier: GPL-2.0-only
"""Read package archives: damage as one line, and only wanted files written, nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.compression import libarchive


@contextmanager
def reading(path: Path, what: str) -> Iterator[Any]:
    """Yield the libarchive module; what it finds damaged in the block is KernelUnusable.

    ``what`` is the kind of package, for the message.  Raises HostUnfit if libarchive is missing.
    """
    archive = libarchive()
    try:
        yield archive
    except archive.ArchiveError as error:
        # libarchive gives no reason where the data ends between two files.
        reason = " ".join((error.msg or "it is cut off").split())
        raise KernelUnusable(
            f"{path}: a damaged {what}: {reason}; fetch or build it again"
        ) from error


def extract(
    path: Path,
    entries: Iterable[Any],
    target: Path,
    place: Callable[[str], PurePosixPath | None],
) -> None:
    """Write those entries of the package ``path`` below ``target`` that have a place there.

    ``place`` gets an entry's path and returns the path below ``target``, or None to leave it out.
    Raises KernelUnusable for a path that leads out of the package, and OSError if a file cannot be
    written.
    """
    for entry in entries:
        pure = PurePosixPath(entry.pathname)
        if pure.is_absolute() or ".." in pure.parts:
            raise KernelUnusable(
                f"{path}: refused: it holds the path {entry.pathname!r}; build it again"
            )
        # Links are left out: they point outside of what is unpacked ("build", "source").
        wanted = place(str(pure)) if entry.isreg and not entry.islnk else None
        if wanted is None:
            continue
        file = target / wanted
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as out:
            for block in entry.get_blocks(1 << 18):
                out.write(block)

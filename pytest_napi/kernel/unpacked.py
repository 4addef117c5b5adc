# SPDX-License-Identifier: GPL-2.0-only
"""Kernels unpacked from packages into the cache, each in a folder named after what it was made of.

    CACHE/unpacked/KEY/vmlinuz-RELEASE  config-RELEASE  lib/modules/RELEASE/…  contents

A folder appears by one rename when it is whole, so a run that is killed leaves none.  ``contents``
lists every file with its size, so one that lost files later (a cleaner of old files, a power cut)
is seen and made anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_napi.cache import published
from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import formats, store

_FORMAT = "1"  # of the folder; one more makes every older one unused
_CONTENTS = "contents"


def key(packages: Sequence[Path]) -> str:
    """Return the name of the folder for the kernel in these packages, in whatever order."""
    hashes = []
    for path in packages:
        with path.open("rb") as file:
            hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashlib.sha256(" ".join([_FORMAT, *sorted(hashes)]).encode()).hexdigest()


def _is_whole(folder: Path) -> bool:
    listing = store.read_text(folder / _CONTENTS)
    if not listing:
        return False
    try:
        # A thousand files: as Path objects they would take twice the time.
        return all(
            os.stat(f"{folder}/{name}").st_size == int(size)  # noqa: PTH116
            for size, name in (line.split(" ", 1) for line in listing.splitlines())
        )
    except (OSError, ValueError):
        return False


def image_of(folder: Path) -> Path | None:
    """Return the image in an unpacked folder, or None if the folder is absent or lost files."""
    return file_in(folder, "vmlinuz-*")


def file_in(folder: Path, pattern: str) -> Path | None:
    """Return the file that ``made`` put into a folder, or None if it is absent or lost files."""
    return next(folder.glob(pattern), None) if _is_whole(folder) else None


def folder_of(cache: Path, name: str) -> Path:
    """Return the folder of a key."""
    return cache / "unpacked" / name


def unpack(packages: Sequence[Path], cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the image unpacked from the packages of one kernel, unpacking them if need be.

    Raises KernelUnusable if there is not exactly one kernel in them, and HostUnfit if the cache
    cannot be written.
    """
    folder = folder_of(cache, key(packages))
    image = image_of(folder)
    if image is not None:
        return image

    def fill(new: Path) -> None:
        for path in packages:
            formats.extract_kernel(path, new)
        images = sorted(new.glob("vmlinuz-*"))
        if len(images) != 1:
            raise _not_one(packages, images)

    with store.locked(folder.parent, progress):
        if image_of(folder) is None:  # else another run has made it meanwhile
            progress(f"unpacking {', '.join(path.name for path in packages)}")
            made(folder, fill)
    return next(folder.glob("vmlinuz-*"))


def made(folder: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder anew: whole, with its ``contents``, or not at all.

    The caller keeps other runs out of the folder above it.  Raises what ``fill`` raises, and
    HostUnfit if the cache cannot be written.
    """
    for left in (folder, *folder.parent.glob(".new-*")):
        # One that lost files, and what a run that was killed left: the lock says it is not at work.
        shutil.rmtree(left, ignore_errors=True)

    def fill_and_list(new: Path) -> None:
        fill(new)
        files = sorted(path for path in new.rglob("*") if path.is_file())
        lines = [f"{path.stat().st_size} {path.relative_to(new)}\n" for path in files]
        (new / _CONTENTS).write_text("".join(lines))

    published(folder, fill_and_list)


def _not_one(packages: Sequence[Path], images: Sequence[Path]) -> KernelUnusable:
    where = packages[0] if len(packages) == 1 else packages[0].parent
    if images:
        kernels = ", ".join(path.name.removeprefix("vmlinuz-") for path in images)
        return KernelUnusable(f"{where}: holds several kernels ({kernels}); give one of them")
    return KernelUnusable(
        f"{where}: no kernel package: there is no vmlinuz in it; "
        "give the one that has it, or a folder with all packages of the kernel"
    )

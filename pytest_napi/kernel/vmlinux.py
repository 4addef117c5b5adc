# SPDX-License-Identifier: GPL-2.0-only
"""The uncompressed kernel inside a bzImage, for QEMU to boot directly.

A kernel under TCG takes 1.5 s to decompress itself, the host takes 0.4 s once.  QEMU boots an ELF
that names its 32-bit entry point in a note (PVH; CONFIG_PVH, on in distribution kernels).
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_napi.cache import published
from pytest_napi.kernel.image import read_payload
from pytest_napi.kernel.store import identity

_PVH_ENTRY = 18
"""XEN_ELFNOTE_PHYS32_ENTRY (include/xen/interface/elfnote.h), the only note QEMU looks for."""

_NAME = "vmlinux"

_KEPT = 8
"""How many unpacked kernels the cache keeps: 60 MB each, and half a second to make again."""


def vmlinux(image: Path, cache: Path) -> Path | None:
    """Return the ELF inside the bzImage ``image``, kept in ``cache``.

    None where QEMU could not boot it: no ELF, no PVH note, damaged.  The bzImage itself tells what
    is wrong with it, when it is booted.  Raises HostUnfit when the cache is full.
    """

    def unpack(folder: Path) -> None:
        kernel = read_payload(image, b"".join)
        if kernel is not None and _has_pvh_note(kernel):
            (folder / _NAME).write_bytes(kernel)
        with suppress(OSError):  # another run may remove the same
            _remove_oldest(cache / _NAME)

    key = identity(image)[:32]
    # An empty folder says that there is none.
    found = published(cache / _NAME / key, unpack) / _NAME
    return found if found.exists() else None


def _remove_oldest(folder: Path) -> None:
    kernels = folder.glob(f"[!.]*/{_NAME}")
    for kernel in sorted(kernels, key=lambda path: path.stat().st_mtime_ns)[: 1 - _KEPT]:
        kernel.unlink()
        kernel.parent.rmdir()


def _has_pvh_note(kernel: bytes) -> bool:
    # Loaded only here: it takes longer to load than a cached kernel to find.
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    try:
        segments: Iterable[Any] = ELFFile(io.BytesIO(kernel)).iter_segments("PT_NOTE")
        notes = (note for segment in segments for note in segment.iter_notes())
        return any(note["n_name"] == "Xen" and note["n_type"] == _PVH_ENTRY for note in notes)
    except Exception:  # no ELF, or not what it says: as many kinds as bytes can be wrong
        return False

# SPDX-License-Identifier: GPL-2.0-only
"""libarchive, loaded when first needed (it takes longer than a cached kernel takes to resolve)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_napi.errors import HostUnfit


def libarchive() -> Any:
    """Return the libarchive module; raise HostUnfit where the C library behind it is missing."""
    try:
        import libarchive as module  # noqa: PLC0415
    except (ImportError, OSError, AttributeError, TypeError) as error:
        raise HostUnfit(
            f"cannot load libarchive ({error}): apt-get install libarchive13"
        ) from error
    return module


def decompressed(data: bytes) -> Iterator[bytes]:
    """Yield the content of gzip, xz, zstd, lz4, bzip2 or lzma data in blocks; its magic decides.

    Raises ValueError where the data is none of these or ends early, after the blocks before the
    damage: a reader that has what it wants may stop sooner.
    """
    archive = libarchive()
    try:
        with archive.memory_reader(data, format_name="raw", filter_name="all") as reader:
            for entry in reader:
                yield from entry.get_blocks(1 << 20)
    except archive.ArchiveError as error:
        raise ValueError(f"cannot decompress: {error}") from error

# SPDX-License-Identifier: GPL-2.0-only
"""Read RPM packages.

libarchive skips a package's headers and reads the cpio archive behind them.  Nothing in the headers
is needed: which files are a kernel's says their path, and what the kernel is says the image.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_napi.kernel.archives import reading

MAGIC = b"\xed\xab\xee\xdb"
"""How every .rpm starts (RPMLEAD_MAGIC of rpm's lib/rpmlead.c)."""


@contextmanager
def files(path: Path) -> Iterator[Any]:
    """Open the files of an .rpm, as libarchive's entries; KernelUnusable if it is damaged."""
    with (
        reading(path, ".rpm") as archive,
        archive.file_reader(str(path), format_name="cpio", filter_name="all") as entries,
    ):
        yield entries

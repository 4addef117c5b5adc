# SPDX-License-Identifier: GPL-2.0-only
"""Read Debian packages: what one is, and the files inside it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.architecture import ARCHITECTURES
from pytest_napi.kernel.archives import reading

MAGIC = b"!<arch>\ndebian-binary"
"""How every .deb starts."""


@dataclass(frozen=True)
class Package:
    """The control data of one .deb; ``depends`` has the names, of alternatives each."""

    path: Path
    name: str
    architecture: str
    depends: tuple[str, ...]


class _Stream(io.RawIOBase):
    """The data of one archive member, as the file libarchive reads the inner archive from.

    An exception cannot pass through libarchive, so damage is kept and ends the data.
    """

    def __init__(self, blocks: Iterator[bytes], damage_type: type[Exception]) -> None:
        self._blocks = blocks
        self._rest = memoryview(b"")
        self._damage_type = damage_type
        self.damage: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            try:
                self._rest = memoryview(next(self._blocks, b""))
            except self._damage_type as error:
                self.damage = error
        size = min(len(buffer), len(self._rest))
        memoryview(buffer).cast("B")[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


@contextmanager
def _member(path: Path, prefix: str) -> Iterator[Any]:
    """Open the inner archive of a .deb whose name starts with "control.tar" or "data.tar"."""
    with (
        reading(path, ".deb") as archive,
        archive.file_reader(str(path), format_name="ar", filter_name="none") as outer,
    ):
        for member in outer:
            if not member.pathname.startswith(prefix):
                continue
            stream = _Stream(member.get_blocks(1 << 16), archive.ArchiveError)
            try:
                with archive.stream_reader(stream, format_name="tar", block_size=1 << 16) as inner:
                    yield inner
            except archive.ArchiveError as error:
                raise (stream.damage or error) from None
            return
    raise KernelUnusable(f"{path}: not a .deb: it has no {prefix}; fetch or build it again")


def files(path: Path) -> AbstractContextManager[Any]:
    """Open the files of a .deb, as libarchive's entries; KernelUnusable if it is damaged."""
    return _member(path, "data.tar")


def read_package(path: Path) -> Package:
    """Read the control data of a .deb.

    Raises KernelUnusable if it is damaged, and HostUnfit if libarchive is missing.
    """
    text = ""
    with _member(path, "control.tar") as entries:
        for entry in entries:
            if PurePosixPath(entry.pathname) == PurePosixPath("control"):
                text = b"".join(entry.get_blocks()).decode("utf-8", "replace")
                break
    from pytest_napi.kernel import control  # noqa: PLC0415 - see there

    stanza = next(control.stanzas(text), control.Packages())
    return Package(
        path=path,
        name=stanza.get("Package", ""),
        architecture=stanza.get("Architecture", ""),
        depends=tuple(control.depends(stanza)),
    )


def check_architecture(package: Package) -> None:
    """Raise KernelUnusable for a package of an architecture that cannot be tested."""
    names = {row.debian for row in ARCHITECTURES.values()}
    if package.architecture not in names | {"all"}:
        raise KernelUnusable(
            f"{package.path}: a package for {package.architecture}; "
            f"only {', '.join(sorted(names))} kernels can be tested"
        )

# SPDX-License-Identifier: GPL-2.0-only
"""Read Debian packages: what one is, and the files of a kernel inside it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.architecture import ARCHITECTURES
from pytest_napi.kernel.compression import libarchive

MAGIC = b"!<arch>\ndebian-binary"
"""How every .deb starts."""

# Before 7.2 the image and the config are in /boot, from then on beside the modules.
_WANTED = re.compile(
    r"(?:usr/)?(?:"
    r"boot/(?P<kind>vmlinuz|config)-(?P<boot_release>[^/]+)"
    r"|lib/modules/(?P<release>[^/]+)/(?P<rest>vmlinuz|config|modules\.builtin|.+\.ko(?:\.\w+)?)"
    r")"
)


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
    archive = libarchive()
    stream: _Stream | None = None
    try:
        with archive.file_reader(str(path), format_name="ar", filter_name="none") as outer:
            for member in outer:
                if member.pathname.startswith(prefix):
                    stream = _Stream(member.get_blocks(1 << 16), archive.ArchiveError)
                    with archive.stream_reader(
                        stream, format_name="tar", block_size=1 << 16
                    ) as inner:
                        yield inner
                    return
    except archive.ArchiveError as error:
        damage = stream.damage if stream is not None and stream.damage else error
        reason = " ".join(str(getattr(damage, "msg", damage)).split())
        raise KernelUnusable(
            f"{path}: a damaged .deb: {reason}; fetch or build it again"
        ) from error
    raise KernelUnusable(f"{path}: not a .deb: it has no {prefix}; fetch or build it again")


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


def _place(name: str) -> PurePosixPath | None:
    """Return where a package's file goes below the folder it is unpacked to, None for nowhere.

    Whatever the package's layout: vmlinuz-RELEASE, config-RELEASE and lib/modules/RELEASE.
    """
    match = _WANTED.fullmatch(name)
    if match is None:
        return None
    if match["kind"]:
        return PurePosixPath(f"{match['kind']}-{match['boot_release']}")
    if match["rest"] in ("vmlinuz", "config"):
        return PurePosixPath(f"{match['rest']}-{match['release']}")
    return PurePosixPath("lib/modules", match["release"], match["rest"])


def extract_kernel(path: Path, target: Path) -> None:
    """Write the kernel's files of a .deb below ``target``: image, config, modules and no others.

    Raises KernelUnusable for a damaged package and for one with paths that lead out of it, and
    OSError if the files cannot be written.
    """
    with _member(path, "data.tar") as entries:
        for entry in entries:
            pure = PurePosixPath(entry.pathname)
            if pure.is_absolute() or ".." in pure.parts:
                raise KernelUnusable(
                    f"{path}: refused: it holds the path {entry.pathname!r}; build it again"
                )
            # Links are left out: they point outside of what is unpacked ("build", "source").
            place = _place(str(pure)) if entry.isreg and not entry.islnk else None
            if place is None:
                continue
            file = target / place
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as out:
                for block in entry.get_blocks(1 << 18):
                    out.write(block)

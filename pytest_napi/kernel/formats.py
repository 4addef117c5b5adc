# SPDX-License-Identifier: GPL-2.0-only
"""The formats of packages a kernel comes in, and which of a package's files are a kernel's."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_napi.kernel import deb, rpm
from pytest_napi.kernel.archives import extract

# Where the packages of Debian, Fedora and openSUSE and those of the kernel's own packaging have
# them: image and config are in /boot (Debian before 7.2, older openSUSE), else beside the modules.
_KERNEL_FILE = re.compile(
    r"(?:usr/)?(?:"
    r"boot/(?P<kind>vmlinuz|config)-(?P<boot_release>[^/]+)"
    r"|lib/modules/(?P<release>[^/]+)/(?P<rest>vmlinuz|config|modules\.builtin|.+\.ko(?:\.\w+)?)"
    r")"
)
_SOURCE_FILE = re.compile(r"usr/src/(?P<name>linux-source-[\d.]+\.tar\.\w+)")


@dataclass(frozen=True)
class Format:
    """One format: how its file names end, how its files start, and what opens the files inside."""

    suffix: str
    magic: bytes
    files: Callable[[Path], AbstractContextManager[Any]]


DEB = Format(".deb", deb.MAGIC, deb.files)
RPM = Format(".rpm", rpm.MAGIC, rpm.files)
FORMATS = (DEB, RPM)
"""Every format of packages that is read."""


def format_of(path: Path) -> Format | None:
    """Tell the format of a file by its content, None for no package (or nothing that can be read).

    Only a regular file is opened: a FIFO or a device would block.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            head = file.read(max(len(row.magic) for row in FORMATS))
    except OSError:
        return None
    return next((row for row in FORMATS if head.startswith(row.magic)), None)


def extract_kernel(path: Path, target: Path) -> None:
    """Write the kernel's files of a package below ``target``: image, config and modules only.

    Raises KernelUnusable for a damaged package and for one with paths that lead out of it, and
    OSError if the files cannot be written.
    """
    with (format_of(path) or DEB).files(path) as entries:
        extract(path, entries, target, _kernel_place)


def extract_source(path: Path, target: Path) -> None:
    """Write the kernel's source tarball of a linux-source .deb into ``target``.

    Raises what ``extract_kernel`` raises.
    """
    with deb.files(path) as entries:
        extract(path, entries, target, _source_place)


def _kernel_place(name: str) -> PurePosixPath | None:
    """Return where a package's file goes below the folder it is unpacked to, None for nowhere.

    Whatever the package's layout: vmlinuz-RELEASE, config-RELEASE and lib/modules/RELEASE.
    """
    match = _KERNEL_FILE.fullmatch(name)
    if match is None:
        return None
    if match["kind"]:
        return PurePosixPath(f"{match['kind']}-{match['boot_release']}")
    if match["rest"] in ("vmlinuz", "config"):
        return PurePosixPath(f"{match['rest']}-{match['release']}")
    return PurePosixPath("lib/modules", match["release"], match["rest"])


def _source_place(name: str) -> PurePosixPath | None:
    match = _SOURCE_FILE.fullmatch(name)
    return PurePosixPath(match["name"]) if match else None

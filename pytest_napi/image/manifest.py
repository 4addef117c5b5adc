# SPDX-License-Identifier: GPL-2.0-only
"""Image manifests: what goes into a guest's root file system, as YAML checked on load."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pytest_napi.errors import ImageError


class Programs(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A folder of sources that its own Makefile builds in place."""

    source: str
    """The shipped folder, e.g. ``selftests``."""
    files: dict[str, str]
    """Path in the built folder -> path in the guest; ``.`` is the whole folder."""


class HostProgram(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A program of the host, copied with the shared libraries it needs."""

    program: str
    path: str
    package: str
    """The distribution package to install where the host lacks it."""
    applets: str | None = None
    """Folder for one link per applet, as ``PROGRAM --list`` names them (busybox)."""


class Manifest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One image.  Paths are the guest's, without a leading slash."""

    folders: tuple[str, ...] = ()
    programs: tuple[Programs, ...] = ()
    host_programs: tuple[HostProgram, ...] = ()
    modules: tuple[str, ...] = ()
    """Kernel modules loaded at boot, each after those it depends on."""
    files: dict[str, str] = {}

    def joined(self, other: Manifest) -> Manifest:
        """Return the image that has all of both; ``other``'s files win."""
        return Manifest(
            folders=(*self.folders, *other.folders),
            programs=(*self.programs, *other.programs),
            host_programs=(*self.host_programs, *other.host_programs),
            modules=(*self.modules, *other.modules),
            files={**self.files, **other.files},
        )


def load_manifest(path: Path) -> Manifest:
    """Read a manifest.  Raises ImageError, naming the file and the place, when it is malformed."""
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise ImageError(f"{path}: not an image manifest: {error}") from None

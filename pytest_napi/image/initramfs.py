# SPDX-License-Identifier: GPL-2.0-only
"""Initramfs images: assembled from a manifest, the same bytes for the same inputs."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_napi.cache import published
from pytest_napi.errors import ImageError
from pytest_napi.image import host_files
from pytest_napi.image.manifest import Manifest
from pytest_napi.image.programs import built
from pytest_napi.kernel.kernel import Kernel
from pytest_napi.kernel.modules import Module
from pytest_napi.kernel.store import identity

_FORMAT = "2"
"""Part of every cache key: changes with the code below."""


@dataclass(frozen=True)
class Entry:
    """One file, folder or link of an image."""

    path: str
    mode: int
    """File type and permissions, as in ``st_mode``."""
    content: bytes | Path = b""
    """Of a file: its bytes or where they are.  Of a link: its target."""

    @property
    def key(self) -> str:
        """What tells this entry from a changed one without reading large files."""
        content = self.content
        told = content.hex() if isinstance(content, bytes) else identity(content)
        return f"{self.path} {self.mode:o} {told}"

    def read(self) -> bytes:
        """Return the content."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


def _folder(path: str) -> Entry:
    return Entry(path, stat.S_IFDIR | 0o755)


def _file(path: str, content: bytes | Path, executable: bool = False) -> Entry:
    return Entry(path, stat.S_IFREG | (0o755 if executable else 0o644), content)


def _link(path: str, target: str) -> Entry:
    return Entry(path, stat.S_IFLNK | 0o777, target.encode())


def _programs(manifest: Manifest, root: Path, cache: Path) -> Iterable[Entry]:
    for programs in manifest.programs:
        folder = built(root / programs.source, cache)
        for name, target in programs.files.items():
            source = folder / name
            if not source.exists():
                raise ImageError(f"{programs.source} built no {name}: mend the image manifest")
            files = sorted(source.iterdir()) if source.is_dir() else [source]
            for file in files:
                executable = bool(file.stat().st_mode & stat.S_IXUSR)
                path = f"{target}/{file.name}" if source.is_dir() else target
                yield _file(path, file, executable)


def _host_programs(manifest: Manifest) -> Iterable[Entry]:
    for program in manifest.host_programs:
        source = host_files.find(program)
        yield _file(program.path, source, executable=True)
        for library in host_files.libraries(source):
            yield _file(str(library).lstrip("/"), library.resolve(), executable=True)
        if program.applets is not None:
            name = PurePosixPath(program.path).name
            for applet in host_files.applets(source):
                if applet != name:
                    yield _link(f"{program.applets}/{applet}", f"/{program.path}")


def _modules(modules: Sequence[Module]) -> Iterable[Entry]:
    paths = [f"lib/modules/{module.name}.ko" for module in modules]
    for path, module in zip(paths, modules, strict=True):
        yield _file(path, module.read())
    yield _file("etc/modules", "".join(f"/{path}\n" for path in paths).encode())


def entries(manifest: Manifest, root: Path, cache: Path) -> list[Entry]:
    """Return the entries of ``manifest``'s image that are the same for every kernel.

    ``root`` holds the folders the manifest names.
    """
    return [
        *map(_folder, manifest.folders),
        *_programs(manifest, root, cache),
        # Files last: make's own wins over busybox's link of that name.
        *sorted(_host_programs(manifest), key=lambda entry: stat.S_ISREG(entry.mode)),
        *(_file(path, text.encode()) for path, text in manifest.files.items()),
    ]


def ordered(listed: Iterable[Entry]) -> list[Entry]:
    """Return ``listed`` with parents before children; the last of a path replaces the others."""
    by_path = {entry.path: entry for entry in listed}
    for path in list(by_path):
        for parent in PurePosixPath(path).parents[:-1]:
            by_path.setdefault(str(parent), _folder(str(parent)))
    return sorted(by_path.values(), key=lambda entry: entry.path)


def newc(listed: Sequence[Entry]) -> Iterator[bytes]:
    """Yield ``listed`` as a newc archive (kernel: Documentation/driver-api/early-userspace/
    buffer-format.rst): no times, no owners, in the order given.

    Written here since libarchive-c makes hard links of symbolic ones.
    """
    trailer = Entry("TRAILER!!!", 0)
    for number, entry in enumerate([*listed, trailer], start=1):
        content, name = entry.read(), entry.path.encode() + b"\0"
        # ino, mode, uid, gid, nlink, mtime, size, device (2), rdevice (2), name's size, checksum
        fields = (number, entry.mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (header + name, content):
            yield part + bytes(-len(part) % 4)


def initramfs(manifest: Manifest, root: Path, kernel: Kernel, cache: Path) -> Path:
    """Return the initramfs of ``manifest`` for ``kernel``, made when the cache has none yet.

    Uncompressed: unpacking costs a guest under TCG more than reading a few MiB.
    """
    listed = entries(manifest, root, cache)
    tree = kernel.modules
    wanted = [name for name in manifest.modules if tree is not None and name in tree]
    # The wanted modules stand for those they depend on, which take long to read.
    keys = [_FORMAT, *(entry.key for entry in listed)]
    keys += [identity(tree.path_of(name)) for name in wanted if tree is not None]
    key = hashlib.sha256("\n".join(keys).encode()).hexdigest()[:32]

    def make(folder: Path) -> None:
        modules = tree.closure(wanted) if tree is not None else []
        with (folder / "initramfs.cpio").open("wb") as file:
            file.writelines(newc(ordered([*listed, *_modules(modules)])))

    return published(cache / "initramfs" / key, make) / "initramfs.cpio"

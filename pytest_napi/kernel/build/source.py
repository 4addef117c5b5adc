# SPDX-License-Identifier: GPL-2.0-only
"""Where a kernel's source comes from: a folder, a tarball or Debian.

    CACHE/sources/trees/HASH/   an extracted tarball, never changed

A source is only ever read: what is built is a copy of it (``work``).
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_napi.cache import published
from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import store
from pytest_napi.kernel.build.apply import git_environment
from pytest_napi.kernel.compression import libarchive
from pytest_napi.kernel.spec import existing_path

FORMS = "a kernel source tree, a tarball of one, or debian:VERSION"
"""The forms of SOURCE, for messages."""

_DEBIAN = "debian:"
_NEEDED = ("Makefile", "Kconfig")  # what every kernel tree has at its top

# What a build in the tree leaves there, by far most of it; "make mrproper" knows the rest.
_PRODUCTS = ("*.o", "*.ko", "*.a", ".*.cmd", "*.mod", ".tmp_*", "vmlinux", ".config")
_PRODUCT_FOLDERS = ("include/config", "include/generated", "arch/*/include/generated")
_OTHER_FOLDERS = (".git",)


@dataclass(frozen=True)
class Source:
    """A source tree that can be copied.

    ``name`` is what the user gave.  ``place`` stays the same while he edits a folder, ``content``
    does not.  ``files`` is None for a tree that never changes, else every file to copy, with a
    text that changes with its content.  ``built_in`` says that somebody has built in it.
    """

    name: str
    root: Path
    place: str
    content: str
    files: Mapping[str, str] | None = None
    built_in: bool = False


def find(text: str, cache: Path, progress: Callable[[str], None]) -> Source:
    """Return the source that SOURCE names; a tarball is extracted into the cache if need be.

    Raises KernelUnusable if there is none or it is not a kernel's, and HostUnfit if it cannot be
    fetched or stored.
    """
    path = existing_path(text)
    try:
        if path is not None and path.is_dir():
            return _folder(text, path.resolve())
    except OSError as error:
        raise KernelUnusable(
            f"{error.filename or text}: cannot read it: {error.strerror}"
        ) from None
    if path is not None:
        return _tarball(text, path, cache, progress)
    if text.startswith(_DEBIAN):
        # Here, since it imports what a build from a tarball has no use for.
        from pytest_napi.kernel import debian  # noqa: PLC0415

        fetched = debian.fetch_source(text.removeprefix(_DEBIAN), cache, progress)
        return _tarball(text, fetched.tarball, cache, progress)
    raise KernelUnusable(f"{text}: does not exist; give {FORMS}")


def _digest(*texts: str) -> str:
    joined = "\0".join(texts)
    return hashlib.sha256(joined.encode(errors="surrogateescape")).hexdigest()


def _folder(text: str, root: Path) -> Source:
    if not _is_kernel(root):
        raise KernelUnusable(f"{text}: no kernel source: it lacks Makefile and Kconfig")
    tracked = _tracked(root)
    files = dict(_stamped(root, tracked or _walked(root)))
    content = _digest(*(part for item in sorted(files.items()) for part in item))
    # Among what git knows there are no products.
    return Source(text, root, _digest(str(root)), content, files, not tracked and _built_in(root))


def _built_in(root: Path) -> bool:
    """Tell whether a kernel was built in the tree itself, as its Makefile does."""
    places = (".config", *_PRODUCT_FOLDERS)
    return any(next(root.glob(pattern), None) is not None for pattern in places)


def _is_kernel(root: Path) -> bool:
    return all((root / name).is_file() for name in _NEEDED)


def _tracked(root: Path) -> list[str]:
    """Return the files of a git checkout, new ones among them and ignored ones not; else []."""
    if not (root / ".git").exists():
        return []
    argv = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(argv, env=git_environment(), capture_output=True, check=False)
    except FileNotFoundError:
        return []  # no git here
    # It fails where the checkout belongs to another user; then it is a folder like others.
    names = os.fsdecode(listed.stdout).split("\0") if listed.returncode == 0 else []
    return [name for name in dict.fromkeys(names) if name]


def _walked(root: Path) -> Iterator[str]:
    for folder, subfolders, files in os.walk(root, onerror=_raise):
        here = Path(folder).relative_to(root)
        linked = {name for name in subfolders if Path(folder, name).is_symlink()}
        subfolders[:] = [name for name in subfolders if name not in linked]
        subfolders[:] = [
            name
            for name in subfolders
            if not _is_one_of(str(here / name), (*_PRODUCT_FOLDERS, *_OTHER_FOLDERS))
        ]
        sources = [name for name in files if not _is_one_of(name, _PRODUCTS)]
        yield from (str(here / name) for name in (*sources, *linked))


def _raise(error: OSError) -> None:
    raise error


def _is_one_of(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _stamped(root: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each file that is there with what tells its content from an older one.

    The change time is in it: no program can set that back, as a checkout or cp -p do the other.
    """
    for name in names:
        try:
            status = os.lstat(f"{root}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted, but git still tracks it
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
            continue  # a repository in the repository
        yield name, f"{status.st_mode:o} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _tarball(text: str, path: Path, cache: Path, progress: Callable[[str], None]) -> Source:
    digest = _digest_of_file(text, path, cache)
    target = cache / "sources" / "trees" / digest[:32]
    if not target.is_dir():
        with store.locked(target.parent, progress):
            for left in target.parent.glob(".new-*"):
                shutil.rmtree(left, ignore_errors=True)  # of a run that was killed
            if not target.is_dir():
                progress(f"extracting {path.name} (a minute)")
            published(target, lambda folder: _extract(path, folder.resolve()))
    return Source(text, _top(path, target), digest, digest)


def _digest_of_file(text: str, path: Path, cache: Path) -> str:
    """Return the SHA-256 of a tarball, which takes a second and so is remembered."""
    try:
        if not path.is_file():  # a FIFO or a device would block
            raise KernelUnusable(f"{text}: neither a file nor a folder; give {FORMS}")
        memo = cache / "sources" / "digests" / store.identity(path)
        digest = store.read_text(memo)
        if not digest:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            store.remember(memo, digest)
    except OSError as error:
        raise KernelUnusable(f"{text}: cannot read it: {error.strerror}") from None
    return digest


def _top(path: Path, folder: Path) -> Path:
    """Return the kernel tree in an extracted archive: at its top or one folder down."""
    for root in (folder, *sorted(folder.iterdir())):
        if _is_kernel(root):
            return root
    raise KernelUnusable(f"{path}: no kernel source: there is no Makefile with a Kconfig in it")


def _extract(path: Path, folder: Path) -> None:
    archive = libarchive()
    from libarchive import extract  # noqa: PLC0415 - not before it is known to load

    flags = extract.EXTRACT_TIME | extract.EXTRACT_PERM | extract.EXTRACT_SECURE_NODOTDOT
    # The paths given are absolute, and ``folder`` holds no link: only the archive's own count.
    flags |= extract.EXTRACT_SECURE_SYMLINKS
    try:
        with archive.file_reader(str(path), format_name="tar", filter_name="all") as entries:
            extract.extract_entries(_placed(path, entries, folder), flags)
    except archive.ArchiveError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise OSError(error.errno, os.strerror(error.errno)) from None
        reason = " ".join(str(error.msg).split())
        raise KernelUnusable(
            f"{path}: no tar archive, or one that is cut off or damaged ({reason}); fetch it again"
        ) from None
    _top(path, folder)


def _placed(path: Path, entries: Any, folder: Path) -> Iterator[Any]:
    """Yield the files, folders and links of an archive with their paths below ``folder``."""
    for entry in entries:
        name = entry.pathname
        if not (entry.isreg or entry.isdir or entry.issym or entry.islnk):
            continue
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise KernelUnusable(f"{path}: refused: it holds the path {name!r}; fetch it again")
        entry.pathname = f"{folder}/{name}"
        if entry.islnk:
            entry.linkpath = f"{folder}/{entry.linkpath}"
        yield entry

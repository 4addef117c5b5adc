# SPDX-License-Identifier: GPL-2.0-only
"""Work trees: a copy of a source that is patched and built in, and kept for the next build.

    CACHE/builds/KEY/source/   the copy, patched
                     object/   what make makes of it (O=)
                     log       what make said last
                     synced    the source's files as they were copied
                     touched   what patches may have changed in source/

Between two builds only those files of source/ are written whose content changes, with a time of
now, so make compiles only what depends on them.  A file is replaced, never written into: it may be
a hard link to the extracted tarball.

A run may be killed at any point.  Patches are applied elsewhere first, ``touched`` is written
before the first file is put in place, and the next run brings everything that is listed there back
to what it should be.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import store
from pytest_napi.kernel.build.apply import apply, paths_of
from pytest_napi.kernel.build.patches import Patch
from pytest_napi.kernel.build.source import Source
from pytest_napi.untrusted import printable


@dataclass(frozen=True)
class Work:
    """The folder of one work tree.  Its lock is held while any of this is called."""

    folder: Path

    @property
    def source(self) -> Path:
        """The copy of the source."""
        return self.folder / "source"

    @property
    def object(self) -> Path:
        """Where make puts what it makes."""
        return self.folder / "object"

    @property
    def log(self) -> Path:
        """What make said, whole."""
        return self.folder / "log"

    def bring_to(
        self,
        source: Source,
        patches: Sequence[Patch],
        clean: Callable[[], None],
        progress: Callable[[str], None],
    ) -> None:
        """Make source/ the source with these patches on it.

        ``clean`` is called to remove the products of a build from a new copy.  Raises
        KernelUnusable, before anything is changed, if a patch does not apply or a file cannot be
        read.
        """
        before = set(json.loads(store.read_text(self.folder / "touched") or "[]"))
        scratch = self.folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)  # of a run that was killed
        scratch.mkdir()
        try:
            after: set[str] = set()
            for patch in patches:
                paths = paths_of(patch, scratch)
                _refuse_links(patch, paths, source.root)
                for path in paths - after:
                    _settle(_own(source, path), scratch / path)
                after |= paths
            apply(patches, scratch)
            touched = before | after
            self._remember("touched", sorted(touched))
            if source.files is None:
                copied = self._link(source, progress)
            else:
                copied = self._sync(source, source.files, touched, progress)
            wanted = {path: _own(source, path) for path in before - after}
            wanted |= {path: _present(scratch / path) for path in after}
            # What goes makes room for what comes: a folder may become a file.
            for path in sorted(touched, key=lambda path: wanted[path] is not None):
                self._settle(wanted[path], path)
            if copied:
                if source.built_in:
                    clean()
                self._remember("synced", source.files or {})
            self._remember("touched", sorted(after))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _remember(self, name: str, value: Collection[str] | Mapping[str, str]) -> None:
        store.write_text(self.folder / name, json.dumps(value))

    def _settle(self, origin: Path | None, path: str) -> None:
        """Make a file of source/ what ``origin`` is, if it is not."""
        _settle(origin, self.source / path)
        if origin is None:
            # make takes the object of a source that is gone for up to date.
            _remove((self.object / path).with_suffix(".o"))

    def _link(self, source: Source, progress: Callable[[str], None]) -> bool:
        """Fill source/ with links to a tree that never changes; False if that was done before."""
        if (self.folder / "synced").exists():
            return False
        self._start_over(source, _tree_files(source.root), _link_or_copy, progress)
        return True

    def _sync(
        self,
        source: Source,
        files: Mapping[str, str],
        touched: Collection[str],
        progress: Callable[[str], None],
    ) -> bool:
        """Bring source/ to the state of a folder, save what patches touch; tell if it differed."""
        text = store.read_text(self.folder / "synced")
        if text is None:
            self._start_over(source, files, _copy, progress)
            return True
        synced: dict[str, str] = json.loads(text)
        gone = synced.keys() - files.keys()
        changed = [path for path, stamp in files.items() if synced.get(path) != stamp]
        for path in (*gone, *changed):
            if path not in touched:
                self._settle(_own(source, path), path)
        return bool(gone or changed)

    def _start_over(
        self,
        source: Source,
        files: Iterable[str],
        place: Callable[[str, str], None],
        progress: Callable[[str], None],
    ) -> None:
        """Make source/ anew, with ``place`` for each file; strings, since there are 80 000."""
        shutil.rmtree(self.source, ignore_errors=True)
        shutil.rmtree(self.object, ignore_errors=True)
        progress(f"copying {source.name}")
        made = set()
        for file in files:
            folder = file.rpartition("/")[0]
            if folder not in made:
                (self.source / folder).mkdir(parents=True, exist_ok=True)
                made.add(folder)
            place(f"{source.root}/{file}", f"{self.source}/{file}")


def _tree_files(root: Path) -> Iterator[str]:
    for folder, subfolders, files in os.walk(root):
        inside = folder.removeprefix(str(root)).lstrip("/")
        links = [name for name in subfolders if Path(folder, name).is_symlink()]
        yield from (f"{inside}/{name}".lstrip("/") for name in (*files, *links))


def _link_or_copy(file: str, target: str) -> None:
    try:
        os.link(file, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        shutil.copy2(file, target, follow_symlinks=False)  # a file system without hard links


def _copy(file: str, target: str) -> None:
    try:
        shutil.copy(file, target, follow_symlinks=False)  # with a time of now
    except OSError as error:
        if error.filename != file or error.filename2 is not None:
            raise
        raise KernelUnusable(f"{file}: cannot read it: {error.strerror}") from None


def _present(file: Path) -> Path | None:
    return file if os.path.lexists(file) else None


def _own(source: Source, path: str) -> Path | None:
    """Return a file of the source; None where it has none, or none that is to be copied."""
    if source.files is not None and path not in source.files:
        return None
    return _present(source.root / path)


def _refuse_links(patch: Patch, paths: Collection[str], root: Path) -> None:
    """Raise KernelUnusable for a path behind a symbolic link: it may lead anywhere."""
    for path in sorted(paths):
        for parent in Path(path).parents:
            if (root / parent).is_symlink() and parent != Path():
                raise KernelUnusable(
                    f"{patch.name}: refused: {printable(path)} is behind the symbolic link {parent}"
                )


def _settle(origin: Path | None, target: Path) -> None:
    """Make ``target`` what ``origin`` is (a file, a link, or nothing) if it is not."""
    if origin is None:
        _remove(target)
        return
    new = target.with_name(f"{target.name}.pytest-napi-new")
    if origin.is_symlink():
        link = origin.readlink()
        if target.is_symlink() and target.readlink() == link:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        new.symlink_to(link)
    else:
        try:
            content, mode = origin.read_bytes(), origin.stat().st_mode & 0o777
        except OSError as error:
            raise KernelUnusable(f"{origin}: cannot read it: {error.strerror}") from None
        if _has(target, content, mode):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content)
        new.chmod(mode)
    new.replace(target)


def _has(target: Path, content: bytes, mode: int) -> bool:
    if target.is_symlink() or not target.is_file():
        return False
    return target.stat().st_mode & 0o777 == mode and target.read_bytes() == content


def _remove(target: Path) -> None:
    """Remove a file, and the folders that are empty then."""
    with suppress(FileNotFoundError, NotADirectoryError):
        target.unlink()
    with suppress(OSError):
        for folder in target.parents:
            folder.rmdir()

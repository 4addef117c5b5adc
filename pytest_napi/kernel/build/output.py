# SPDX-License-Identifier: GPL-2.0-only
"""Copy a built kernel to where a user wants it: whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_napi.errors import HostUnfit
from pytest_napi.kernel.build.results import BuiltKernel


def is_folder(out: str) -> bool:
    """Tell whether ``-o OUT`` names a folder to fill; else it names the image file."""
    return out.endswith("/") or Path(out).is_dir()


def check(out: str) -> None:
    """Raise HostUnfit if nothing can be written to ``OUT``, before the time for a build is spent.

    The folder it is in is made.
    """
    with _written(out):
        folder = Path(out) if is_folder(out) else Path(out).parent
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if not is_folder(out) and Path(out).exists() and not Path(out).is_file():
            raise HostUnfit(f"-o {out}: neither a file nor a folder; give another place")


def place(built: BuiltKernel, out: str) -> Path:
    """Copy a kernel to ``OUT`` and return the path of the image.

    A folder gets vmlinuz, config and lib/modules/RELEASE; a file gets the image, and OUT.config
    beside it.  Raises HostUnfit if it cannot be written.
    """
    with _written(out):
        if is_folder(out):
            _replace_modules(built, Path(out) / "lib/modules" / built.release)
            image, config = Path(out) / "vmlinuz", Path(out) / "config"
        else:
            image, config = Path(out), Path(f"{out}.config")
        # The image last: while it is not there, nobody takes the rest for its own.
        _copy(built.config, config)
        _copy(built.image, image)
    return image


@contextmanager
def _written(out: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostUnfit(
            f"-o {out}: cannot write {error.filename or 'it'}: {error.strerror}; give another place"
        ) from None


def _copy(file: Path, target: Path) -> None:
    descriptor, new = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(file.read_bytes())
        Path(new).chmod(0o644)
        Path(new).replace(target)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise


def _replace_modules(built: BuiltKernel, target: Path) -> None:
    """Put the modules at ``target``, in place of those another build of this release left."""
    if built.modules is None:
        shutil.rmtree(target, ignore_errors=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as new:
        for file in built.modules.rglob("*"):
            if file.is_file():
                copy = Path(new, "modules") / file.relative_to(built.modules)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
        if target.exists():
            target.rename(Path(new, "old"))
        Path(new, "modules").rename(target)

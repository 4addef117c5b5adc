# SPDX-License-Identifier: GPL-2.0-only
"""The cache folder: where it is, and how something new gets into it whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from pytest_napi.errors import HostUnfit


def cache_folder() -> Path:
    """Return the cache folder, made private to this user.

    ``$PYTEST_NAPI_CACHE``, else ``pytest-napi`` in the user's cache folder (``$XDG_CACHE_HOME``).
    Raises HostUnfit when it cannot be made.
    """
    named = os.environ.get("PYTEST_NAPI_CACHE")
    folder = Path(named) if named else platformdirs.user_cache_path("pytest-napi")
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn failures to write below ``folder`` into one line that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HostUnfit(
                f"no space left for the cache folder {folder}: free some, or set PYTEST_NAPI_CACHE"
            ) from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR, errno.EEXIST):
            raise HostUnfit(
                f"cannot write to the cache folder {folder} ({error.strerror}): "
                "set PYTEST_NAPI_CACHE to one that is writable"
            ) from None
        raise


def published(target: Path, make: Callable[[Path], None]) -> Path:
    """Return ``target``, a folder made by ``make`` when it is not there yet.

    It is filled under another name and renamed when complete, so that neither a crash nor two
    processes at once can leave half of it.
    """
    if target.is_dir():
        return target
    with writing(target.parent):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
        try:
            make(folder)
            folder.chmod(0o700)
            try:
                folder.rename(target)
            except OSError:
                if not target.is_dir():  # else another process was faster
                    raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return target

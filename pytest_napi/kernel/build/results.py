# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that were built, in the cache.

    CACHE/kernels/KEY/  vmlinuz  config  release  log  lib/modules/RELEASE/…

A folder appears by one rename when it is whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.cache import published
from pytest_napi.kernel import store
from pytest_napi.kernel.build.work import Work

_MODULE_LISTS = ("modules.order", "modules.builtin", "modules.builtin.modinfo")


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel that was built, in the cache.

    ``image`` and ``config`` stand in one folder, ``modules`` is its lib/modules/RELEASE, None for a
    kernel without modules.  ``log`` is what make said.  ``seconds`` is how long it took to have it,
    and ``cached`` whether it was there before.
    """

    image: Path
    config: Path
    release: str
    modules: Path | None
    log: Path
    seconds: float
    cached: bool


def is_whole(folder: Path) -> bool:
    """Tell whether the folder of a key holds a kernel."""
    return all((folder / name).is_file() for name in ("vmlinuz", "config", "release", "log"))


def load(folder: Path, seconds: float, *, cached: bool) -> BuiltKernel:
    """Return the kernel in the folder of a key, which is whole."""
    release = (folder / "release").read_text().strip()
    modules = folder / "lib/modules" / release
    return BuiltKernel(
        image=folder / "vmlinuz",
        config=folder / "config",
        release=release,
        modules=modules if modules.is_dir() else None,
        log=folder / "log",
        seconds=seconds,
        cached=cached,
    )


def keep(work: Work, image: Path, target: Path, progress: Callable[[str], None]) -> None:
    """Put what make left in a work tree into the folder of a key.

    Raises OSError if it cannot be written.
    """

    def fill(folder: Path) -> None:
        release = (work.object / "include/config/kernel.release").read_text().strip()
        files = {"vmlinuz": image, "config": work.object / ".config", "log": work.log}
        modules = dict(_modules(work.object))
        if modules:
            lists = {name: work.object / name for name in _MODULE_LISTS}
            for place, file in {**modules, **lists}.items():
                if file.exists():
                    files[f"lib/modules/{release}/{place}"] = file
        for place, file in files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, folder / place)
        (folder / "release").write_text(f"{release}\n")

    with store.locked(target.parent, progress):
        for left in (target, *target.parent.glob(".new-*")):
            shutil.rmtree(left, ignore_errors=True)  # it lost files, or its run was killed
        published(target, fill)


def _modules(built: Path) -> Iterator[tuple[str, Path]]:
    """Yield each module that was built: its place in lib/modules/RELEASE, and the file."""
    for line in (store.read_text(built / "modules.order") or "").split():
        # "net/veth.o" from 6.4 on, "net/veth.ko" from 5.3, "kernel/net/veth.ko" before.
        name = line.removeprefix("kernel/").removesuffix(".o").removesuffix(".ko") + ".ko"
        if (built / name).is_file():
            yield f"kernel/{name}", built / name

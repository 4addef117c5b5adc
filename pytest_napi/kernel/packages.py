# SPDX-License-Identifier: GPL-2.0-only
"""Which .debs make up one kernel: a single package, or the parts in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import store, unpacked
from pytest_napi.kernel.architecture import ARCHITECTURES
from pytest_napi.kernel.deb import Package, check_architecture, read_package
from pytest_napi.kernel.naming import kernel_name, other_parts, pointed_to


def image_from(path: Path, cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the image of the kernel in ``path``, a .deb or a folder, unpacked to the cache.

    Which unpacked kernel belongs to these very files is remembered, so the second time none of them
    is opened.  Raises what ``choose`` and ``unpacked.unpack`` raise.
    """
    debs = sorted(path.glob("*.deb")) if path.is_dir() else [path]
    present = hashlib.sha256(" ".join(store.identity(deb) for deb in debs).encode())
    memo = cache / "packages" / present.hexdigest()
    known = store.read_text(memo)
    image = unpacked.image_of(unpacked.folder_of(cache, known)) if known else None
    if image is None:
        image = unpacked.unpack(choose(path), cache, progress)
        store.remember(memo, image.parent.name)
    return image


def choose(path: Path) -> list[Path]:
    """Return the .debs of the kernel that ``path``, a .deb or a folder of some, stands for.

    Raises KernelUnusable if it is none, several, or a part of one, and HostUnfit without
    libarchive.
    """
    if path.is_dir():
        return [package.path for package in _in_folder(path)]
    package = read_package(path)
    check_architecture(package)
    _reject_meta(package)
    _check_complete(path, [package])
    return [package.path]


def _in_folder(folder: Path) -> Sequence[Package]:
    debs = sorted(folder.glob("*.deb"))
    if not debs:
        raise KernelUnusable(f"{folder}: a folder without a .deb{_build_tree_hint(folder)}")
    packages = [read_package(path) for path in debs]
    kernels: dict[str, list[Package]] = {}
    for package in packages:
        name = kernel_name(package.name)
        if name is not None and pointed_to(package.name, package.depends) is None:
            kernels.setdefault(name.release, []).append(package)
    if not kernels:
        for package in packages:
            _reject_meta(package)
        names = ", ".join(package.name for package in packages)
        raise KernelUnusable(f"{folder}: no kernel package among its .debs ({names})")
    if len(kernels) > 1:
        raise KernelUnusable(
            f"{folder}: several kernels ({', '.join(kernels)}); give a folder with one of them"
        )
    (parts,) = kernels.values()
    for package in parts:
        check_architecture(package)
    _check_complete(folder, parts)
    return parts


def _build_tree_hint(folder: Path) -> str:
    for row in ARCHITECTURES.values():
        if (folder / row.image).exists():
            return f"; it looks like a build tree: give {folder / row.image}"
    return "; give the folder that has the kernel's packages"


def _reject_meta(package: Package) -> None:
    """Raise for a package that only depends on a kernel package."""
    kernel = pointed_to(package.name, package.depends)
    if kernel is not None:
        raise KernelUnusable(
            f"{package.path}: {package.name} is a meta package without a kernel; "
            f"give {kernel}, which it depends on"
        )


def _check_complete(path: Path, parts: Sequence[Package]) -> None:
    """Raise where packages that hold other parts of the same kernel are not there."""
    present = {package.name for package in parts}
    needed = {name for package in parts for name in other_parts(package.name, package.depends)}
    missing = sorted(needed - present)
    if missing:
        raise KernelUnusable(
            f"{path}: only a part of a kernel, without {', '.join(missing)}; "
            "put all its packages into one folder and give that"
        )

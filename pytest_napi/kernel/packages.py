# SPDX-License-Identifier: GPL-2.0-only
"""Which packages make up one kernel: a single .deb or .rpm, or the parts in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import store, unpacked
from pytest_napi.kernel.deb import Package, check_architecture, read_package
from pytest_napi.kernel.formats import DEB, FORMATS, RPM, format_of
from pytest_napi.kernel.naming import kernel_name, other_parts, pointed_to


def image_from(path: Path, cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the image of the kernel in ``path``, a package or a folder, unpacked to the cache.

    Which unpacked kernel belongs to these very files is remembered, so the second time none of them
    is opened.  Raises what ``choose`` and ``unpacked.unpack`` raise.
    """
    files = _packages_in(path) if path.is_dir() else [path]
    present = hashlib.sha256(" ".join(store.identity(file) for file in files).encode())
    memo = cache / "packages" / present.hexdigest()
    known = store.read_text(memo)
    image = unpacked.image_of(unpacked.folder_of(cache, known)) if known else None
    if image is None:
        image = unpacked.unpack(choose(path), cache, progress)
        store.remember(memo, image.parent.name)
    return image


def choose(path: Path) -> list[Path]:
    """Return the packages of the kernel that ``path``, a package or a folder of some, stands for.

    Of .rpms all are taken: several kernels among them are found when they are unpacked.  Raises
    KernelUnusable if it is none, several, or a part of one, and HostUnfit without libarchive.
    """
    if path.is_dir():
        files = _packages_in(path)
        if files[0].suffix == RPM.suffix:
            return files
        return [package.path for package in _of_one_kernel(path, files)]
    if format_of(path) is RPM:
        return [path]
    package = read_package(path)
    check_architecture(package)
    _reject_meta(package)
    _check_complete(path, [package])
    return [package.path]


def _packages_in(folder: Path) -> list[Path]:
    """Return the packages in a folder; raise KernelUnusable if there are none or two formats."""
    found = [files for row in FORMATS if (files := sorted(folder.glob(f"*{row.suffix}")))]
    if not found:
        raise KernelUnusable(
            f"{folder}: a folder without a {DEB.suffix} or {RPM.suffix}, and no build tree; "
            "give the folder that has the kernel's packages"
        )
    if len(found) > 1:
        raise KernelUnusable(
            f"{folder}: holds {DEB.suffix} and {RPM.suffix} packages; "
            "give a folder with those of one kernel"
        )
    return found[0]


def _of_one_kernel(folder: Path, debs: Sequence[Path]) -> Sequence[Package]:
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

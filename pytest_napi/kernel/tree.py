# SPDX-License-Identifier: GPL-2.0-only
"""Kernel build trees: a source tree built in place, or the output folder of ``make O=``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import store
from pytest_napi.kernel.architecture import ARCHITECTURES, Architecture
from pytest_napi.kernel.config import KernelConfig, parse_config

_CONFIG = ".config"
_RELEASE = "include/config/kernel.release"
_BUILT_CONFIG = "include/config/auto.conf"


def is_tree(folder: Path) -> bool:
    """Tell whether a folder is a kernel tree, be it built or not."""
    if any((folder / row.image).is_file() for row in ARCHITECTURES.values()):
        return True
    marks = (_CONFIG, "Kconfig")  # an output folder has no Kconfig
    return (folder / "Makefile").is_file() and any((folder / name).is_file() for name in marks)


def image_in(folder: Path) -> Path:
    """Return the image in a build tree, that of the architecture it is configured for.

    Raises KernelUnusable with the make command where it is not configured or not built.
    """
    config = _config(folder)
    rows = [row for row in ARCHITECTURES.values() if config is None or _is_for(config, row)]
    if not rows:
        raise KernelUnusable(
            f"{folder}: configured for another architecture; "
            f"only {', '.join(ARCHITECTURES)} kernels can be tested"
        )
    for row in rows:
        if (folder / row.image).is_file():
            return folder / row.image
    if config is None:
        raise KernelUnusable(
            f"{folder}: source tree that is not configured: make defconfig, then make"
        )
    name = Path(rows[0].image).name
    raise KernelUnusable(f"{folder}: build tree without an image: make {name}")


def tree_of(image: Path) -> Path | None:
    """Return the build tree that an image is in, None for one elsewhere.

    Links are followed: a build makes arch/x86_64/boot/bzImage one to the image.
    """
    real = image.resolve()
    for row in ARCHITECTURES.values():
        place = Path(row.image).parts
        folder = real.parents[len(place) - 1] if len(real.parts) > len(place) else None
        if folder is not None and real.parts[-len(place) :] == place:
            return folder
    return None


def config_is_newer(folder: Path) -> bool:
    """Tell whether the .config was changed after it was last built.

    make writes include/config/auto.conf from it before it builds anything.
    """
    try:
        built = (folder / _BUILT_CONFIG).stat().st_mtime
        return (folder / _CONFIG).stat().st_mtime > built
    except OSError:
        return False


def doubts(folder: Path, image: Path, release: str) -> Iterator[str]:
    """Yield a line for each thing in a build tree that does not belong to the image in it.

    ``release`` is what the image says about itself: what counts is the image.
    """
    remedy = f"make {image.name} to have one kernel"
    other = (store.read_text(folder / _RELEASE) or release).strip()
    if other != release:
        yield f"{folder}: the image is {release}, the tree is at {other}: {remedy}"
    config = _config(folder)
    if config is not None and not config.belongs_to(release):
        yield f"{folder}: {_CONFIG} is of {config.series} and not of the image, {release}: {remedy}"
    elif config_is_newer(folder):
        yield f"{folder}: {_CONFIG} was changed after the image was built: {remedy}"


def _config(folder: Path) -> KernelConfig | None:
    config = parse_config(store.read_text(folder / _CONFIG) or "", str(folder / _CONFIG))
    return config if config.options else None


def _is_for(config: KernelConfig, row: Architecture) -> bool:
    # Each arch/NAME/Kconfig defines an option of that name.
    return config.enabled(Path(row.image).parts[1].upper())

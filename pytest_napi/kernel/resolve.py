# SPDX-License-Identifier: GPL-2.0-only
"""From a KernelSpec to a Kernel: find its image, its config and its modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import debian, packages, store
from pytest_napi.kernel.architecture import ARCHITECTURES, X86_64
from pytest_napi.kernel.config import KernelConfig, parse_config
from pytest_napi.kernel.deb import MAGIC
from pytest_napi.kernel.image import ImageInfo, embedded_config, inspect
from pytest_napi.kernel.kernel import Kernel
from pytest_napi.kernel.modules import ModuleTree
from pytest_napi.kernel.spec import FORMS, KernelSpec, existing_path

_DEBIAN = "debian:"


def resolve(spec: KernelSpec, cache: Path, progress: Callable[[str], None]) -> Kernel:
    """Return the kernel that ``--kernel`` names; what is fetched or unpacked goes to ``cache``.

    ``progress`` is called with one line for each step that takes seconds.  A path that exists is
    taken as one, whatever it is called.  Raises KernelUnusable if there is no such kernel or it is
    none, and HostUnfit if this host cannot fetch or unpack it.
    """
    path = existing_path(spec.text)
    cache = cache.absolute()
    if path is None:
        if spec.text.startswith(_DEBIAN):
            fetched = debian.fetch(spec.text.removeprefix(_DEBIAN), X86_64, cache, progress)
            return _from_image(spec.label, f"{spec.text} ({fetched.package})", fetched.image, cache)
        raise KernelUnusable(f"{spec.text}: does not exist; give {FORMS}")
    image = path
    if path.is_dir() or _is_deb(path):
        image = packages.image_from(path.absolute(), cache, progress)
    return _from_image(spec.label, spec.text, image.absolute(), cache)


def _is_deb(path: Path) -> bool:
    try:
        # A FIFO or a device would block; inspect() says what it is.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False  # inspect() says why it cannot be read


def _from_image(label: str | None, source: str, image: Path, cache: Path) -> Kernel:
    info = inspect(image)
    return Kernel(
        label=label or info.release,
        source=source,
        image=image,
        architecture=info.architecture,
        release=info.release,
        banner=info.banner,
        init_size=info.init_size,
        config=_config_of(image, info, cache),
        modules=_modules_of(image, info.release),
    )


def _config_places(image: Path, release: str) -> Iterator[Path]:
    """Yield where the config of an image may be, most certain first."""
    yield image.with_name(f"config-{release}")
    yield image.with_name(f"{image.name}.config")
    yield image.with_name(".config")
    yield image.with_name("config")
    for row in ARCHITECTURES.values():
        depth = len(Path(row.image).parts)
        if image.parts[-depth:] == Path(row.image).parts:
            yield image.parents[depth - 1] / ".config"  # the image in its build tree


def _config_of(image: Path, info: ImageInfo, cache: Path) -> KernelConfig | None:
    for path in _config_places(image, info.release):
        text = store.read_text(path)
        if text is not None:
            config = parse_config(text, str(path))
            if config.options and config.belongs_to(info.release):
                return config
    # Reading it out takes a second, so the answer is kept, be it "" for none.
    memo = cache / "embedded-configs" / store.identity(image)
    text = store.read_text(memo)
    if text is None:
        text = embedded_config(image) or ""
        store.remember(memo, text)
    return parse_config(text, f"{image} (IKCONFIG)") if text else None


def _modules_of(image: Path, release: str) -> ModuleTree | None:
    """Find lib/modules/RELEASE near an image.

    The host's own modules belong to a kernel in /boot only: another one of the same release may
    have been built with other options.
    """
    beside = image.parent
    above = [beside.parent] if beside.parent != Path("/") or beside == Path("/boot") else []
    for folder in (beside, *above):
        for tree in (folder / "lib/modules" / release, folder / "usr/lib/modules" / release):
            if tree.is_dir():
                return ModuleTree(tree)
    # Debian keeps the image among the modules from 7.2 on, other distributions have for long.
    if beside.name == release and beside.parent.name == "modules":
        return ModuleTree(beside)
    return None

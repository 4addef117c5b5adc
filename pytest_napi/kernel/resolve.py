# SPDX-License-Identifier: GPL-2.0-only
"""From a KernelSpec to a Kernel: find its image, its config and its modules."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import debian, formats, host, packages, store, tree
from pytest_napi.kernel.config import KernelConfig, parse_config
from pytest_napi.kernel.image import embedded_config, inspect
from pytest_napi.kernel.kernel import Kernel
from pytest_napi.kernel.modules import ModuleTree, built
from pytest_napi.kernel.spec import DEBIAN, FORMS, HOST, KernelSpec, existing_path


def resolve(spec: KernelSpec, cache: Path, progress: Callable[[str], None]) -> Kernel:
    """Return the kernel that ``--kernel`` names; what is fetched or unpacked goes to ``cache``.

    ``progress`` is called with one line for each step that takes seconds, and for what of a build
    tree does not belong to its image.  A path that exists is taken as one, whatever it is called.
    Raises KernelUnusable if there is no such kernel or it is none, and HostUnfit if this host
    cannot fetch, unpack or read it.
    """
    cache = cache.absolute()
    path = existing_path(spec.text)
    source = spec.text
    configs: tuple[Path, ...] = ()
    if path is not None:
        image = _image_at(path.absolute(), cache, progress)
    elif spec.text.startswith(DEBIAN):
        fetched = debian.fetch_kernel(spec.text, cache, progress)
        image, source = fetched.image, f"{spec.text} ({fetched.package})"
    elif spec.text == HOST:
        running = host.find()
        image, configs = running.image, running.configs
    else:
        raise KernelUnusable(f"{spec.text}: does not exist; give {FORMS}")
    info = inspect(image)
    folder = tree.tree_of(image)
    for doubt in tree.doubts(folder, image, info.release) if folder else ():
        progress(doubt)
    return Kernel(
        label=spec.label or info.release,
        source=source,
        image=image,
        architecture=info.architecture,
        release=info.release,
        banner=info.banner,
        init_size=info.init_size,
        config=_config_of(image, info.release, folder, configs, cache),
        modules=_modules_of(image, info.release, folder),
    )


def _image_at(path: Path, cache: Path, progress: Callable[[str], None]) -> Path:
    """Return the image that a path stands for: itself, or the one in a build tree or packages."""
    if path.is_dir():
        if tree.is_tree(path):
            return tree.image_in(path)
        return packages.image_from(path, cache, progress)
    return packages.image_from(path, cache, progress) if formats.format_of(path) else path


def _config_of(
    image: Path, release: str, folder: Path | None, more: Iterable[Path], cache: Path
) -> KernelConfig | None:
    """Return the config of an image in the build tree ``folder`` (None: it is in none).

    A file near the image is taken first, since reading the image's own takes a second, except
    where the file was changed since.
    """

    def near() -> KernelConfig | None:
        places = [*_config_places(image, release, folder), *more]
        return next(filter(None, (_read_config(path, release) for path in places)), None)

    if folder is not None and tree.config_is_newer(folder):
        return _embedded(image, cache) or near()
    return near() or _embedded(image, cache)


def _config_places(image: Path, release: str, folder: Path | None) -> Iterator[Path]:
    """Yield where the config of an image may be, most certain first."""
    yield image.with_name(f"config-{release}")
    yield image.with_name(f"{image.name}.config")
    yield image.with_name(".config")
    yield image.with_name("config")
    if folder is not None:
        yield folder / ".config"


def _read_config(path: Path, release: str) -> KernelConfig | None:
    """Read a config file, which may be gzipped; None for what is not that kernel's config."""
    text = _unzipped(path) if path.suffix == ".gz" else store.read_text(path)
    config = parse_config(text or "", str(path))
    return config if config.options and config.belongs_to(release) else None


def _unzipped(path: Path) -> str | None:
    with suppress(OSError, EOFError, zlib.error, UnicodeDecodeError):
        return gzip.decompress(path.read_bytes()).decode()
    return None


def _embedded(image: Path, cache: Path) -> KernelConfig | None:
    # Reading it out takes a second, so the answer is kept, be it "" for none.
    memo = cache / "embedded-configs" / store.identity(image)
    text = store.read_text(memo)
    if text is None:
        text = embedded_config(image) or ""
        store.remember(memo, text)
    return parse_config(text, f"{image} (IKCONFIG)") if text else None


def _modules_of(image: Path, release: str, folder: Path | None) -> ModuleTree | None:
    """Find lib/modules/RELEASE near an image, or the modules of the build tree it is in.

    The host's own modules belong to a kernel in /boot only: another one of the same release may
    have been built with other options.
    """
    beside = image.parent
    above = [beside.parent] if beside.parent != Path("/") or beside == Path("/boot") else []
    for near in (beside, *above):
        for root in (near / "lib/modules" / release, near / "usr/lib/modules" / release):
            if root.is_dir():
                return ModuleTree(root)
    # Debian keeps the image among the modules from 7.2 on, other distributions have for long.
    if beside.name == release and beside.parent.name == "modules":
        return ModuleTree(beside)
    return ModuleTree(folder, built) if folder is not None else None

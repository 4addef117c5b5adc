# SPDX-License-Identifier: GPL-2.0-only
"""Build a kernel, or find it built.

A result is kept under a key of all that goes in: source, merged config, patches, architecture,
compiler.  A work tree is kept under one without the patches and without what a user edits, so that
the next of these builds is incremental.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.cache import writing
from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import store
from pytest_napi.kernel.architecture import X86_64, Architecture
from pytest_napi.kernel.build import fragments, results, tools
from pytest_napi.kernel.build.make import Make, MakeFailed, Watch
from pytest_napi.kernel.build.patches import Patch, read_all
from pytest_napi.kernel.build.results import BuiltKernel
from pytest_napi.kernel.build.source import Source, find
from pytest_napi.kernel.build.work import Work
from pytest_napi.kernel.config import KernelConfig, parse_config
from pytest_napi.shipped import shipped

GUEST_CONFIG = shipped("configs/guest.config")
"""What every guest needs; merged before all other fragments.  Options come and go between versions;
what a guest cannot do without is checked again before it boots."""

BASE = "allnoconfig"
"""The configuration a build starts from unless another is asked for."""

_FORMAT = "1"  # of all keys; one more makes every older work tree and result unused

# They take the fragments as they decide (KCONFIG_ALLCONFIG); after the others these are added.
_ALL = ("allnoconfig", "allyesconfig", "allmodconfig", "alldefconfig")
# None of these asks anything, and each always gives the same.
_BASES = re.compile(rf"{'|'.join(_ALL)}|tinyconfig|[\w.-]*defconfig")
_NO_SUCH_BASE = re.compile(r"No rule to make target|Can't find default configuration")


class BuildFailed(KernelUnusable):
    """The source does not build: ``detail`` has the compiler's errors."""


@dataclass(frozen=True)
class _Order:
    """All that goes into a kernel."""

    source: Source
    asked: Mapping[str, fragments.Asked]
    patches: Sequence[Patch]
    base: str
    architecture: Architecture
    compiler: str

    @property
    def fragment(self) -> str:
        """The fragments merged into one."""
        return fragments.text_of(self.asked)

    @property
    def _settings(self) -> tuple[str, ...]:
        return (self.fragment, self.base, self.architecture.name, self.compiler)

    @property
    def work_key(self) -> str:
        """The key of the work tree, which patch sets and edits of a folder share."""
        return _key(self.source.place, *self._settings)

    @property
    def result_key(self) -> str:
        """The key of the kernel."""
        diffs = (hashlib.sha256(patch.diff).hexdigest() for patch in self.patches)
        return _key(self.source.content, *self._settings, *diffs)

    @property
    def length_key(self) -> str:
        """The key of builds that take about as many steps."""
        return _key(self.source.place, self.base, self.architecture.name)


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join((_FORMAT, *parts)).encode()).hexdigest()[:32]


def build(
    source: str,
    configs: Sequence[Path],
    patches: Sequence[Path],
    *,
    cache: Path,
    base: str = BASE,
    jobs: int | None = None,
    progress: Callable[[str], None],
    live: Callable[[str], None] | None = None,
) -> BuiltKernel:
    """Build the kernel of a source, with config fragments and patches, unless it was built before.

    The source is a folder (never written to), a tarball or ``debian:VERSION``; ``jobs`` default to
    one a CPU.  ``progress`` gets a line for each step that takes seconds, and every 30 seconds of
    compiling unless ``live`` is given: that gets a line for each file, to be shown in place of the
    one before.  Raises KernelUnusable for bad input, its subclass BuildFailed for a source that
    does not build, and HostUnfit if this host cannot build.
    """
    started = time.monotonic()
    cache = cache.absolute()
    if not _BASES.fullmatch(base):
        raise KernelUnusable(
            f"--base={base}: not a configuration that can be started from; "
            f"give {', '.join(_ALL)}, tinyconfig or a defconfig"
        )
    asked = fragments.merge([GUEST_CONFIG, *configs])
    wanted = parse_config(fragments.text_of(asked), "the fragments")
    read = read_all(patches)
    tools.require(wanted, patches=bool(read))
    cached = True
    with writing(cache):
        found = find(source, cache, progress)
        order = _Order(found, asked, read, base, X86_64, tools.compiler_identity())
        target = cache / "kernels" / order.result_key
        if not results.is_whole(target):
            work = Work(cache / "builds" / order.work_key)
            with store.locked(work.folder, progress):
                if not results.is_whole(target):  # else another run made it meanwhile
                    _build(order, work, jobs or os.cpu_count() or 1, progress, live)
                    results.keep(work, _image(order, work), target, progress)
                    cached = False
    return results.load(target, time.monotonic() - started, cached=cached)


def _image(order: _Order, work: Work) -> Path:
    return work.object / order.architecture.image


def _build(
    order: _Order,
    work: Work,
    jobs: int,
    progress: Callable[[str], None],
    live: Callable[[str], None] | None,
) -> None:
    """Build in a work tree, whose lock is held."""
    name = order.source.name
    lengths = work.folder.parent / "lengths" / order.length_key
    work.log.write_bytes(b"")
    make = Make(work.source, work.object, order.architecture, jobs, work.log)
    try:
        work.bring_to(order.source, order.patches, make.clean_source, progress)
        whole = not work.object.exists()
        config = _configure(order, work, make)
        watch = Watch(name, progress, live)
        if whole:
            with suppress(ValueError):
                watch.total = int(store.read_text(lengths) or "")
        progress(f"building {name} in {work.folder}")
        modules = config.enabled("MODULES") and "m" in config.options.values()
        make.run([make.target.image, *(["modules"] if modules else [])], watch)
    except MakeFailed as failed:
        raise BuildFailed(
            f"{name}: does not build: {failed}; all of make's output is in {work.log}",
            "\n".join(failed.lines[1:]),
        ) from None
    if whole:
        store.remember(lengths, str(watch.steps))
    if not _image(order, work).is_file():
        raise BuildFailed(f"{name}: does not build: make left no {order.architecture.image}")


def _configure(order: _Order, work: Work, make: Make) -> KernelConfig:
    """Make the .config, and check that it is what was asked for and can be built here."""
    fragment = work.folder / "fragment"
    store.write_text(fragment, order.fragment)
    at_once = order.base in _ALL
    try:
        make.run([order.base, *([f"KCONFIG_ALLCONFIG={fragment}"] if at_once else [])])
    except MakeFailed as failed:
        if not at_once and _NO_SUCH_BASE.search(str(failed)):
            raise KernelUnusable(
                f"--base={order.base}: {order.source.name} has no such configuration"
            ) from None
        raise
    path = work.object / ".config"
    if not at_once:
        with path.open("a") as file:
            file.write(order.fragment)
        make.run(["olddefconfig"])
    config = parse_config(path.read_text("utf-8", "replace"), str(path))
    unmet = fragments.unmet(
        order.asked, config, work.source, make.target.folder, any_version=GUEST_CONFIG
    )
    if unmet:
        more = f" (and {len(unmet) - 1} more options were not taken)" if len(unmet) > 1 else ""
        raise KernelUnusable(unmet[0] + more, "\n".join(unmet[1:]))
    tools.require(config, patches=bool(order.patches))
    return config

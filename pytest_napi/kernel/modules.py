# SPDX-License-Identifier: GPL-2.0-only
"""The modules of a kernel: where they are, and what each needs loaded before it.

Neither a package nor a build tree has a modules.dep (depmod makes it at installation), so
dependencies are read from the ``.modinfo`` section of the modules themselves.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.compression import decompressed


def _unzstd(data: bytes) -> bytes:
    return b"".join(decompressed(data))


_READERS: Mapping[str, Callable[[bytes], bytes]] = {
    ".ko": bytes,
    ".ko.gz": gzip.decompress,
    ".ko.xz": lzma.decompress,
    ".ko.zst": _unzstd,
}


def module_name(name: str) -> str:
    """Return a module's name as the kernel has it: file names may hold "-" for "_"."""
    return name.replace("-", "_")


def _split(file: str) -> tuple[str, str] | None:
    """Split "crc32c-intel.ko.xz" into the module's name and its suffix; None for other files."""
    stem, mark, compression = file.rpartition(".ko")
    suffix = mark + compression
    return (module_name(stem), suffix) if mark and stem and suffix in _READERS else None


@dataclass(frozen=True)
class Module:
    """One loadable module."""

    name: str
    path: Path

    def read(self) -> bytes:
        """Return the module decompressed: the ELF file that finit_module(2) takes.

        Raises KernelUnusable if it is gone or damaged.
        """
        suffix = self.path.name[self.path.name.rindex(".ko") :]
        try:
            return _READERS[suffix](self.path.read_bytes())
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            raise KernelUnusable(f"{self.path}: module cannot be read: {error}") from error

    def modinfo(self) -> list[tuple[str, str]]:
        """Return the pairs of the ``.modinfo`` section in order; a key may occur more than once.

        Raises KernelUnusable if the file is damaged.
        """
        # Loaded only here: a kernel is resolved in less time than pyelftools needs to load.
        from elftools.common.exceptions import ELFError  # noqa: PLC0415
        from elftools.elf.elffile import ELFFile  # noqa: PLC0415

        try:
            section = ELFFile(io.BytesIO(self.read())).get_section_by_name(".modinfo")
        except ELFError as error:
            raise KernelUnusable(f"{self.path}: not a kernel module: {error}") from error
        data: bytes = section.data() if section is not None else b""
        pairs = (
            text.decode("utf-8", "replace").partition("=") for text in data.split(b"\0") if text
        )
        return [(key, value) for key, _, value in pairs]

    @cached_property
    def dependencies(self) -> tuple[str, ...]:
        """The modules to load before this one: ``depends=``, then ``softdep=pre:`` (optional)."""
        needed: list[str] = []
        for key, value in self.modinfo():
            if key == "depends":
                needed += value.split(",")
            elif key == "softdep":
                needed += _before(value)
        return tuple(dict.fromkeys(module_name(name) for name in needed if name))


def _before(softdep: str) -> list[str]:
    """Return the names that "pre: a b post: c" wants loaded before."""
    return softdep.partition("pre:")[2].partition("post:")[0].split()


def installed(root: Path) -> Iterator[Path]:
    """Yield the files of a ``lib/modules/RELEASE`` folder, the one that counts first."""
    for folder, subfolders, files in os.walk(root):
        # In depmod's order "updates" comes before "kernel": what a user put there wins.
        subfolders.sort(reverse=True)
        yield from (Path(folder, file) for file in sorted(files))


def built(root: Path) -> Iterator[Path]:
    """Yield the modules that a build tree's ``modules.order`` lists and that are there.

    It lists objects from 6.3 on (f65a486821cf) and modules before, until 5.3 below "kernel/".
    """
    try:
        lines = (root / "modules.order").read_text(errors="replace").split()
    except OSError:
        return
    for line in lines:
        for place in (line, line.removeprefix("kernel/")):
            file = (root / place).with_suffix(".ko")
            if os.path.isfile(file):  # noqa: PTH113 - Path.is_file() may raise
                yield file
                break


class ModuleTree:
    """The modules of one kernel below ``root``; they are looked for when first asked about.

    ``files`` finds them: in a ``lib/modules/RELEASE`` folder, or in a build tree (``built``).
    Where two have the same name the first one counts.
    """

    def __init__(self, root: Path, files: Callable[[Path], Iterable[Path]] = installed) -> None:
        self.root = root
        self._files = files

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"

    @cached_property
    def _modules(self) -> Mapping[str, Module]:
        found: dict[str, Module] = {}
        for file in self._files(self.root):
            parts = _split(file.name)
            if parts is not None:
                found.setdefault(parts[0], Module(parts[0], file))
        return found

    def __contains__(self, name: object) -> bool:
        """Tell whether a module can be loaded from this tree."""
        return isinstance(name, str) and module_name(name) in self._modules

    def path_of(self, name: str) -> Path:
        """Return the file of a module that is in the tree; KeyError for another."""
        return self._modules[module_name(name)].path

    def closure(self, names: Iterable[str]) -> list[Module]:
        """Return the named modules and all they depend on, in the order in which to load them.

        Names that are not in the tree are left out: they are built in, or the kernel lacks them,
        which its config tells.  Raises KernelUnusable for a damaged module.
        """
        order: dict[str, Module] = {}
        entered: set[str] = set()

        def enter(name: str) -> None:
            module = self._modules.get(name)
            if module is None or name in entered:
                return
            entered.add(name)
            for needed in module.dependencies:
                enter(needed)
            order[name] = module

        for name in names:
            enter(module_name(name))
        return list(order.values())

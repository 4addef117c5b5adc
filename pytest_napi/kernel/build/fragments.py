# SPDX-License-Identifier: GPL-2.0-only
"""Kconfig fragments: read, merged, and held against the config that came of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.config import KernelConfig, parse_config
from pytest_napi.untrusted import printable

_SET = re.compile(r"CONFIG_(\w+)=(.*)")
# make itself takes "#CONFIG_X is not set" for a comment and says nothing.
_UNSET = re.compile(r"#\s*CONFIG_(\w+)\s+is\s+not\s+set")
_VALUE = re.compile(r'y|m|n|-?\d+|0[xX][0-9a-fA-F]+|"(?:[^"\\]|\\.)*"')
_ALLOWED = "give CONFIG_NAME=VALUE or # CONFIG_NAME is not set"


@dataclass(frozen=True)
class Asked:
    """One option a fragment asks for: the line as a .config has it, and where it stands."""

    name: str
    line: str
    file: Path
    number: int

    @property
    def place(self) -> str:
        """The file and the line number, for messages."""
        return f"{self.file}:{self.number}"


def read_fragment(path: Path) -> dict[str, Asked]:
    """Read one fragment; ``=n`` and "is not set" are the same.

    Raises KernelUnusable with file and line if it cannot be read, asks for nothing, has a line that
    is no option, or contradicts itself.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise KernelUnusable(
            f"{path}: cannot read this config fragment: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise KernelUnusable(f"{path}: no config fragment: it is not a text") from None
    asked: dict[str, Asked] = {}
    for number, line in enumerate(text.split("\n"), 1):
        option = _option(line.strip(), path, number)
        if option is None:
            continue
        before = asked.setdefault(option.name, option)
        if before.line != option.line:
            raise KernelUnusable(
                f"{option.place}: {option.line}, but line {before.number} says {before.line}: "
                "drop one of them"
            )
    if not asked:
        raise KernelUnusable(f"{path}: no option in this config fragment; {_ALLOWED}")
    return asked


def _option(line: str, path: Path, number: int) -> Asked | None:
    unset = _UNSET.fullmatch(line)
    if unset:
        return Asked(unset[1], f"# CONFIG_{unset[1]} is not set", path, number)
    if not line or line.startswith("#"):
        return None
    match = _SET.fullmatch(line)
    if match is None:
        raise KernelUnusable(f"{path}:{number}: {printable(line)!r} is no option: {_ALLOWED}")
    name, value = match[1], match[2]
    if not _VALUE.fullmatch(value):
        raise KernelUnusable(
            f"{path}:{number}: {printable(value)!r} is no value for CONFIG_{name}: give y, m, n, a "
            'number or a text in "", with nothing behind it'
        )
    return Asked(name, f"# CONFIG_{name} is not set" if value == "n" else line, path, number)


def merge(paths: Sequence[Path]) -> dict[str, Asked]:
    """Read fragments in order; where two differ the later one wins."""
    asked: dict[str, Asked] = {}
    for path in paths:
        asked |= read_fragment(path)
    return asked


def text_of(asked: Mapping[str, Asked]) -> str:
    """Return the merged fragment, as make reads it."""
    return "".join(f"{option.line}\n" for option in asked.values())


def unmet(
    asked: Mapping[str, Asked],
    config: KernelConfig,
    tree: Path,
    arch: str,
    any_version: Path | None = None,
) -> list[str]:
    """Return a line for each option that the config does not have as asked, with the likely cause.

    The last fragment's come first: those of the ones before are often a consequence.  ``tree`` is
    the source, whose Kconfig files tell; ``arch`` its folder in arch/.  ``any_version`` is a
    fragment for kernels of all versions: an option of it that the tree does not have is left out.
    """
    wanted = parse_config(text_of(asked), "")
    lost = [
        option
        for name, option in asked.items()
        if not _same(wanted.value(name), config.value(name))
    ]
    files = [option.file for option in asked.values()]
    lost.sort(key=lambda option: -files.index(option.file))
    places = _definitions({option.name for option in lost}, tree, arch) if lost else {}
    return [
        f"{option.place}: {_verdict(option, config, places)}"
        for option in lost
        if option.name in places or option.file != any_version
    ]


def _same(wanted: str, got: str) -> bool:
    """Compare two values: numbers by what they are, and no text is the same as not set."""
    if wanted.lower().startswith("0x") and got.lower().startswith("0x"):
        return int(wanted, 16) == int(got, 16)
    return wanted == got or {wanted, got} == {"", "n"}


def _verdict(option: Asked, config: KernelConfig, places: Mapping[str, str]) -> str:
    value = config.value(option.name)
    got = "not set" if value == "n" else f"{value or 'an empty text'}"
    place = places.get(option.name)
    if place is None:
        why = "the tree has no such symbol"
    elif value == "n":
        why = f"it depends on something that is off, or another choice excludes it; see {place}"
    else:
        why = f"something that is on selects it, or it cannot have that value; see {place}"
    asked = f"CONFIG_{option.name}=n" if option.line.startswith("#") else option.line
    return f"{asked} asked, {got} got: {why}"


def _definitions(names: set[str], tree: Path, arch: str) -> dict[str, str]:
    """Return where the tree's Kconfig files define these options ("net/Kconfig:12")."""
    start = re.compile(r"^\s*(?:menu)?config\s+(\w+)\s*$", re.MULTILINE)
    found: dict[str, str] = {}
    for path in _kconfig_files(tree, arch):
        text = path.read_text("utf-8", "replace")
        for match in start.finditer(text):
            if match[1] in names:
                line = text.count("\n", 0, match.start(1)) + 1
                found.setdefault(match[1], f"{path.relative_to(tree)}:{line}")
    return found


def _kconfig_files(tree: Path, arch: str) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(tree):
        subfolders.sort()
        if Path(folder) == tree / "arch":
            subfolders[:] = [name for name in subfolders if name == arch]
        yield from (Path(folder, name) for name in sorted(files) if name.startswith("Kconfig"))

# SPDX-License-Identifier: GPL-2.0-only
"""Bounds files: YAML, checked against these types with file, line and key in every complaint."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from pytest_napi.errors import BoundsError

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_TIME = re.compile(r"(-?[\d.]+) *([^\d\s.]*)")
# msgspec: "Object contains unknown field `x` - at `$.a.b`".
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")


class Duration(int):
    """A time in ns, written in YAML with its unit: ``500 ms``."""


class Bound(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The bound of one statistic: the larger of two."""

    limit: Duration
    idle: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Times the same statistic of the idle baseline; 0: the limit alone."""


class LoadBound(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the load must have done for a figure to mean anything."""

    reentries_per_second: Annotated[float, msgspec.Meta(ge=0)]


class Bounds(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """The bounds of one measurement; what is absent is not checked."""

    mean: Bound | None = None
    p99: Bound | None = None
    max: Bound | None = None
    load: LoadBound | None = None


def parse_duration(text: object) -> Duration:
    """Return ``text`` ("1 s", "2.5 ms") in ns.  Raises ValueError saying what is wrong."""
    match = _TIME.fullmatch(str(text).strip())
    units = ", ".join(_UNITS)
    if match is None:
        raise ValueError(f"{text!r} is no time: write a number and a unit ({units}), like 500 ms")
    number, unit = match.groups()
    if unit not in _UNITS:
        raise ValueError(f"{text!r} has {f'the unit {unit!r}' if unit else 'no unit'}: use {units}")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        raise ValueError(f"{text!r}: {number} is no number") from None
    if value <= 0:
        raise ValueError(f"{text!r} is not positive")
    return Duration(round(value))


def _decode(kind: type, value: object) -> object:
    if kind is Duration:
        return parse_duration(value)
    raise NotImplementedError(kind)


def load_bounds(path: Path, known: Sequence[str]) -> dict[str, Bounds]:
    """Read a bounds file: measurement -> its bounds.

    ``known`` are the measurements there are.  Raises BoundsError with file, line and key.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tree = yaml.compose(text, Loader=yaml.CSafeLoader)
        content = yaml.load(text, Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise BoundsError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or error
        raise BoundsError(f"{path}{line}: not YAML: {problem}") from None
    if not isinstance(content, dict):
        raise BoundsError(f"{path}:1: a mapping of measurements ({', '.join(known)}) is expected")
    bounds = {}
    for name, row in content.items():
        if name not in known:
            raise _complaint(path, tree, [str(name)], f"no such measurement: {', '.join(known)}")
        try:
            bounds[name] = msgspec.convert(row, Bounds, dec_hook=_decode)
        except msgspec.ValidationError as error:
            where = _WHERE.match(str(error))
            assert where is not None  # its pattern matches any text
            keys = [name, *(where["path"] or "$").split(".")[1:]]
            unknown = _UNKNOWN.search(where["what"])
            if unknown is not None:
                raise _complaint(path, tree, [*keys, unknown[1]], "unknown key") from None
            raise _complaint(path, tree, keys, where["what"]) from None
    return bounds


def _complaint(path: Path, tree: Any, keys: Sequence[str], what: str) -> BoundsError:
    node, line = tree, 1
    for key in keys:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = next(((k, v) for k, v in pairs if k.value == key), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return BoundsError(f"{path}:{line}: {'.'.join(keys)}: {what}")

# SPDX-License-Identifier: GPL-2.0-only
"""The guest's kernel log: its lines as they arrive, and the splats among them."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pytest_napi.errors import ImageError

EXCERPT_LINES = 40
"""Lines shown of a splat: an RCU stall with its register dump and call trace is about this long."""

# "[   12.345678] ", "[   12.345678][  T123] " (CONFIG_PRINTK_CALLER).  What user space printed
# without a line feed may stand in front of it.
_TIME_STAMP = re.compile(r"\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ")


class _Row(msgspec.Struct, forbid_unknown_fields=True, rename={"origin": "from"}):
    kind: str
    pattern: str
    origin: str


@dataclass(frozen=True)
class Signature:
    """How one kind of splat begins in the log."""

    kind: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Splat:
    """One splat: its kind, its first line, and the index of that line in the log."""

    kind: str
    line: str
    index: int


def load_signatures(path: Path) -> tuple[Signature, ...]:
    """Read a file of signatures.  Raises ImageError, naming the file, when it is malformed."""
    try:
        rows = msgspec.yaml.decode(path.read_bytes(), type=list[_Row])
        return tuple(Signature(row.kind, re.compile(row.pattern)) for row in rows)
    except (OSError, msgspec.DecodeError, re.error) as error:
        raise ImageError(f"{path}: not a file of log signatures: {error}") from None


def message(line: str) -> str:
    """Return a console line without its time stamp and what stands in front of it."""
    found = _TIME_STAMP.search(line)
    return line[found.end() :] if found else line


class KernelLog:
    """All lines the console has printed, and the splats found in them.

    One thread feeds it; any thread may read.
    """

    def __init__(self, signatures: Sequence[Signature]) -> None:
        self._signatures = signatures
        self._lines: list[str] = []
        self._splats: list[Splat] = []
        self._changed = threading.Condition()

    def feed(self, line: str) -> None:
        """Append one line, made safe to print and without its line feed."""
        text = message(line)
        kind = next((s.kind for s in self._signatures if s.pattern.match(text)), None)
        with self._changed:
            if kind is not None:
                self._splats.append(Splat(kind, text, len(self._lines)))
            self._lines.append(line)
            self._changed.notify_all()

    def mark(self) -> int:
        """Return the present end of the log, for ``splats(since=…)``."""
        with self._changed:
            return len(self._lines)

    def splats(self, since: int = 0) -> list[Splat]:
        """Return the splats from the mark ``since`` on, oldest first."""
        with self._changed:
            return [splat for splat in self._splats if splat.index >= since]

    def lines(self, since: int = 0) -> list[str]:
        """Return the lines from the mark ``since`` on."""
        with self._changed:
            return self._lines[since:]

    def excerpt(self, splat: Splat) -> str:
        """Return the log from ``splat`` on, up to the next splat or EXCERPT_LINES lines."""
        with self._changed:
            following = [s.index for s in self._splats if s.index > splat.index]
            end = min([splat.index + EXCERPT_LINES, *following])
            return "\n".join(self._lines[splat.index : end])

    def wait_for(self, text: str, timeout: float, since: int = 0) -> bool:
        """Wait up to ``timeout`` seconds for a line that holds ``text``; return whether it came."""
        deadline = time.monotonic() + timeout
        seen = since
        with self._changed:
            while True:
                if any(text in line for line in self._lines[seen:]):
                    return True
                seen = len(self._lines)
                if not self._changed.wait(deadline - time.monotonic()):
                    return any(text in line for line in self._lines[seen:])

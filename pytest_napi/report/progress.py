# SPDX-License-Identifier: GPL-2.0-only
"""One line that tells what a long wait is at, on terminals only."""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_SECONDS = 0.5
_ERASE_LINE = "\r\x1b[K"


class Progress:
    """A line that is overwritten; does nothing where ``write`` is None (no terminal)."""

    def __init__(self, write: Callable[[str], None] | None) -> None:
        self._write = write
        self._shown = False
        self._last = 0.0

    def show(self, text: str) -> None:
        """Show ``text`` in place of what was shown before, twice a second at most."""
        now = time.monotonic()
        if self._write is None or now - self._last < _EVERY_SECONDS:
            return
        self._write(f"{_ERASE_LINE}{text}")
        self._shown, self._last = True, now

    def clear(self) -> None:
        """Erase the line."""
        if self._write is not None and self._shown:
            self._write(_ERASE_LINE)
        self._shown, self._last = False, 0.0

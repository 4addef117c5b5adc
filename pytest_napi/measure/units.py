# SPDX-License-Identifier: GPL-2.0-only
"""Times for people: seconds, with three significant digits."""

from __future__ import annotations


def seconds(ns: float) -> str:
    """Return ``ns`` as text: ``22.9 s``, ``1.18 s``, ``0.082 s``, ``0.0004 s``."""
    value = ns / 1e9
    digits = 1 if value >= 10 else 2 if value >= 1 else 3 if value >= 0.001 else 6
    return f"{value:.{digits}f} s"

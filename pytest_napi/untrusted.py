# SPDX-License-Identifier: GPL-2.0-only
"""Text a guest produced, made safe to print.

A guest may print anything.  Escape sequences could rewrite the terminal, and most control
characters may not stand in an XML file at all, so they are shown as ``\\x1b`` and the like.
"""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029]")


def printable(text: str | bytes) -> str:
    """Return ``text`` with control characters escaped; tabs and line feeds stay.

    Bytes that are no UTF-8 are shown as ``\\xNN``.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    text = text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

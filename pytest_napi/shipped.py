# SPDX-License-Identifier: GPL-2.0-only
"""Where the files are that ship with pytest-napi but are not Python: configs/, images/, selftests/.

In a checkout they stand beside the package; a wheel carries them inside it.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_ROOT = _PACKAGE / "shipped_files"


def shipped(name: str) -> Path:
    """Return the path of a shipped file or folder, e.g. ``shipped("configs/bounds.yaml")``."""
    root = _ROOT if _ROOT.is_dir() else _PACKAGE.parent
    return root / name

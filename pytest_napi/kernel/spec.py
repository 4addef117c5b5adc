# SPDX-License-Identifier: GPL-2.0-only
"""What ``--kernel`` takes: ``[LABEL=]SPEC``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.errors import KernelUnusable

DEBIAN = "debian:"
"""How a SPEC starts that names a Debian kernel."""

DEBIAN_FORM = f"{DEBIAN}VERSION[:ARCH][@FLAVOUR]"
"""Such a SPEC, for messages."""

HOST = "host"
"""The SPEC that stands for the kernel this machine runs."""

FORMS = (
    "a bzImage, a build tree, a .deb or .rpm, a folder of one kernel's packages, "
    f"{DEBIAN_FORM}, or {HOST}"
)
"""The forms of SPEC, for messages."""

_LABELLED = re.compile(r"([A-Za-z0-9._+-]+)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class KernelSpec:
    """One ``--kernel``: ``text`` says where the kernel is, ``label`` names it in ids and tables."""

    label: str | None
    text: str

    def __str__(self) -> str:
        return self.text if self.label is None else f"{self.label}={self.text}"


def existing_path(text: str) -> Path | None:
    """Return the path that ``text`` names if there is one, be it only a link to nowhere.

    "~" is the home folder: no shell expands it behind a label.
    """
    # Path's own methods raise for a name that is too long, and for a user who does not exist.
    path = os.path.expanduser(text)  # noqa: PTH111
    return Path(path) if text and os.path.lexists(path) else None


def parse_spec(value: str) -> KernelSpec:
    """Split ``[LABEL=]SPEC``.

    ``=`` may also be part of a path: only a prefix of letters, digits and ``._+-`` is a label, and
    not even that where the whole value is a path that exists.  Raises KernelUnusable if no SPEC is
    left.
    """
    match = _LABELLED.fullmatch(value)
    if match and existing_path(value) is None:
        spec = KernelSpec(match[1], match[2])
    else:
        spec = KernelSpec(None, value)
    if not spec.text.strip():
        raise KernelUnusable(f"--kernel={value}: names no kernel; give [LABEL=]SPEC: {FORMS}")
    return spec

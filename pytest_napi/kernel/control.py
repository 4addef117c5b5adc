# SPDX-License-Identifier: GPL-2.0-only
"""Debian control data, read with python-debian.

Imported where it is needed only: python-debian takes longer to load than a kernel that is already
in the cache takes to resolve.
"""

from __future__ import annotations

from collections.abc import Iterator

from debian.deb822 import Packages
from debian.debian_support import Version

__all__ = ["Packages", "Version", "depends", "stanzas"]


def stanzas(text: str) -> Iterator[Packages]:
    """Yield the stanzas of a control file, of apt's package lists or of a .sources file."""
    # apt_pkg, where a host has it, reads files only and leaves comments in.
    yield from Packages.iter_paragraphs(text.splitlines(), use_apt_pkg=False)


def depends(stanza: Packages) -> list[str]:
    """Return the names in a package's Depends, all alternatives among them, in order."""
    groups = stanza.relations["depends"] or []
    return [choice["name"] for group in groups for choice in group]

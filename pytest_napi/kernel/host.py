# SPDX-License-Identifier: GPL-2.0-only
"""``host``: the kernel this machine runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.errors import HostUnfit

# From the root of the file system; Fedora and openSUSE have only the second.
_IMAGES = ("boot/vmlinuz-{release}", "lib/modules/{release}/vmlinuz")
_CONFIGS = ("boot/config-{release}", "lib/modules/{release}/config", "proc/config.gz")


@dataclass(frozen=True)
class HostKernel:
    """The image of the running kernel, and where its config may be, most certain first."""

    image: Path
    configs: tuple[Path, ...]


def find(root: Path = Path("/"), release: str | None = None) -> HostKernel:
    """Find the running kernel's image; ``release`` is by default what ``uname -r`` prints.

    Raises HostUnfit if there is none, as in a container, or if this user may not read it.
    """
    release = release or os.uname().release
    images = [root / place.format(release=release) for place in _IMAGES]
    # Not Path.is_file(), which raises where a folder may not be entered.
    present = [path for path in images if os.path.isfile(path)]  # noqa: PTH113
    if not present:
        raise HostUnfit(
            f"host: no image of the running kernel {release}: neither "
            f"{' nor '.join(map(str, images))} is there; give a bzImage instead"
        )
    readable = [path for path in present if os.access(path, os.R_OK)]
    if not readable:
        # Ubuntu installs it so.
        raise HostUnfit(
            f"host: {present[0]} cannot be read by this user: sudo chmod a+r {present[0]}"
        )
    configs = tuple(root / place.format(release=release) for place in _CONFIGS)
    return HostKernel(readable[0], configs)

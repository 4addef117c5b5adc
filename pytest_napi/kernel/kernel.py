# SPDX-License-Identifier: GPL-2.0-only
"""The kernel under test, as every other room sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pytest_napi.kernel.architecture import Architecture
from pytest_napi.kernel.config import KernelConfig
from pytest_napi.kernel.modules import ModuleTree


@dataclass(frozen=True)
class Kernel:
    """One kernel, resolved and ready to boot.

    ``label`` names it in ids and tables (default: its release), ``source`` says where it came from.
    ``release`` and ``banner`` are what ``uname -r`` and ``uname -v`` print in the guest, and
    ``init_size`` is in bytes.  ``config`` and ``modules`` are None where none were found.
    """

    label: str
    source: str
    image: Path
    architecture: Architecture
    release: str
    banner: str
    init_size: int
    config: KernelConfig | None = field(compare=False)
    modules: ModuleTree | None = field(compare=False)

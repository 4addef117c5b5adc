# SPDX-License-Identifier: GPL-2.0-only
"""How a kernel is built: from a source, config fragments and patches, incrementally."""

from pytest_napi.kernel.build.builder import BuildFailed, build
from pytest_napi.kernel.build.results import BuiltKernel

__all__ = ["BuildFailed", "BuiltKernel", "build"]

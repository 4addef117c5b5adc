# SPDX-License-Identifier: GPL-2.0-only
"""WHAT is tested: where a kernel comes from, its config, its modules, its preemption model."""

from pytest_napi.kernel.kernel import Kernel
from pytest_napi.kernel.resolve import resolve
from pytest_napi.kernel.spec import KernelSpec, parse_spec

__all__ = ["Kernel", "KernelSpec", "parse_spec", "resolve"]

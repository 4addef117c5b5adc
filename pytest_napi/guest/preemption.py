# SPDX-License-Identifier: GPL-2.0-only
"""The preemption model a guest's kernel really runs: read back, never taken from the request."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, replace

from pytest_napi.guest.guest import Guest
from pytest_napi.kernel import preempt
from pytest_napi.kernel.config import KernelConfig, parse_config
from pytest_napi.kernel.kernel import Kernel
from pytest_napi.machine.kernel_log import KernelLog, message

_REFUSAL = "Dynamic Preempt: unsupported mode"
"""What the kernel logs when it does not know the model asked for (kernel/sched/core.c)."""

_DEBUGFS = "/sys/kernel/debug/sched/preempt"


@dataclass(frozen=True)
class Running:
    """A preemption model and how it is known."""

    model: str | None
    """``none``, ``voluntary``, ``full`` or ``lazy``; None where the kernel does not tell."""
    evidence: str
    """One line: where it was read."""
    refusal: str | None = None
    """What the kernel logged when it did not accept the model asked for."""


def read_back(guest: Guest, kernel: Kernel, log: KernelLog) -> Running:
    """Ask the guest for its preemption model.

    First debugfs (the mode in parentheses), then the kernel's own log line, then ``uname -v`` with
    the config for kernels that have one model built in.
    """
    lines = [message(line) for line in log.lines()]
    refusal = next((line for line in lines if line.startswith(_REFUSAL)), None)
    try:
        modes = guest.read_text(_DEBUGFS)
    except OSError:
        modes = ""
    chosen = re.search(r"\((\w+)\)", modes)
    if chosen is not None:
        return Running(chosen[1], f"{_DEBUGFS}: {modes.strip()}", refusal)
    for line in lines:
        logged = re.match(r"Dynamic Preempt: (\w+)$", line)
        if logged is not None:
            return Running(logged[1], f"kernel log: {line}", refusal)
    version = guest.read_text("/proc/sys/kernel/version").strip()
    static = replace(kernel, banner=version, config=kernel.config or _own_config(guest))
    model = None if preempt.is_dynamic(static) else preempt.predicted(static)
    return Running(model, f"uname -v: {version}", refusal)


def _own_config(guest: Guest) -> KernelConfig | None:
    try:
        packed = guest.read_bytes("/proc/config.gz")
    except OSError:
        return None
    return parse_config(gzip.decompress(packed).decode(), "/proc/config.gz")

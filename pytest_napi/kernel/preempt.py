# SPDX-License-Identifier: GPL-2.0-only
"""Preemption models: which one a kernel boots with, and how another is asked for.

All this is known before boot, from the kernel's config and banner, never from its version.  What a
PREEMPT_DYNAMIC kernel really does is read back in the guest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_napi.kernel.config import KernelConfig
from pytest_napi.kernel.kernel import Kernel


@dataclass(frozen=True)
class PreemptionModel:
    """One row of Linux's kernel/Kconfig.preempt.

    ``name`` is the value of the ``preempt=`` boot parameter and what debugfs sched/preempt shows,
    ``option`` the config option that makes it the default, and ``preemptible`` whether a kernel
    built for it alone says PREEMPT in its banner (it sets PREEMPT_BUILD).
    """

    name: str
    option: str
    preemptible: bool


MODELS: Mapping[str, PreemptionModel] = {
    row.name: row
    for row in (
        PreemptionModel("none", "PREEMPT_NONE", preemptible=False),
        PreemptionModel("voluntary", "PREEMPT_VOLUNTARY", preemptible=False),
        PreemptionModel("full", "PREEMPT", preemptible=True),
        PreemptionModel("lazy", "PREEMPT_LAZY", preemptible=True),
    )
}
"""Every preemption model by name."""


def is_dynamic(kernel: Kernel) -> bool:
    """Tell whether the model can be chosen at boot (PREEMPT_DYNAMIC)."""
    if kernel.config is not None:
        return kernel.config.enabled("PREEMPT_DYNAMIC")
    return "PREEMPT_DYNAMIC" in kernel.banner.split()


def predicted(kernel: Kernel) -> str | None:
    """Return the model the kernel boots with by default, or None where that cannot be known."""
    if kernel.config is not None:
        chosen = _chosen(kernel.config)
        if chosen is not None:
            return chosen
    possible = _possible(kernel)
    return possible[0] if len(possible) == 1 else None


def boot_parameter(kernel: Kernel, model: str) -> str | None:
    """Return the boot parameter that asks for a model, None where the kernel would not know it."""
    return f"preempt={MODELS[model].name}" if is_dynamic(kernel) else None


def unavailable(kernel: Kernel, model: str) -> str | None:
    """Return why a kernel cannot run a model, or None where nothing is known against it."""
    possible = _possible(kernel)
    if model in possible:
        return None
    if not is_dynamic(kernel):
        return f"{kernel.label} is built for preemption {' or '.join(possible)} only"
    return f"{kernel.label} can be booted with preemption {', '.join(possible)} only"


def _chosen(config: KernelConfig) -> str | None:
    """Return the model the config chose."""
    # The option in the choice is a real-time kernel's own before 6.13; all of it is preemptible.
    if config.enabled("PREEMPT_RT") and not config.enabled("PREEMPT_LAZY"):
        return "full"
    return next((row.name for row in MODELS.values() if config.enabled(row.option)), None)


def _possible(kernel: Kernel) -> list[str]:
    """Return the models the kernel may run, as far as can be told."""
    config = kernel.config
    if is_dynamic(kernel):
        # make leaves out of a config what could not be chosen: from 7.0 on, none and voluntary.
        offered = [row.name for row in MODELS.values() if config and row.option in config]
        return offered or list(MODELS)
    chosen = _chosen(config) if config is not None else None
    if chosen is not None:
        return [chosen]
    words = kernel.banner.split()
    if not words:
        return list(MODELS)
    if "PREEMPT_RT" in words:
        return ["full"]
    return [row.name for row in MODELS.values() if row.preemptible == ("PREEMPT" in words)]

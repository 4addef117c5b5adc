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
            return chosen[0]
    possible, _ = _possible(kernel)
    return possible[0] if len(possible) == 1 else None


def boot_parameter(kernel: Kernel, model: str) -> str | None:
    """Return the boot parameter that asks for a model, None where the kernel would not know it."""
    return f"preempt={MODELS[model].name}" if is_dynamic(kernel) else None


def unavailable(kernel: Kernel, model: str) -> str | None:
    """Return why a kernel cannot run a model, or None where nothing is known against it.

    The reason names the models it can run, and what in its config or banner says so.
    """
    possible, source = _possible(kernel)
    if model in possible:
        return None
    if not is_dynamic(kernel):
        names = " or ".join(possible)
        return f"{kernel.label} is built for preemption {names} only (its {source})"
    names = ", ".join(possible)
    return (
        f"{kernel.label} can be booted with preemption {names} only "
        f"(its {source} has no {MODELS[model].option})"
    )


def _chosen(config: KernelConfig) -> tuple[str, str] | None:
    """Return the model the config chose, and the option that says so."""
    # The option in the choice is a real-time kernel's own before 6.13; all of it is preemptible.
    if config.enabled("PREEMPT_RT") and not config.enabled("PREEMPT_LAZY"):
        return "full", "PREEMPT_RT"
    rows = MODELS.values()
    return next(((row.name, row.option) for row in rows if config.enabled(row.option)), None)


def _possible(kernel: Kernel) -> tuple[list[str], str]:
    """Return the models the kernel may run, as far as can be told, and what tells it."""
    config = kernel.config
    if is_dynamic(kernel):
        # make leaves out of a config what could not be chosen: from 7.0 on, none and voluntary.
        offered = [row.name for row in MODELS.values() if config and row.option in config]
        return offered or list(MODELS), "config"
    chosen = _chosen(config) if config is not None else None
    if chosen is not None:
        model, option = chosen
        return [model], f"config has {option}=y and no PREEMPT_DYNAMIC"
    words = kernel.banner.split()
    if not words:
        return list(MODELS), ""
    # From 6.13 on a real-time kernel is full or lazy, and any static lazy one says PREEMPT.
    said = next((word for word in ("PREEMPT_RT", "PREEMPT") if word in words), None)
    possible = [row.name for row in MODELS.values() if row.preemptible == (said is not None)]
    return possible, f"banner says {said or 'neither PREEMPT nor PREEMPT_DYNAMIC'}"

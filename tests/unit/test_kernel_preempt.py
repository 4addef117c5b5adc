# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import pytest

from pytest_napi import options
from pytest_napi.kernel import preempt
from samples import kernel

DYNAMIC = "#1 SMP PREEMPT_DYNAMIC Thu Jan 1 00:00:00 UTC 2026"
# The lines of Debian's configs and of own builds.
DEBIAN_6_12 = """\
# CONFIG_PREEMPT_NONE is not set
CONFIG_PREEMPT_VOLUNTARY=y
# CONFIG_PREEMPT is not set
# CONFIG_PREEMPT_RT is not set
CONFIG_PREEMPT_DYNAMIC=y
"""
DEBIAN_6_18 = """\
# CONFIG_PREEMPT_NONE is not set
# CONFIG_PREEMPT_VOLUNTARY is not set
# CONFIG_PREEMPT is not set
CONFIG_PREEMPT_LAZY=y
CONFIG_PREEMPT_DYNAMIC=y
"""
DEBIAN_7_3 = """\
# CONFIG_PREEMPT is not set
CONFIG_PREEMPT_LAZY=y
CONFIG_PREEMPT_DYNAMIC=y
"""
STATIC_NONE = """\
CONFIG_PREEMPT_NONE=y
# CONFIG_PREEMPT_VOLUNTARY is not set
# CONFIG_PREEMPT is not set
# CONFIG_PREEMPT_DYNAMIC is not set
"""
STATIC_VOLUNTARY = """\
# CONFIG_PREEMPT_NONE is not set
CONFIG_PREEMPT_VOLUNTARY=y
# CONFIG_PREEMPT is not set
"""
STATIC_FULL = """\
# CONFIG_PREEMPT_NONE is not set
# CONFIG_PREEMPT_VOLUNTARY is not set
CONFIG_PREEMPT=y
"""
STATIC_LAZY_6_18 = """\
# CONFIG_PREEMPT_NONE is not set
# CONFIG_PREEMPT_VOLUNTARY is not set
# CONFIG_PREEMPT is not set
CONFIG_PREEMPT_LAZY=y
# CONFIG_PREEMPT_DYNAMIC is not set
"""
REAL_TIME_6_1 = "# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_RT=y\n"
# Debian's 6.12 flavour "rt": dynamic, whatever its banner says.
REAL_TIME_DYNAMIC = """\
# CONFIG_PREEMPT is not set
CONFIG_PREEMPT_LAZY=y
CONFIG_PREEMPT_RT=y
CONFIG_PREEMPT_DYNAMIC=y
"""
REAL_TIME_LAZY = "CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_RT=y\n"

ALL = ["none", "voluntary", "full", "lazy"]


@pytest.mark.parametrize(
    ("config", "banner", "dynamic", "predicted", "possible"),
    [
        (DEBIAN_6_12, DYNAMIC, True, "voluntary", ["none", "voluntary", "full"]),
        (DEBIAN_6_18, DYNAMIC, True, "lazy", ALL),
        (DEBIAN_7_3, DYNAMIC, True, "lazy", ["full", "lazy"]),
        (STATIC_NONE, "#1 SMP date", False, "none", ["none"]),
        (STATIC_VOLUNTARY, "#1 SMP date", False, "voluntary", ["voluntary"]),
        (STATIC_FULL, "#1 SMP PREEMPT date", False, "full", ["full"]),
        (STATIC_LAZY_6_18, "#1 SMP PREEMPT date", False, "lazy", ["lazy"]),
        (REAL_TIME_DYNAMIC, "#1 SMP PREEMPT_RT date", True, "lazy", ["full", "lazy"]),
        (REAL_TIME_6_1, "#1 SMP PREEMPT_RT date", False, "full", ["full"]),
        (REAL_TIME_LAZY, "#1 SMP PREEMPT_RT date", False, "lazy", ["lazy"]),
        (None, DYNAMIC, True, None, ALL),
        (None, "#1 SMP PREEMPT date", False, None, ["full", "lazy"]),
        (None, "#1 SMP PREEMPT_RT date", False, None, ["full", "lazy"]),
        (None, "#1 SMP date", False, None, ["none", "voluntary"]),
        (None, "", False, None, ALL),
        ("CONFIG_HZ=250\n", "#1 SMP date", False, None, ["none", "voluntary"]),
    ],
)
def test_prediction(
    config: str | None, banner: str, dynamic: bool, predicted: str | None, possible: list[str]
) -> None:
    tested = kernel(config, banner)
    assert preempt.is_dynamic(tested) is dynamic
    assert preempt.predicted(tested) == predicted
    assert [model for model in ALL if preempt.unavailable(tested, model) is None] == possible
    parameters = [preempt.boot_parameter(tested, model) for model in ALL]
    assert parameters == ([f"preempt={model}" for model in ALL] if dynamic else [None] * 4)


@pytest.mark.parametrize(
    ("config", "banner", "model", "reason"),
    [
        (
            DEBIAN_7_3,
            DYNAMIC,
            "none",
            "can be booted with preemption full, lazy only (its config has no PREEMPT_NONE)",
        ),
        (
            DEBIAN_6_12,
            DYNAMIC,
            "lazy",
            "can be booted with preemption none, voluntary, full only "
            "(its config has no PREEMPT_LAZY)",
        ),
        (
            STATIC_NONE,
            "#1 SMP date",
            "full",
            "is built for preemption none only "
            "(its config has PREEMPT_NONE=y and no PREEMPT_DYNAMIC)",
        ),
        (
            REAL_TIME_6_1,
            "#1 SMP PREEMPT_RT date",
            "none",
            "is built for preemption full only "
            "(its config has PREEMPT_RT=y and no PREEMPT_DYNAMIC)",
        ),
        (
            None,
            "#1 SMP PREEMPT date",
            "none",
            "is built for preemption full or lazy only (its banner says PREEMPT)",
        ),
        (
            None,
            "#1 SMP date",
            "lazy",
            "is built for preemption none or voluntary only "
            "(its banner says neither PREEMPT nor PREEMPT_DYNAMIC)",
        ),
    ],
)
def test_reason_names_models_and_facts(
    config: str | None, banner: str, model: str, reason: str
) -> None:
    assert preempt.unavailable(kernel(config, banner), model) == f"tested {reason}"


def test_the_option_knows_every_model() -> None:
    assert tuple(preempt.MODELS) == options.MODELS

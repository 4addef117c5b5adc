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
REAL_TIME_6_1 = "# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_RT=y\n"
REAL_TIME_LAZY = "CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_RT=y\n"

ALL = ["none", "voluntary", "full", "lazy"]


@pytest.mark.parametrize(
    ("config", "banner", "dynamic", "predicted", "possible"),
    [
        (DEBIAN_6_12, DYNAMIC, True, "voluntary", ["none", "voluntary", "full"]),
        (DEBIAN_6_18, DYNAMIC, True, "lazy", ALL),
        (DEBIAN_7_3, DYNAMIC, True, "lazy", ["full", "lazy"]),
        (STATIC_NONE, "#1 SMP date", False, "none", ["none"]),
        (REAL_TIME_6_1, "#1 SMP PREEMPT_RT date", False, "full", ["full"]),
        (REAL_TIME_LAZY, "#1 SMP PREEMPT_RT date", False, "lazy", ["lazy"]),
        (None, DYNAMIC, True, None, ALL),
        (None, "#1 SMP PREEMPT date", False, None, ["full", "lazy"]),
        (None, "#1 SMP PREEMPT_RT date", False, "full", ["full"]),
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


def test_reason_names_kernel_and_models() -> None:
    reason = preempt.unavailable(kernel(STATIC_NONE, "#1 SMP date"), "full")
    assert reason == "tested is built for preemption none only"
    reason = preempt.unavailable(kernel(DEBIAN_7_3, DYNAMIC), "none")
    assert reason == "tested can be booted with preemption full, lazy only"


def test_the_option_knows_every_model() -> None:
    assert tuple(preempt.MODELS) == options.MODELS

# SPDX-License-Identifier: GPL-2.0-only
from pathlib import Path

import pytest

from pytest_napi.machine.emulator import Emulator
from pytest_napi.machine.quirks import blame

OLD, NEW = Emulator(Path("/q"), (7, 2, 22)), Emulator(Path("/q"), (8, 1, 0))
TCG, KVM = "tcg", "kvm"
STALE_INT3 = ["[    1.0] fine", "[    3.344136] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI"]


def test_an_old_tcg_is_to_blame_for_a_stale_int3():
    assert "mended in 8.1" in str(blame(OLD, TCG, STALE_INT3))
    assert blame(OLD, TCG, ["[    3.3] int3: 0000 [#1] PREEMPT SMP"])


@pytest.mark.parametrize(("emulator", "accelerator"), [(NEW, TCG), (OLD, KVM)])
def test_nobody_else_is(emulator, accelerator):
    assert blame(emulator, accelerator, STALE_INT3) is None


@pytest.mark.parametrize("emulator", [OLD, NEW])
def test_any_tcg_is_to_blame_for_flags_that_no_cpu_can_have(emulator):
    lines = ["[    4.8] RSP: 0018:ffffc9000006bcd0 EFLAGS: 04b2e342"]
    assert str(blame(emulator, TCG, lines)).endswith("a defect of this QEMU's tcg")
    assert blame(emulator, KVM, lines) is None


@pytest.mark.parametrize("flags", ["00010246", "003f7fd7", "00000002"])
def test_flags_that_a_cpu_can_have_blame_nobody(flags):
    assert blame(OLD, TCG, [f"[ 4.8] RSP: 0018:ffffc9000006bcd0 EFLAGS: {flags}"]) is None


def test_other_deaths_are_the_kernels_own():
    lines = ["[ 3.3] Oops: general protection fault: 0000 [#1]", "[ 3.4] Kernel panic"]
    assert blame(OLD, TCG, lines) is None

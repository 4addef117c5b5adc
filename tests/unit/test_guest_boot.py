# SPDX-License-Identifier: GPL-2.0-only
"""Which lost boots are repeated."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_napi.errors import GuestLost
from pytest_napi.guest import boot as module
from pytest_napi.guest.boot import BOOT_ATTEMPTS, BootConfig, Booted, boot
from pytest_napi.machine.emulator import Accelerator, Emulator
from pytest_napi.machine.quirks import blame

CONFIG = BootConfig(Emulator(Path("/q"), (7, 2, 22)), Accelerator("tcg", ""), Path("/c"))
STALE_INT3 = "[    3.344136] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI"
OTHER = "[    3.344136] Oops: general protection fault: 0000 [#1]"


@pytest.fixture
def boots(monkeypatch):
    """Let each boot end as told: None is one that succeeds, a text the last line of a lost one."""
    folders = []
    ends = []

    class Machine:
        channel = lost = None

        def __init__(self, kernel, config, folder, *, saveable):
            self.end = ends[len(folders)]
            self.quirk = blame(CONFIG.emulator, CONFIG.accelerator.name, [self.end or ""])
            folders.append(folder.name)

        def close(self):
            pass

    def take_over(booted):
        if booted.machine.end is not None:
            raise GuestLost("guest lost: Kernel panic")

    monkeypatch.setattr(module, "start", Machine)
    monkeypatch.setattr(module, "Guest", lambda channel, lost: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(Booted, "take_over", take_over)

    def make(*told):
        ends.extend(told)
        return boot(None, CONFIG, Path("/f"))

    make.folders = folders
    return make


def test_a_boot_lost_to_a_defect_of_qemu_is_repeated_and_noted(boots):
    booted = boots(STALE_INT3, None)
    assert boots.folders == ["f", "boot-2"]
    assert "booted again: guest lost: Kernel panic" in booted.notes[0]


def test_one_that_is_lost_every_time_is_not_excused(boots):
    with pytest.raises(GuestLost):
        boots(*[STALE_INT3] * BOOT_ATTEMPTS)
    assert len(boots.folders) == BOOT_ATTEMPTS


def test_one_that_is_lost_for_another_reason_is_not_repeated(boots):
    with pytest.raises(GuestLost):
        boots(OTHER, None)
    assert boots.folders == ["f"]

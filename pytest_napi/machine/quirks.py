# SPDX-License-Identifier: GPL-2.0-only
"""Defects of QEMU that a guest may die of through no fault of its kernel, one row each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_napi.machine.emulator import Emulator
from pytest_napi.machine.kernel_log import message


@dataclass(frozen=True)
class Quirk:
    """One defect: whom it hits and how it shows in the guest's log."""

    accelerator: str
    mended: tuple[int, int, int]
    """The first version of QEMU without it."""
    pattern: re.Pattern[str]
    """Matches at the start of a log line, behind its time stamp."""
    what: str

    def __str__(self) -> str:
        since = ".".join(map(str, self.mended[:2]))
        return f"{self.what}, a defect of this QEMU's {self.accelerator} mended in {since}"


QUIRKS = (
    # Linux patches its code while other CPUs run it, with an int3 in the meantime.  A vCPU may run
    # the int3 when it is gone again: translating code did not lock the page against being written
    # (QEMU: "accel/tcg: Always lock pages before translation", 8.1).  About one boot in fifty.
    Quirk(
        accelerator="tcg",
        mended=(8, 1, 0),
        pattern=re.compile(r"(Oops: )?int3: 0000 \["),
        what="a vCPU ran an int3 of the kernel's code patching that was gone",
    ),
)


def blame(emulator: Emulator, accelerator: str, lines: Iterable[str]) -> Quirk | None:
    """Return the defect of ``emulator`` that the guest's log shows, if it shows one."""
    for quirk in QUIRKS:
        if quirk.accelerator == accelerator and emulator.version < quirk.mended:
            for line in lines:
                if quirk.pattern.match(message(line)):
                    return quirk
    return None

# SPDX-License-Identifier: GPL-2.0-only
"""Defects of QEMU that a guest may die of through no fault of its kernel, one row each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_napi.machine.emulator import Emulator
from pytest_napi.machine.kernel_log import message


@dataclass(frozen=True)
class Quirk:
    """One defect: whom it hits and how it shows in the guest's log."""

    accelerator: str
    mended: tuple[int, int, int] | None
    """The first version of QEMU without it; None where none is known."""
    pattern: re.Pattern[str]
    """Matches at the start of a log line, behind its time stamp."""
    what: str

    def __str__(self) -> str:
        mended = f" mended in {'.'.join(map(str, self.mended[:2]))}" if self.mended else ""
        return f"{self.what}, a defect of this QEMU's {self.accelerator}{mended}"


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
    # Bits 22 to 31 of EFLAGS are reserved and always 0 (Intel SDM, volume 1, 3.4.3): no code can
    # set them.  Seen once in some thousand guests of QEMU 7.2, in a double fault with EFLAGS
    # 04b2e342: the low half of RDI, taken for flags that TCG keeps in parts and had lost track of.
    Quirk(
        accelerator="tcg",
        mended=None,
        pattern=re.compile(r"RSP: [0-9a-f]{4}:[0-9a-f]{16} EFLAGS: (?!00[0-3])[0-9a-f]{8}\b"),
        what="a vCPU had flags that no x86 CPU can have",
    ),
)


def blame(emulator: Emulator, accelerator: str, lines: Sequence[str]) -> Quirk | None:
    """Return the defect of ``emulator`` that the guest's log shows, if it shows one."""
    for quirk in QUIRKS:
        mended = quirk.mended is not None and emulator.version >= quirk.mended
        if quirk.accelerator == accelerator and not mended:
            for line in lines:
                if quirk.pattern.match(message(line)):
                    return quirk
    return None

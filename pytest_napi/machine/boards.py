# SPDX-License-Identifier: GPL-2.0-only
"""The boards QEMU emulates for us, one row an architecture.

Everything about QEMU that differs by architecture is a field here, so that another architecture is
another row and no new condition anywhere.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class ProbeGuest:
    """A guest of a few instructions that ends QEMU with a status nothing else gives."""

    rom: bytes
    """Firmware image, given to QEMU with ``-bios``."""
    device: str
    """The ``-device`` the instructions talk to."""
    status: int
    """QEMU's exit status when the instructions ran."""


def _x86_probe() -> ProbeGuest:
    """The x86 probe: 16-bit code at the reset vector, 16 bytes below the end of the ROM.

    ``mov $PORT,%dx; mov $VALUE,%al; out %al,(%dx); hlt``: isa-debug-exit then ends QEMU with the
    status ``VALUE << 1 | 1``.
    """
    port, value, size = 0xF4, 0x2A, 0x10000
    code = struct.pack("<BHBBBB", 0xBA, port, 0xB0, value, 0xEE, 0xF4)
    return ProbeGuest(
        rom=code.ljust(16, b"\xf4").rjust(size, b"\0"),
        device=f"isa-debug-exit,iobase={port:#x},iosize=1",
        status=value << 1 | 1,
    )


@dataclass(frozen=True)
class Board:
    """What QEMU and the guest's kernel call the parts of one architecture's machine."""

    architecture: str
    """The architecture's name as ``uname -m`` prints it."""
    qemu: str
    """Name of the QEMU program."""
    package: str
    """The distribution package that has it (Debian and Ubuntu name it alike)."""
    machine: str
    """``-machine``."""
    cpu: Mapping[str, str]
    """``-cpu`` by accelerator: TCG emulates everything it can, KVM passes the host's CPU on.

    ``erms`` and ``fsrm`` make the kernel clear and copy memory by ``rep stosb`` and ``rep movsb``,
    which TCG emulates byte by byte: without them a guest boots a tenth faster.
    """
    console: str
    """The kernel's name of the first serial port: console and kernel log."""
    earlycon: str
    """Kernel parameter that prints from the first line on: a kernel that dies early is heard."""
    second_serial: str
    """The kernel's name of the second serial port: the command channel's second choice."""
    probe: ProbeGuest
    """Tells whether an accelerator really runs guests."""


# q35 and pc boot equally fast under TCG (5.5 s and 5.7 s to power-off, Debian 6.12); q35 has PCIe.
BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        "x86_64": Board(
            architecture="x86_64",
            qemu="qemu-system-x86_64",
            package="qemu-system-x86",
            machine="q35",
            cpu=MappingProxyType({"tcg": "max,-erms,-fsrm", "kvm": "host"}),
            console="ttyS0",
            earlycon="earlyprintk=serial,ttyS0",
            second_serial="ttyS1",
            probe=_x86_probe(),
        ),
    }
)

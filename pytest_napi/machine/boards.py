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
    slow: int
    """The same when each of them took hundreds of cycles."""


_PROBE_ROUNDS = 3
_PROBE_TURNS = 300_000
_PROBE_CYCLES = 50
"""Cycles a turn of the probe's loop may take, in the best of the rounds: a CPU needs 1 and TCG 5.
A KVM that interprets its guests instead of running them needs 700: kernels boot for minutes there.
"""


def _x86_probe() -> ProbeGuest:
    """The x86 probe: enters protected mode, times a loop, and ends QEMU by its isa-debug-exit.

    That ends QEMU with the status ``VALUE << 1 | 1``.  Real mode would not tell: before Westmere,
    KVM interprets it where everything else runs at full speed.
    """
    port, ran, slow, size, start = 0xF4, 0x2A, 0x2B, 0x10000, 0xFF00
    base = (1 << 32) - size  # where the ROM is; its last 16 bytes are at the reset vector
    # An empty entry and flat 32-bit code, "accessed" already: the CPU cannot write that to a ROM.
    gdt = bytes(8) + struct.pack("<HHBBBB", 0xFFFF, 0, 0, 0x9B, 0xCF, 0)
    table = start - len(gdt)
    pointer = struct.pack("<HI", len(gdt) - 1, base + table)
    real = b"\xfa"  # cli
    real += struct.pack("<5sH", b"\x66\x2e\x0f\x01\x16", table - len(pointer))  # lgdtl %cs:
    real += b"\x0f\x20\xc0\x0c\x01\x0f\x22\xc0"  # mov %cr0,%eax; or $1,%al; mov %eax,%cr0
    real += struct.pack("<2sIH", b"\x66\xea", base + start + len(real) + 8, 8)  # ljmpl $8,$next
    protected = struct.pack("<BI", 0xBE, _PROBE_ROUNDS)  # mov $ROUNDS,%esi
    protected += b"\x0f\x31\x89\xc7"  # 1: rdtsc; mov %eax,%edi
    protected += struct.pack("<BI", 0xB9, _PROBE_TURNS)  # mov $TURNS,%ecx
    protected += b"\x49\x75\xfd"  # 2: dec %ecx; jnz 2b
    protected += b"\x0f\x31\x29\xf8"  # rdtsc; sub %edi,%eax
    protected += struct.pack("<BI", 0x3D, _PROBE_TURNS * _PROBE_CYCLES)  # cmp $LIMIT,%eax
    protected += b"\x72\x07\x4e\x75\xe6"  # jb 3f; dec %esi; jnz 1b
    protected += bytes((0xB0, slow, 0xEB, 2, 0xB0, ran))  # mov $SLOW,%al; jmp 4f; 3: mov $RAN,%al
    protected += struct.pack("<BIBB", 0xBA, port, 0xEE, 0xF4)  # 4: mov $PORT,%edx; out; hlt
    code = (pointer + gdt).rjust(start, b"\0") + real + protected
    reset = struct.pack("<Bh", 0xE9, start - (size - 16 + 3))  # jmp start
    return ProbeGuest(
        rom=code.ljust(size - 16, b"\xf4") + reset.ljust(16, b"\xf4"),
        device=f"isa-debug-exit,iobase={port:#x},iosize=1",
        status=ran << 1 | 1,
        slow=slow << 1 | 1,
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

# SPDX-License-Identifier: GPL-2.0-only
"""The CPU architectures a tested kernel may be built for, as rows of data.

Supporting one more is one more row here (and the machine's row in the ``machine`` room).  The
second table names files that are *not* a kernel we can boot, so that an error says what they are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """One architecture whose kernels can be tested.

    ``name`` is what ``uname -m`` prints, ``debian`` what Debian calls it, and ``image`` where a
    kernel build leaves the bootable image, relative to the build tree.
    """

    name: str
    debian: str
    image: str


X86_64 = Architecture(name="x86_64", debian="amd64", image="arch/x86/boot/bzImage")
AARCH64 = Architecture(name="aarch64", debian="arm64", image="arch/arm64/boot/Image")

ARCHITECTURES: Mapping[str, Architecture] = {row.name: row for row in (X86_64, AARCH64)}
"""Every supported architecture by name."""


@dataclass(frozen=True)
class Signature:
    """Bytes at a fixed offset that tell what a file is; ``remedy`` says what to do with it."""

    offset: int
    magic: bytes
    what: str
    remedy: str = ""


_BZIMAGE = f"give the bzImage ({X86_64.image} of the build)"
_DECOMPRESS = f"decompress it first, or {_BZIMAGE}"
_DISK = "give the kernel inside it"

# Offsets and values: Documentation/arch/{arm64,riscv}/boot*, include/linux/pe.h and
# arch/arm/boot/compressed/head.S of Linux, and the formats' own manuals.
SIGNATURES: tuple[Signature, ...] = (
    Signature(56, b"ARM\x64", "an arm64 kernel Image"),
    Signature(56, b"RSC\x05", "a riscv kernel Image"),
    Signature(56, struct.pack("<I", 0x818223CD), "a loongarch kernel image"),
    Signature(36, struct.pack("<I", 0x016F2818), "an arm zImage"),
    Signature(4, b"zimg", "an EFI zboot kernel (arm64, riscv or loongarch)"),
    Signature(0, struct.pack(">I", 0x27051956), "a U-Boot uImage"),
    Signature(0, b"\x1f\x8b", "a gzip file", _DECOMPRESS),
    Signature(0, b"\xfd7zXZ\0", "an xz file", _DECOMPRESS),
    Signature(0, b"\x28\xb5\x2f\xfd", "a zstd file", _DECOMPRESS),
    Signature(0, b"\x02\x21\x4c\x18", "an lz4 file", _DECOMPRESS),
    Signature(0, b"\x04\x22\x4d\x18", "an lz4 file", _DECOMPRESS),
    Signature(0, b"BZh", "a bzip2 file", _DECOMPRESS),
    Signature(0, b"\x5d\0\0", "an lzma file", _DECOMPRESS),
    Signature(0, b"\xed\xab\xee\xdb", "an RPM package", "unpack it, and give the vmlinuz inside"),
    Signature(0, b"QFI\xfb", "a qcow2 disk image", _DISK),
    Signature(257, b"ustar", "a tar archive", "unpack it, and give the bzImage inside"),
    Signature(0, b"070701", "an initramfs (cpio)", _BZIMAGE),
    Signature(0, b"MZ", "a DOS or EFI program", _BZIMAGE),
)
"""What else a user may hand over by mistake, most telling first."""

# e_machine of /usr/include/elf.h
_ELF_MACHINES: Mapping[int, str] = {
    3: "i386",
    8: "mips",
    20: "powerpc",
    21: "powerpc64",
    22: "s390",
    40: "arm",
    62: "x86_64",
    183: "arm64",
    243: "riscv",
    258: "loongarch",
}


def recognise(head: bytes) -> Signature | None:
    """Say what a file with these first bytes (a few hundred) is, or None where nothing is known."""
    if head[:4] == b"\x7fELF" and len(head) >= 20:
        order = ">" if head[5] == 2 else "<"
        (machine,) = struct.unpack_from(f"{order}H", head, 18)
        name = _ELF_MACHINES.get(machine, f"machine {machine}")
        remedy = _BZIMAGE if name == X86_64.name else ""
        return Signature(0, head[:4], f"an uncompressed {name} ELF file (vmlinux?)", remedy)
    for row in SIGNATURES:
        if head[row.offset : row.offset + len(row.magic)] == row.magic:
            return row
    return None

# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import bz2
import gzip
import lzma
import os
import struct
from collections.abc import Callable
from pathlib import Path

import libarchive
import pytest

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.image import embedded_config, inspect
from samples import BANNER, CONFIG, RELEASE, bzimage, ikconfig, module


def raw(filter_name: str) -> Callable[[bytes], bytes]:
    """Return a compressor of libarchive, for what the standard library lacks."""

    def compress(data: bytes) -> bytes:
        blocks: list[bytes] = []
        with libarchive.custom_writer(
            lambda block: blocks.append(bytes(block)) or len(block), "raw", filter_name
        ) as archive:
            archive.add_file_from_memory("vmlinux", len(data), data)
        return b"".join(blocks)

    return compress


def lz4_legacy(data: bytes) -> bytes:
    """Compress (by literals only) to the format of ``lz4 -l``, which the kernel build uses."""
    blocks = b""
    for start in range(0, len(data), 8 << 20):
        part = data[start : start + (8 << 20)]
        length, rest = b"", len(part) - 15
        while rest >= 255:
            length, rest = length + b"\xff", rest - 255
        block = b"\xf0" + length + bytes([rest]) + part
        blocks += struct.pack("<I", len(block)) + block
    return b"\x02\x21\x4c\x18" + blocks


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lambda data: lzma.compress(data, check=lzma.CHECK_CRC32),
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    "bzip2": bz2.compress,
    "zstd": raw("zstd"),
    "lz4": raw("lz4"),
    "lz4 -l": lz4_legacy,
}


def test_inspect_reads_the_header(tmp_path: Path) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(bzimage())
    info = inspect(image)
    assert (info.architecture.name, info.release) == ("x86_64", RELEASE)
    assert (info.banner, info.init_size) == (BANNER, 0x037DE000)


def test_signature_after_the_image_is_no_damage(tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_bytes(bzimage() + b"a signature for secure boot")
    assert inspect(image).release == RELEASE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"CONFIG_X=y\n" * 99, "a text file, not a kernel; give the bzImage"),
        ("grün".encode() * 9999, "a text file"),
        (b"\0\1\2\3" * 99, "not a kernel; give the bzImage"),
        (b"\x93" * 99, "not a kernel; give the bzImage"),
        (bzimage()[:-1], "cut off: 2639 bytes of a bzImage of 2640; copy or build it again"),
        (bzimage()[:0x210], "not a kernel"),
        (bzimage(is_64_bit=False), "a 32-bit x86 kernel"),
        (bzimage(release=""), "does not name its release"),
        (bzimage(release="../x"), "does not name its release"),
        (module(), r"an uncompressed x86_64 ELF file \(vmlinux\?\).*arch/x86/boot/bzImage"),
        (b"\x7fELF\2\1\1" + bytes(11) + b"\xb7\0", "an uncompressed arm64 ELF file"),
        (b"\x7fELF\2\2\1" + bytes(11) + b"\0\x16", "an uncompressed s390 ELF file"),
        (b"\x7fELF\2\1\1" + bytes(11) + b"\x99\x09", "machine 2457"),
        (b"MZ" + bytes(54) + b"ARM\x64" + bytes(99), "an arm64 kernel Image"),
        (bytes(56) + b"RSC\x05" + bytes(99), "a riscv kernel Image"),
        (b"MZ\0\0zimg" + bytes(99), "an EFI zboot kernel"),
        (b"MZ" + bytes(99), "a DOS or EFI program"),
        (gzip.compress(b"x", mtime=0), "a gzip file.*decompress it first"),
        (b"QFI\xfb" + bytes(99), "a qcow2 disk image"),
        (b"\xed\xab\xee\xdb" + bytes(99), "an RPM package"),
    ],
)
def test_what_is_no_kernel_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    image = tmp_path / "kernel"
    image.write_bytes(data)
    with pytest.raises(KernelUnusable, match=message) as caught:
        inspect(image)
    assert str(caught.value).startswith(str(image))
    assert "\n" not in str(caught.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(KernelUnusable, match="does not exist"):
        inspect(tmp_path / "absent")
    with pytest.raises(KernelUnusable, match="is a folder"):
        inspect(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(KernelUnusable, match="not a regular file"):
        inspect(tmp_path / "fifo")


@pytest.mark.parametrize("compression", COMPRESSORS)
@pytest.mark.parametrize("size_word", [b"", struct.pack("<I", 3_001_234)], ids=["bare", "sized"])
def test_embedded_config(tmp_path: Path, compression: str, size_word: bytes) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(bzimage(payload=COMPRESSORS[compression](ikconfig()) + size_word))
    assert embedded_config(image) == CONFIG


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no compression known",
        lzma.compress(b"\x90" * 9999 + b"IKCFG_ST is a word in a message, IKCFG_ED another"),
        lzma.compress(b"IKCFG_ST\x1f\x8b\x08" + b"damaged" * 9 + b"IKCFG_ED"),
        lzma.compress(ikconfig())[:400],
    ],
    ids=["none", "unknown", "without", "damaged config", "damaged payload"],
)
def test_no_embedded_config(tmp_path: Path, payload: bytes) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(bzimage(payload=payload))
    assert embedded_config(image) is None

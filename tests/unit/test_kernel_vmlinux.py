# SPDX-License-Identifier: GPL-2.0-only
"""Which kernels QEMU may boot without the guest's own decompression."""

import lzma
import os
import struct

import pytest

from pytest_napi.kernel import vmlinux as module
from pytest_napi.kernel.vmlinux import vmlinux
from samples import bzimage


def elf(name=b"Xen\0", kind=18):
    """Return an ELF64 of one note segment with one note of four bytes."""
    note = struct.pack("<III", len(name), 4, kind) + name + b"\0\0\0\1"
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1",
        *(2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0),
    )
    segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(note), len(note), 4)
    return header + segment + note


def image(folder, content):
    size = struct.pack("<I", len(content))
    path = folder / "bzImage"
    path.write_bytes(bzimage(payload=lzma.compress(content) + size))
    return path


def test_an_elf_with_the_note_is_unpacked_once(tmp_path, monkeypatch):
    path = image(tmp_path, elf())
    found = vmlinux(path, tmp_path / "cache")
    assert found.read_bytes() == elf()
    monkeypatch.setattr(module, "read_payload", pytest.fail)
    assert vmlinux(path, tmp_path / "cache") == found


@pytest.mark.parametrize(
    "content",
    [
        elf(kind=17),
        elf(name=b"GNU\0"),
        elf()[:100],
        elf().replace(struct.pack("<Q", 120), struct.pack("<Q", 1 << 60)),
        b"\x7fELF",
        b"no ELF at all",
    ],
)
def test_what_qemu_could_not_boot_is_left_to_the_bzimage(tmp_path, monkeypatch, content):
    path = image(tmp_path, content)
    assert vmlinux(path, tmp_path / "cache") is None
    monkeypatch.setattr(module, "read_payload", pytest.fail)
    assert vmlinux(path, tmp_path / "cache") is None


def test_a_damaged_payload_is_too(tmp_path):
    path = tmp_path / "bzImage"
    path.write_bytes(bzimage(payload=lzma.compress(elf())[:50]))
    assert vmlinux(path, tmp_path / "cache") is None
    (tmp_path / "text").write_text("no image")
    assert vmlinux(tmp_path / "text", tmp_path / "cache") is None


def test_the_oldest_make_room(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 2)
    found = []
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        found.append(vmlinux(image(tmp_path / str(number), elf()), tmp_path / "cache"))
        os.utime(found[-1], (number, number))
    assert [path.exists() for path in found] == [False, False, True, True]
    assert len(list((tmp_path / "cache" / "vmlinux").iterdir())) == 2

# SPDX-License-Identifier: GPL-2.0-only
"""Makers of small kernels, modules and packages for the other tests."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_napi.kernel import Kernel
from pytest_napi.kernel.architecture import X86_64
from pytest_napi.kernel.config import parse_config
from pytest_napi.kernel.modules import ModuleTree

RELEASE = "6.12.117+deb13-cloud-amd64"
BANNER = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12)"
CONFIG = """\
#
# Automatically generated file; DO NOT EDIT.
# Linux/x86 6.12.117 Kernel Configuration
#
CONFIG_VETH=m
CONFIG_HZ=250
CONFIG_DEFAULT_HOSTNAME="(none)"
# CONFIG_IKCONFIG is not set
"""


def bzimage(
    release: str = RELEASE,
    banner: str = BANNER,
    payload: bytes = b"payload",
    is_64_bit: bool = True,
) -> bytes:
    """Return a bzImage with a boot header that is right and code that is not."""
    setup_sectors, text_at, payload_offset = 4, 0x300, 64
    setup = bytearray((setup_sectors + 1) * 512)
    code = bytes(payload_offset) + payload
    code += bytes(-len(code) % 16)
    setup[0x1F1] = setup_sectors
    struct.pack_into("<I", setup, 0x1F4, len(code) // 16)
    struct.pack_into("<H", setup, 0x1FE, 0xAA55)
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", setup, 0x206, 0x020F)
    struct.pack_into("<H", setup, 0x20E, text_at - 0x200)
    struct.pack_into("<H", setup, 0x236, 0x7F if is_64_bit else 0x7E)
    struct.pack_into("<II", setup, 0x248, payload_offset, len(payload))
    struct.pack_into("<I", setup, 0x260, 0x037DE000)
    text = f"{release} (builder@example.org) {banner}".encode() + b"\0"
    setup[text_at : text_at + len(text)] = text
    return bytes(setup) + code


def ikconfig(text: str = CONFIG) -> bytes:
    """Return what a vmlinux holds that was built with CONFIG_IKCONFIG=y, code before and after."""
    return b"\x90" * 3_000_000 + b"IKCFG_ST" + gzip.compress(text.encode()) + b"IKCFG_ED\0\x90" * 9


def module(**modinfo: str) -> bytes:
    """Return a 64-bit ELF file with a .modinfo section and no code."""
    info = b"".join(f"{key}={value}".encode() + b"\0" for key, value in modinfo.items())
    names = b"\0.modinfo\0.shstrtab\0"
    info_at, names_at = 64, 64 + len(info)
    sections_at = names_at + len(names)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 1, 62, 1, 0, 0, sections_at, 0, 64, 0, 0, 64, 3, 2
    )

    def section(name: int, kind: int, at: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, size, 0, 0, 1, 0)

    table = bytes(64) + section(1, 1, info_at, len(info)) + section(10, 3, names_at, len(names))
    return header + info + names + table


def _tar(files: Mapping[str, bytes], links: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return lzma.compress(buffer.getvalue(), preset=0)


def deb(
    folder: Path,
    name: str,
    files: Mapping[str, bytes] | None = None,
    depends: Sequence[str] = (),
    *,
    architecture: str = "amd64",
    links: Mapping[str, str] | None = None,
) -> Path:
    """Write a .deb into a folder; see deb(5)."""
    fields = f"Package: {name}\nVersion: 1-1\nArchitecture: {architecture}\n"
    if depends:
        fields += f"Depends: {', '.join(depends)}\n"
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": _tar({"./control": fields.encode()}, {}),
        "data.tar.xz": _tar(files or {}, links or {}),
    }
    data = b"!<arch>\n"
    for member, content in members.items():
        data += f"{member:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        data += content + b"\n" * (len(content) % 2)
    path = folder / f"{name}_1-1_{architecture}.deb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _newc(files: Mapping[str, bytes], links: Mapping[str, str]) -> bytes:
    entries = [(0o100644, name, data) for name, data in files.items()]
    entries += [(0o120777, name, target.encode()) for name, target in links.items()]
    archive = b""
    for number, (mode, name, data) in enumerate([*entries, (0, "TRAILER!!!", b"")], start=1):
        path = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        for part in (b"070701" + b"".join(b"%08x" % field for field in fields) + path, data):
            archive += part + bytes(-len(part) % 4)
    return archive


def rpm(
    folder: Path,
    name: str,
    files: Mapping[str, bytes] | None = None,
    *,
    links: Mapping[str, str] | None = None,
    compress: Callable[[bytes], bytes] = lzma.compress,
) -> Path:
    """Write an .rpm into a folder: a lead, a signature and a header of one tag each, a payload.

    See the format's description in rpm's docs/manual/format_v4.md.
    """
    lead = struct.pack(">4sBBHH66sHH16x", b"\xed\xab\xee\xdb", 3, 0, 0, 1, name.encode(), 1, 5)
    text = name.encode() + b"\0"
    string, name_tag = 6, 1000
    index = struct.pack(">IIII", name_tag, string, 0, 1)
    header = struct.pack(">4s4xII", b"\x8e\xad\xe8\x01", 1, len(text)) + index + text
    signature = header + bytes(-len(header) % 8)
    path = folder / f"{name}.x86_64.rpm"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lead + signature + header + compress(_newc(files or {}, links or {})))
    return path


def kernel(
    config: str | None = CONFIG, banner: str = BANNER, modules: ModuleTree | None = None
) -> Kernel:
    """Return a kernel that is nowhere, with this config text."""
    return Kernel(
        label="tested",
        source="a test",
        image=Path("/nowhere/bzImage"),
        architecture=X86_64,
        release=RELEASE,
        banner=banner,
        init_size=1 << 26,
        config=None if config is None else parse_config(config, "a test's config"),
        modules=modules,
    )

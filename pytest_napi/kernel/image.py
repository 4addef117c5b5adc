# SPDX-License-Identifier: GPL-2.0-only
"""Read what an x86 kernel image says about itself: its boot header, and the config inside it.

The layout is Documentation/arch/x86/boot.rst of Linux.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.architecture import X86_64, Architecture, recognise
from pytest_napi.kernel.compression import decompressed

T = TypeVar("T")

_SECTOR = 512
_PARAGRAPH = 16  # the unit of syssize
_SIZE_WORD = 4
_MAGIC = b"HdrS"
_PROTOCOL_WITH_64_BIT_FLAG = 0x020C  # the first with xloadflags; every 64-bit kernel since 3.8
_XLF_KERNEL_64 = 1
# The header ends below this, and so does the version string it points to: the setup code is at most
# 64 sectors.
_HEAD = 65 * _SECTOR

# The gzip magic after the mark tells the config from other uses of the word, e.g. in a message.
_GZIP_MAGIC = b"\x1f\x8b\x08"
_CONFIG_START = b"IKCFG_ST" + _GZIP_MAGIC
_CONFIG_END = b"IKCFG_ED"


@dataclass(frozen=True)
class ImageInfo:
    """What the boot header of an image says.

    ``release`` is what ``uname -r`` prints in the guest and ``banner`` what ``uname -v`` prints.
    ``init_size`` is the memory in bytes the kernel needs from its load address on to unpack itself.
    """

    architecture: Architecture
    release: str
    banner: str
    init_size: int


@dataclass(frozen=True)
class _Header:
    setup_size: int  # bytes before the protected-mode code
    code_size: int  # bytes of the protected-mode code
    is_64_bit: bool
    version_at: int
    payload_at: int
    payload_size: int
    init_size: int


def _parse(head: bytes) -> _Header | None:
    if head[0x202:0x206] != _MAGIC or len(head) < 0x264:
        return None
    (protocol,) = struct.unpack_from("<H", head, 0x206)
    (flags,) = struct.unpack_from("<H", head, 0x236)
    (version,) = struct.unpack_from("<H", head, 0x20E)
    (paragraphs,) = struct.unpack_from("<I", head, 0x1F4)
    payload_offset, payload_size = struct.unpack_from("<II", head, 0x248)
    (init_size,) = struct.unpack_from("<I", head, 0x260)
    # 0 stands for 4: boot loaders of the 1990s left the field empty.
    setup_size = ((head[0x1F1] or 4) + 1) * _SECTOR
    return _Header(
        setup_size=setup_size,
        code_size=paragraphs * _PARAGRAPH,
        is_64_bit=protocol >= _PROTOCOL_WITH_64_BIT_FLAG and bool(flags & _XLF_KERNEL_64),
        version_at=version + 0x200 if version else 0,
        payload_at=setup_size + payload_offset,
        payload_size=payload_size,
        init_size=init_size,
    )


def _is_text(head: bytes) -> bool:
    try:
        # The head may end within a character.
        return "\0" not in head[: len(head) - 4].decode()
    except UnicodeDecodeError:
        return False


def _reject(path: Path, head: bytes) -> KernelUnusable:
    """Say what a file that is no x86 kernel is."""
    signature = recognise(head)
    if signature is not None:
        remedy = f"; {signature.remedy}" if signature.remedy else ""
        return KernelUnusable(
            f"{path}: {signature.what}, not a bootable {X86_64.name} kernel{remedy}"
        )
    what = "a text file, not a kernel" if _is_text(head) else "not a kernel"
    return KernelUnusable(f"{path}: {what}; give the bzImage ({X86_64.image} of the build)")


def _read_head(path: Path) -> tuple[bytes, int]:
    """Return the first bytes and the size of a file."""
    try:
        with open(path, "rb", opener=_open_now) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise KernelUnusable(f"{path}: not a regular file; give a bzImage")
            return file.read(_HEAD), status.st_size
    except FileNotFoundError:
        raise KernelUnusable(f"{path}: does not exist") from None
    except IsADirectoryError:
        raise KernelUnusable(f"{path}: is a folder; give the bzImage in it") from None
    except OSError as error:
        raise KernelUnusable(f"{path}: cannot be read: {error.strerror}") from None


def _open_now(path: str, flags: int) -> int:
    """Open without waiting for the other end, should the path be a FIFO."""
    return os.open(path, flags | os.O_NONBLOCK)


def inspect(path: Path) -> ImageInfo:
    """Read the boot header of a bzImage (or vmlinuz, the same thing).

    Raises KernelUnusable with what is wrong: no such file, empty, text, cut off, built for another
    architecture, not compressed.
    """
    head, size = _read_head(path)
    if not size:
        raise KernelUnusable(f"{path}: is empty; give a bzImage")
    header = _parse(head)
    if header is None:
        raise _reject(path, head)
    expected = header.setup_size + header.code_size
    if size < expected:
        raise KernelUnusable(
            f"{path}: cut off: {size} bytes of a bzImage of {expected}; copy or build it again"
        )
    if not header.is_64_bit:
        raise KernelUnusable(
            f"{path}: a 32-bit x86 kernel; only {X86_64.name} kernels can be tested"
        )
    words = head[header.version_at :].split(b"\0", 1)[0].decode("ascii", "replace")
    release = words.split(" ", 1)[0]
    if not header.version_at or not release or not release.isprintable() or "/" in release:
        raise KernelUnusable(f"{path}: a bzImage that does not name its release; build it again")
    # "6.12.117 (who@where) #1 SMP PREEMPT_DYNAMIC date"
    _, mark, rest = words.partition(" #")
    return ImageInfo(
        architecture=X86_64,
        release=release,
        banner=f"#{rest}" if mark else "",
        init_size=header.init_size,
    )


def embedded_config(path: Path) -> str | None:
    """Return the .config inside an image built with CONFIG_IKCONFIG=y, else None.

    Decompresses the whole kernel, in about a second: ask only where no other config is found.
    Raises HostUnfit if libarchive is missing.
    """
    return read_payload(path, _find_config)


def read_payload(path: Path, read: Callable[[Iterator[bytes]], T | None]) -> T | None:
    """Return what ``read`` makes of the blocks of the uncompressed kernel inside a bzImage.

    None where there is none, or it is damaged or compressed in a way that libarchive does not know.
    ``read`` may stop early, and is called anew where the end was taken for part of the stream.
    Raises HostUnfit if libarchive is missing.
    """
    head, _ = _read_head(path)
    header = _parse(head)
    if header is None or not header.payload_size:
        return None
    with path.open("rb") as file:
        file.seek(header.payload_at)
        payload = file.read(header.payload_size)
    # The build appends the unpacked size, a word that is no part of the stream, except to gzip's,
    # which ends in one of its own.
    ends = [-_SIZE_WORD, None] if not payload.startswith(_GZIP_MAGIC) else [None]
    for end in ends:
        try:
            return read(decompressed(payload[:end]))
        except ValueError:
            continue  # another ending, damage, or a compression that libarchive does not know
    return None


def _find_config(blocks: Iterator[bytes]) -> str | None:
    found = b""
    for block in blocks:
        found = _collect(found, block)
        if _CONFIG_END in found:
            break
    return _unzip(found)


def _collect(found: bytes, block: bytes) -> bytes:
    """Keep the bytes from the mark on; before it only as many as could be the start of the mark."""
    joined = found + block
    start = joined.find(_CONFIG_START)
    return joined[start:] if start >= 0 else joined[-len(_CONFIG_START) :]


def _unzip(found: bytes) -> str | None:
    if not found.startswith(_CONFIG_START) or _CONFIG_END not in found:
        return None
    gzip_magic_at = len(_CONFIG_START) - len(_GZIP_MAGIC)
    try:
        text = zlib.decompressobj(wbits=31).decompress(found[gzip_magic_at:])
    except zlib.error:
        return None
    return text.decode("utf-8", "replace")

# SPDX-License-Identifier: GPL-2.0-only
"""Files of the guest, through the real agent."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from guest_agent import MB
from pytest_napi.guest import Guest

pytest_plugins = ["guest_agent"]


def test_files_are_copied_byte_by_byte(guest: Guest, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(10 * MB)
    guest.write_bytes(tmp_path / "file", content, mode=0o750)
    assert (tmp_path / "file").read_bytes() == content
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o750
    assert guest.read_bytes(tmp_path / "file") == content
    guest.write_text(tmp_path / "file", "ä")
    assert guest.read_text(tmp_path / "file") == "ä"
    guest.write_bytes(tmp_path / "empty", b"")
    assert guest.read_bytes(tmp_path / "empty") == b""


def test_file_errors_are_those_of_open_and_write(guest: Guest, tmp_path: Path) -> None:
    for call in (
        lambda: guest.read_bytes(tmp_path / "missing"),
        lambda: guest.write_bytes(tmp_path / "missing" / "file", b""),
    ):
        with pytest.raises(FileNotFoundError, match=f"in the guest: '{tmp_path}/missing"):
            call()
    with pytest.raises(IsADirectoryError):
        guest.read_bytes(tmp_path)
    with pytest.raises(OSError, match="No space left on device in the guest: '/dev/full'"):
        guest.write_bytes("/dev/full", b"x" * MB)


def test_a_file_that_blocks_does_not_block_the_agent(guest: Guest, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append(guest.read_bytes(fifo)))
    thread.start()
    assert guest.run(["echo", "go on"]).stdout == b"go on\n"
    fifo.write_bytes(b"at last")
    thread.join(5)
    assert read == [b"at last"]

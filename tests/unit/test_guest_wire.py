# SPDX-License-Identifier: GPL-2.0-only
"""The wire format alone: no agent, no socket."""

from __future__ import annotations

import random
import re
import struct

import pytest

from pytest_napi.guest import wire
from pytest_napi.guest.wire import Decoder, Exited, Failed, Flag, Frame, Hello, Kind, Mode, Spawn
from pytest_napi.shipped import shipped

FRAMES = [
    Frame(Kind.PING, 0, b"12345678"),
    Frame(Kind.STDOUT, 7),
    Frame(Kind.STDERR, 0xFFFFFFFF, bytes(range(256)) * 256),
    Frame(99, 1, b"NAPI" * 10),
]


def decoded(*pieces: bytes) -> tuple[list[Frame], int]:
    decoder = Decoder()
    frames = [frame for piece in pieces for frame in decoder.feed(piece)]
    return frames, decoder.skipped


def test_frames_survive_the_round_trip() -> None:
    assert decoded(b"".join(frame.encode() for frame in FRAMES)) == (FRAMES, 0)


def test_frames_may_arrive_in_any_pieces() -> None:
    stream = b"".join(frame.encode() for frame in FRAMES[:2] + FRAMES[3:])
    assert decoded(*(bytes([byte]) for byte in stream)) == (FRAMES[:2] + FRAMES[3:], 0)


def test_the_header_is_sixteen_little_endian_bytes() -> None:
    assert Frame(Kind.SIGNAL, 0x01020304, b"abc").encode() == (
        b"NAPI\x03\0\0\0\x04\x03\x02\x01\x03\0\0\0abc"
    )


def test_a_payload_that_is_too_long_is_refused() -> None:
    with pytest.raises(wire.WireError, match="65537"):
        Frame(Kind.STDIN, 1, bytes(65537)).encode()


@pytest.mark.parametrize(
    "garbage",
    [
        b"x",
        b"NAP",
        b"NNAPNAPI",
        b"NAPI" + b"\xff" * 12,
        struct.pack("<IIIHH", wire.MAGIC, 8, 0, 4, 1),
        bytes(100000),
    ],
)
def test_the_next_frame_is_found_after_garbage(garbage: bytes) -> None:
    frame = FRAMES[0]
    assert decoded(garbage + frame.encode()) == ([frame], len(garbage))
    assert decoded(garbage, frame.encode()) == ([frame], len(garbage))


def test_random_bytes_never_raise() -> None:
    source = random.Random(1)
    for _ in range(200):
        noise = source.randbytes(source.randrange(300)).replace(b"x", b"NAPI")
        decoded(noise, noise)


def test_spawn_is_encoded_as_the_header_file_says() -> None:
    spawn = Spawn([b"a", b""], Mode.WRITE, Flag.PTY, 1, 2, [b"K=V"], b"/d", 0o600, 24, 80)
    fixed = struct.pack("<HHiIHHIHH", 2, 1, 1, 2, 2, 1, 0o600, 24, 80)
    assert spawn.encode() == fixed + b"/d\0a\0\0K=V\0"
    assert Spawn([b"a"]).encode()[14:16] == b"\xff\xff"
    with pytest.raises(ValueError, match="null byte"):
        Spawn([b"a\0b"]).encode()


def test_answers_are_decoded() -> None:
    assert Exited.decode(struct.pack("<iB3xQ", -9, 1, 5)) == Exited(-9, True, 5)
    assert Failed.decode(b"\x02\0\0\0exec") == Failed(2, "exec")
    assert wire.decode_pong(struct.pack("<QQ", 1, 2)) == (1, 2)
    with pytest.raises(wire.WireError, match="3 bytes instead of 4"):
        wire.decode_u32(b"abc")


def test_a_greeting_is_decoded() -> None:
    text = (
        b"protocol=1\nrelease=6\nversion=#1 a=b\nmachine=x\ncpus=2\nuptime_ns=3\nwindow=0\nnew=1\n"
    )
    assert Hello.decode(text) == Hello("6", "#1 a=b", "x", 2, 3, 0)
    with pytest.raises(wire.WireError, match="protocol 9, not 1"):
        Hello.decode(text.replace(b"protocol=1", b"protocol=9"))
    with pytest.raises(wire.WireError, match="cpus"):
        Hello.decode(text.replace(b"cpus=2\n", b""))


def test_both_sides_know_the_same_numbers() -> None:
    header = shipped("images/wire.h").read_text()
    kinds = {
        name: int(number)
        for name, number in re.findall(r"^\tWIRE_(\w+) = (\d+),", header, re.MULTILINE)
        if not name.startswith("MODE_")
    }
    assert kinds == {kind.name: kind.value for kind in Kind}
    assert f"#define WIRE_MAGIC\t\t{wire.MAGIC:#x}u" in header
    assert f"#define WIRE_PAYLOAD_MAX\t{wire.PAYLOAD_MAX}\n" in header
    assert f"#define WIRE_STDIN_CREDIT\t{wire.STDIN_CREDIT}\n" in header

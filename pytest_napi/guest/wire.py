# SPDX-License-Identifier: GPL-2.0-only
"""The wire format between host and guest agent: bytes in, frozen data out, and back.

``images/wire.h`` is the other side and tells what the frames mean in which order.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

MAGIC: Final = 0x4950414E  # "NAPI"
PAYLOAD_MAX: Final = 65536
STDIN_CREDIT: Final = 65536
SEED_SIZE: Final = 32
INHERIT_ENV: Final = 0xFFFF
PROTOCOL: Final = 1

_HEADER: Final = struct.Struct("<IIIHH")
_MAGIC_BYTES: Final = MAGIC.to_bytes(4, "little")
_SPAWN: Final = struct.Struct("<HHiIHHIHH")
_EXITED: Final = struct.Struct("<iB3xQ")
_U32: Final = struct.Struct("<I")
_I32: Final = struct.Struct("<i")
_SIZE: Final = struct.Struct("<HH")
_PONG: Final = struct.Struct("<QQ")


class Kind(enum.IntEnum):
    """What a frame is."""

    SPAWN = 1
    STDIN = 2
    SIGNAL = 3
    PING = 4
    RESIZE = 5
    CLOSE = 6
    HOLD = 7
    RELEASE = 8
    WAKE = 9

    HELLO = 64
    STARTED = 65
    STDOUT = 66
    STDERR = 67
    CONSUMED = 68
    EXITED = 69
    FAILED = 70
    PONG = 71
    STUCK = 72
    RECEIVED = 73


class Mode(enum.IntEnum):
    """What a SPAWN runs."""

    EXEC = 0
    READ = 1
    WRITE = 2


class Flag(enum.IntFlag):
    """How a SPAWN is connected."""

    NONE = 0
    PTY = 1
    NO_STDIN = 2


class StreamMask(enum.IntFlag):
    """Streams that CLOSE, HOLD and RELEASE name."""

    NONE = 0
    STDOUT = 1
    STDERR = 2


class WireError(ValueError):
    """A payload that is not what its kind promises."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; ``kind`` is a :class:`Kind`, or a plain number that this version does not know."""

    kind: int
    id: int
    payload: bytes = b""

    def encode(self) -> bytes:
        """Return the frame's bytes; WireError if the payload is too long."""
        if len(self.payload) > PAYLOAD_MAX:
            raise WireError(f"a payload of {len(self.payload)} bytes, {PAYLOAD_MAX} at most")
        return _HEADER.pack(MAGIC, len(self.payload), self.id, self.kind, 0) + self.payload


class Decoder:
    """Cuts a byte stream into frames, and finds the next frame after garbage."""

    def __init__(self) -> None:
        self.skipped = 0
        """Bytes of garbage so far."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take what has arrived and yield the frames it completes.

        The iterator has to be run to its end before the next call.
        """
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _HEADER.size:
            magic, length, id_, kind, reserved = _HEADER.unpack_from(buffer, at)
            if magic != MAGIC or length > PAYLOAD_MAX or reserved:
                found = _next_magic(buffer, at + 1)
                self.skipped += found - at
                at = found
                continue
            end = at + _HEADER.size + length
            if end > len(buffer):
                break
            yield Frame(kind, id_, bytes(memoryview(buffer)[at + _HEADER.size : end]))
            at = end
        del buffer[:at]


def _next_magic(buffer: bytearray, start: int) -> int:
    """Return where a header may begin, at ``start`` or later; the end of the buffer if nowhere."""
    found = buffer.find(_MAGIC_BYTES, start)
    if found >= 0:
        return found
    for length in (3, 2, 1):
        if buffer.endswith(_MAGIC_BYTES[:length]):
            return max(start, len(buffer) - length)
    return len(buffer)


@dataclass(frozen=True, slots=True)
class Spawn:
    """What to run.  ``env`` None inherits the agent's; ``timeout_ms`` 0 is none, ``cpu`` -1 any."""

    argv: Sequence[bytes]
    mode: Mode = Mode.EXEC
    flags: Flag = Flag.NONE
    cpu: int = -1
    timeout_ms: int = 0
    env: Sequence[bytes] | None = None
    cwd: bytes = b""
    file_mode: int = 0
    rows: int = 0
    cols: int = 0

    def encode(self) -> bytes:
        """Return the payload; it may be longer than a frame can carry."""
        strings = [self.cwd, *self.argv, *(self.env or ())]
        if any(b"\0" in string for string in strings):
            raise ValueError("embedded null byte")
        envc = INHERIT_ENV if self.env is None else len(self.env)
        fixed = _SPAWN.pack(
            self.mode,
            self.flags,
            self.cpu,
            self.timeout_ms,
            # Counts that do not fit come with a payload that does not fit either.
            min(len(self.argv), INHERIT_ENV),
            min(envc, INHERIT_ENV),
            self.file_mode,
            self.rows,
            self.cols,
        )
        return fixed + b"".join(string + b"\0" for string in strings)


@dataclass(frozen=True, slots=True)
class Hello:
    """What the guest says of itself when its agent is ready.

    ``version`` is that of ``uname -v``; ``cpus`` are those online; ``uptime_ns`` is CLOCK_MONOTONIC
    at that moment; ``window`` is how many bytes the host may have underway on the channel, 0 for
    no limit.
    """

    release: str
    version: str
    machine: str
    cpus: int
    uptime_ns: int
    window: int

    @classmethod
    def decode(cls, payload: bytes) -> Hello:
        """Decode a HELLO; WireError if the agent is not one of this version."""
        lines = payload.decode("utf-8", "replace").splitlines()
        values = {key: value for key, _, value in (line.partition("=") for line in lines)}
        if values.get("protocol") != str(PROTOCOL):
            raise WireError(
                f"the guest's agent speaks protocol {values.get('protocol')}, not {PROTOCOL}"
            )
        try:
            return cls(
                release=values["release"],
                version=values["version"],
                machine=values["machine"],
                cpus=int(values["cpus"]),
                uptime_ns=int(values["uptime_ns"]),
                window=int(values["window"]),
            )
        except (KeyError, ValueError) as error:
            raise WireError(f"the guest's agent sent a greeting without {error}") from None


@dataclass(frozen=True, slots=True)
class Exited:
    """How a program ended; ``returncode`` is negative for a signal."""

    returncode: int
    timed_out: bool
    elapsed_ns: int

    @classmethod
    def decode(cls, payload: bytes) -> Exited:
        """Decode an EXITED."""
        returncode, timed_out, elapsed_ns = _unpack(_EXITED, payload)
        return cls(returncode, bool(timed_out), elapsed_ns)


@dataclass(frozen=True, slots=True)
class Failed:
    """The step that failed, "exec" or "open" for example, and its errno."""

    error: int
    step: str

    @classmethod
    def decode(cls, payload: bytes) -> Failed:
        """Decode a FAILED."""
        (error,) = _unpack(_I32, payload[:4])
        return cls(error, payload[4:].decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Ping:
    """One look at the guest's clock.

    ``guest_ns`` is the guest's CLOCK_MONOTONIC, ``host_ns`` the host's ``time.monotonic_ns`` in the
    middle between question and answer: both are the same moment, give or take half of
    ``round_trip_ns``.
    """

    round_trip_ns: int
    guest_ns: int
    host_ns: int


def encode_u32(value: int) -> bytes:
    """Encode a mask, a pid or a count."""
    return _U32.pack(value)


def decode_u32(payload: bytes) -> int:
    """Decode a mask, a pid or a count."""
    (value,) = _unpack(_U32, payload)
    return int(value)


def encode_signal(number: int) -> bytes:
    """Encode the payload of a SIGNAL."""
    return _I32.pack(number)


def encode_size(rows: int, cols: int) -> bytes:
    """Encode the payload of a RESIZE."""
    return _SIZE.pack(rows, cols)


def encode_ping(token: int) -> bytes:
    """Encode the payload of a PING; ``token`` is of 64 bits."""
    return token.to_bytes(8, "little")


def encode_wake(realtime_ns: int, seed: bytes) -> bytes:
    """Encode the time and SEED_SIZE random bytes for a guest that was saved."""
    if len(seed) != SEED_SIZE:
        raise WireError(f"a seed of {len(seed)} bytes instead of {SEED_SIZE}")
    return realtime_ns.to_bytes(8, "little") + seed


def decode_pong(payload: bytes) -> tuple[int, int]:
    """Return the token of a PONG and the guest's CLOCK_MONOTONIC in ns."""
    token, guest_ns = _unpack(_PONG, payload)
    return token, guest_ns


def _unpack(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) != layout.size:
        raise WireError(f"a payload of {len(payload)} bytes instead of {layout.size}")
    return layout.unpack(payload)

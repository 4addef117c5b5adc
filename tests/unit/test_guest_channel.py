# SPDX-License-Identifier: GPL-2.0-only
"""The host's side of the command channel against a guest that the test plays itself."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pytest_napi.errors import GuestCommandTimeout, GuestLost
from pytest_napi.guest import Guest, GuestProcess, wire
from pytest_napi.guest.wire import Frame, Kind

GREETING = "protocol=1\nrelease=6.12\nversion=#1\nmachine=x86_64\ncpus=2\nuptime_ns=5\nwindow={}\n"


class Player:
    """The guest's end of the channel, played frame by frame."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(5)
        self.decoder = wire.Decoder()
        self.frames: list[Frame] = []

    def send(self, kind: Kind, id_: int, payload: bytes = b"") -> None:
        self.sock.sendall(Frame(kind, id_, payload).encode())

    def greet(self, window: int = 0) -> None:
        self.send(Kind.HELLO, 0, GREETING.format(window).encode())

    def expect(self, kind: Kind) -> Frame:
        """Return the next frame that is no ping of the watch, which has to be of this kind."""
        while True:
            while not self.frames:
                self.frames += self.decoder.feed(self.sock.recv(65536))
            frame = self.frames.pop(0)
            if frame.kind != Kind.PING or kind == Kind.PING:
                assert frame.kind == kind
                return frame


@contextlib.contextmanager
def connected(silence: float = 30.0) -> Iterator[tuple[Guest, Player]]:
    ours, theirs = socket.socketpair()
    guest = Guest(ours, lambda reason: GuestLost(f"lost: {reason}", "console"), silence=silence)
    try:
        yield guest, Player(theirs)
    finally:
        guest.close()
        theirs.close()


def in_thread(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Run a call in a thread; the list gets what it returns or raises."""
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(call())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, outcome


def waits(process: GuestProcess) -> list[Callable[[], object]]:
    return [process.wait, process.communicate, process.stdout.read, process.stderr.readline]


def test_the_greeting_is_returned_and_noise_before_it_ignored() -> None:
    with connected() as (guest, player):
        player.sock.sendall(b"\0\xffSeaBIOS NAPI\r\n")
        player.greet()
        assert guest.wait_ready(5).release == "6.12"


def test_a_guest_that_never_greets_is_lost() -> None:
    with connected() as (guest, _), pytest.raises(GuestLost, match=r"did not report in 0\.1 s"):
        guest.wait_ready(0.1)


def test_an_agent_of_another_version_is_lost() -> None:
    with connected() as (guest, player):
        player.send(Kind.HELLO, 0, b"protocol=2\n")
        with pytest.raises(GuestLost, match="protocol 2, not 1"):
            guest.wait_ready(5)


def test_lost_bytes_lose_the_guest() -> None:
    with connected() as (guest, player):
        player.greet()
        player.sock.sendall(b"half a frame")
        player.greet()
        with pytest.raises(GuestLost, match="12 bytes of garbage"):
            guest.ping()


def test_every_wait_ends_when_the_guest_dies() -> None:
    with connected() as (guest, player):
        player.greet()
        calls: list[Callable[[], object]] = []
        processes = []
        for pid in (1, 2, 3, 4):
            thread, started = in_thread(lambda: guest.start("x"))
            player.send(Kind.STARTED, player.expect(Kind.SPAWN).id, wire.encode_u32(pid))
            thread.join(5)
            process = started[0]
            assert isinstance(process, GuestProcess)
            calls.append(waits(process)[pid - 1])
            processes.append(process)
        calls += [lambda: guest.run("x"), lambda: guest.start("x"), guest.ping]
        calls += [lambda: guest.read_bytes("/x"), lambda: guest.write_bytes("/x", bytes(200000))]
        waiting = [in_thread(call) for call in calls]
        time.sleep(0.1)
        player.sock.close()
        for thread, outcome in waiting:
            thread.join(5)
            assert isinstance(outcome[0], GuestLost)
            assert str(outcome[0]) == "lost: the command channel was closed"
            assert outcome[0].detail == "console"
        with pytest.raises(GuestLost):
            guest.run("later")
        with pytest.raises(GuestLost):
            processes[0].poll()


def test_a_silent_guest_is_lost_while_somebody_waits() -> None:
    with connected(silence=0.4) as (guest, player):
        player.greet()
        guest.wait_ready(5)
        time.sleep(0.5)  # nobody waits
        thread, outcome = in_thread(lambda: guest.run("x"))
        player.expect(Kind.SPAWN)
        start = time.monotonic()
        player.expect(Kind.PING)
        thread.join(5)
        assert 0.25 < time.monotonic() - start < 2
        assert str(outcome[0]) == "lost: no answer for 0.4 s"


def test_any_byte_is_a_sign_of_life() -> None:
    with connected(silence=0.2) as (guest, player):
        player.greet()
        _, outcome = in_thread(guest.ping)
        for byte in Frame(Kind.PONG, 0, bytes(16)).encode()[:8]:
            time.sleep(0.05)
            player.sock.sendall(bytes([byte]))
        assert not outcome


def test_a_send_that_blocks_ends_with_the_silence() -> None:
    with connected(silence=0.4) as (guest, player):
        player.greet()
        # More than a socket holds, to a guest that does not read.
        waiting = [in_thread(lambda: guest.run("x" * 60000)) for _ in range(20)]
        for thread, outcome in waiting:
            thread.join(5)
            assert isinstance(outcome[0], GuestLost)


def test_the_window_limits_what_is_underway() -> None:
    with connected() as (guest, player):
        player.greet(window=1000)
        _, outcome = in_thread(lambda: guest.run("x" * 5000))
        frames: list[Frame] = []
        pieces = []
        while not frames:
            piece = player.sock.recv(65536)
            player.sock.settimeout(0.02)
            with pytest.raises(TimeoutError):
                player.sock.recv(1)
            player.sock.settimeout(5)
            frames = list(player.decoder.feed(piece))
            pieces.append(len(piece))
            player.send(Kind.RECEIVED, 0, wire.encode_u32(len(piece)))
        assert pieces[:5] == [1000] * 5
        (spawn,) = frames
        player.send(Kind.FAILED, spawn.id, b"\x02\0\0\0exec")
        time.sleep(0.05)
        assert isinstance(outcome[0], FileNotFoundError)


def test_a_program_that_cannot_be_killed_is_reported_with_its_stack() -> None:
    with connected() as (guest, player):
        player.greet()
        thread, outcome = in_thread(lambda: guest.run(["dd"], timeout=0.1))
        program = player.expect(Kind.SPAWN).id
        player.send(Kind.STARTED, program, wire.encode_u32(42))
        player.send(Kind.STDOUT, program, b"so far")
        player.send(Kind.STUCK, program, wire.encode_u32(42))
        report = player.expect(Kind.SPAWN)
        assert b"/proc/42/stack\0" in report.payload
        player.send(Kind.STDOUT, report.id, b"[<0>] msleep\n")
        player.send(Kind.STDOUT, report.id)
        player.send(Kind.STDERR, report.id)
        player.send(Kind.EXITED, report.id, struct.pack("<iB3xQ", 0, 0, 0))
        thread.join(5)
        error = outcome[0]
        assert isinstance(error, GuestCommandTimeout)
        assert error.output == b"so far"
        assert error.detail.endswith("[<0>] msleep\n")


def test_a_closed_guest_ends_waits_without_asking_for_a_cause() -> None:
    ours, theirs = socket.socketpair()
    guest = Guest(ours, pytest.fail)
    thread, outcome = in_thread(guest.ping)
    guest.close()
    thread.join(5)
    assert str(outcome[0]) == "the guest was shut down"
    theirs.close()

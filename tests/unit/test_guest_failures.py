# SPDX-License-Identifier: GPL-2.0-only
"""An agent that dies, stops or is fed garbage."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import struct
import time
from pathlib import Path

import pytest

from guest_agent import Served
from pytest_napi.errors import GuestLost
from pytest_napi.guest import wire
from pytest_napi.guest.wire import Frame, Kind

pytest_plugins = ["guest_agent"]


def test_a_dead_agent_is_a_lost_guest(agent: Path) -> None:
    served = Served(agent)
    guest = served.guest()
    process = guest.start(["sleep", "60"])
    served.agent.kill()
    with pytest.raises(GuestLost, match="the command channel was closed"):
        process.wait()
    with pytest.raises(GuestLost):
        guest.read_bytes("/etc/passwd")
    os.kill(process.pid, signal.SIGKILL)
    served.end()


def test_a_stopped_agent_is_a_lost_guest(agent: Path) -> None:
    served = Served(agent, silence=0.3)
    guest = served.guest()
    served.agent.send_signal(signal.SIGSTOP)
    with pytest.raises(GuestLost, match=r"no answer for 0\.3 s"):
        guest.run(["true"])
    served.agent.send_signal(signal.SIGCONT)
    served.end()


def test_a_slow_program_is_no_lost_guest(agent: Path) -> None:
    served = Served(agent, silence=0.2)
    assert served.guest().run(["sleep", "0.5"]).returncode == 0
    served.end()


def test_no_program_outlives_the_host(agent: Path) -> None:
    served = Served(agent)
    pid = served.guest().start(["sleep", "60"]).pid
    served.end()
    # Killed; who reaps it now is not ours to say.
    with contextlib.suppress(FileNotFoundError):
        time.sleep(0.05)
        assert "State:\tZ" in Path(f"/proc/{pid}/status").read_text()


def receive(sock: socket.socket, kind: Kind) -> Frame:
    decoder = wire.Decoder()
    sock.settimeout(5)
    while True:
        for frame in decoder.feed(sock.recv(65536)):
            if frame.kind == kind:
                return frame


def test_the_agent_survives_garbage(agent: Path) -> None:
    served = Served(agent)
    source = random.Random(2)
    sock = served.socket
    receive(sock, Kind.HELLO)
    for _ in range(100):
        sock.sendall(source.randbytes(source.randrange(2000)).replace(b"N", b"NAPI"))
        # A header in the garbage may swallow what follows, for as long as a payload can be.
        sock.sendall(bytes(wire.PAYLOAD_MAX + 16))
        ping = source.randbytes(8)
        sock.sendall(Frame(Kind.PING, 0, ping).encode())
        assert receive(sock, Kind.PONG).payload[:8] == ping
    assert "napi-agent: garbage on the channel" in served.end()


def test_malformed_frames_get_an_answer_or_a_complaint(agent: Path) -> None:
    served = Served(agent)
    source = random.Random(3)
    sock = served.socket
    good = wire.Spawn([b"true"], env=[b"A=B"]).encode()
    bad = [good[:10], good[:-1], good + b"x\0", good.replace(b"true", b"tr\0e")]
    bad += [struct.pack("<H", 3) + good[2:], good[:12] + b"\0\0" + good[14:], b""]
    for id_, payload in enumerate(bad, start=1):
        sock.sendall(Frame(Kind.SPAWN, id_, payload).encode())
        assert receive(sock, Kind.FAILED).payload == b"\x16\0\0\0spawn"
    sock.sendall(Frame(Kind.SPAWN, 0, good).encode())
    for kind in (*range(2, 9), 50, 65535):
        sock.sendall(Frame(kind, 5, source.randbytes(3)).encode())
        sock.sendall(Frame(kind, 6, source.randbytes(4)).encode())
    sock.sendall(Frame(Kind.PING, 0, b"12345678").encode())
    receive(sock, Kind.PONG)
    complaints = served.end()
    assert complaints.count("malformed SPAWN") == len(bad)
    assert "SPAWN with the id 0" in complaints
    assert "malformed frame: kind 50, 4 bytes" in complaints

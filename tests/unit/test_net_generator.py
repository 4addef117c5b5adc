# SPDX-License-Identifier: GPL-2.0-only
"""The generator's real process, into a socket pair instead of a NIC."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from pytest_napi.net.generator import Generator, GeneratorError, framing_of
from pytest_napi.net.shapes import Flood, OnOff, Paced

FRAMES = tuple(bytes([flow]) * 60 for flow in range(8))


class Sink:
    """Reads what arrives, and takes it apart again."""

    def __init__(self, kind, pause=0.0, buffer=None):
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, kind)
        if buffer is not None:
            self.theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        self.framing = framing_of(self.ours)
        self.frames = []
        self.rest = b""
        self._pause = pause
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while data := self.ours.recv(1 << 16):
            if self.framing == "dgram":
                self.frames.append(data)
                continue
            self.rest += data
            while len(self.rest) >= 4:
                end = 4 + int.from_bytes(self.rest[:4], "big")
                if len(self.rest) < end:
                    break
                self.frames.append(self.rest[4:end])
                self.rest = self.rest[end:]
            time.sleep(self._pause)

    def end(self):
        # A datagram socket's other end never says that it is the last.
        if self.framing == "dgram":
            self.theirs.send(b"")
        self.theirs.close()
        self._thread.join(5)
        self.ours.close()
        assert not self._thread.is_alive()
        return self.frames


@pytest.fixture(params=[socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["stream", "dgram"])
def kind(request):
    return request.param


def generate(sink, shape, seconds=None, **limits):
    return Generator(sink.theirs.fileno(), sink.framing, FRAMES, shape, seconds=seconds, **limits)


def test_no_more_is_offered_than_is_allowed(kind):
    sink = Sink(kind)
    seen = []

    def watch(count):
        seen.append(count.offered)
        return 5000 if len(seen) > 2 else None

    with generate(sink, Flood(batch=100), ahead=1000, watch=watch) as generator:
        while len(seen) < 6:
            time.sleep(0.01)
        generator.stop()
    assert seen[:2] == [1000, 1000]
    assert seen[5] == len(sink.end()) == 5000


def test_a_peer_that_goes_while_nothing_is_allowed():
    sink = Sink(socket.SOCK_STREAM)
    with generate(sink, Flood(), ahead=0) as generator:
        time.sleep(0.2)
        sink.ours.shutdown(socket.SHUT_RDWR)
        assert generator.wait(2).reason == "peer gone"
    sink.end()


@pytest.mark.parametrize("shape", [Flood(), Paced(5000), OnOff(5000, 0.1, 0.1)], ids=str)
def test_every_frame_that_is_counted_arrives_whole(kind, shape):
    sink = Sink(kind)
    with generate(sink, shape, seconds=0.4) as generator:
        count = generator.wait(10)
    frames = sink.end()
    assert count.reason == "done"
    assert len(frames) == count.offered > 0
    assert count.bytes == 60 * count.offered
    assert {len(frame) for frame in frames} == {60}
    # One after the other: no flow gets more than one frame ahead of another.
    flows = Counter(frame[0] for frame in frames)
    assert max(flows.values()) - min(flows.values()) <= 1
    assert sink.rest == b""


def test_a_slow_reader_holds_a_stream_up_and_no_frame_is_cut():
    sink = Sink(socket.SOCK_STREAM, pause=0.002, buffer=2048)
    with generate(sink, Flood()) as generator:
        time.sleep(0.4)
        count = generator.stop()
    assert count.reason == "stopped"
    assert not count.broken
    assert len(sink.end()) == count.offered > 0
    assert sink.rest == b""


def test_nobody_reads_at_all_and_it_still_ends():
    ours, theirs = socket.socketpair()
    with ours, theirs, Generator(theirs.fileno(), "stream", FRAMES, Flood()) as generator:
        time.sleep(0.3)
        begun = time.monotonic()
        count = generator.stop()
    assert time.monotonic() - begun < 4
    assert count.reason == "stopped"


def test_a_peer_that_goes_away_ends_it(kind):
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with theirs, Generator(theirs.fileno(), framing_of(theirs), FRAMES, Paced(5000)) as generator:
        time.sleep(0.2)
        ours.close()
        assert generator.wait(5).reason == "peer gone"


def test_one_that_is_killed_is_an_error_that_says_after_how_many_frames():
    sink = Sink(socket.SOCK_STREAM)
    with generate(sink, Paced(5000)) as generator:
        while not generator.latest.offered:
            time.sleep(0.01)
        os.kill(generator.pid, signal.SIGKILL)
        with pytest.raises(GeneratorError, match=r"died \(SIGKILL\) after \d+ frames"):
            generator.wait(5)
    sink.end()


def test_a_pace_is_kept():
    sink = Sink(socket.SOCK_STREAM)
    with generate(sink, Paced(2000), seconds=1.0) as generator:
        count = generator.wait(10)
    sink.end()
    # What a busy host holds up is made up for, and what it holds up for long is given up.
    lost = 2000 * count.given_up_ns / 1e9
    assert 2000 - lost - 100 <= count.offered <= 2032
    assert 0 < count.error_p50_ns <= count.error_p99_ns <= count.error_max_ns


def test_it_does_not_outlive_who_made_it():
    script = """
        import os, socket, sys, time
        from pytest_napi.net.generator import Generator
        from pytest_napi.net.shapes import Flood
        ours, theirs = socket.socketpair()
        generator = Generator(theirs.fileno(), "stream", [bytes(60)], Flood())
        print(generator.pid, flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
    )
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

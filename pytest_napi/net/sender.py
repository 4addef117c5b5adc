# SPDX-License-Identifier: GPL-2.0-only
"""The traffic generator's process: writes frames to a descriptor when they are due.

    python -m pytest_napi.net.sender

Takes its orders as one JSON line on stdin.  A number on a later line is how many frames it may have
offered until the next; it ends when an empty line, or the end of stdin, comes.  Prints a JSON line
with its counts every 100 ms and at its end.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import sys
import threading
import time
from array import array
from collections.abc import Sequence

from pytest_napi.net.shapes import Shape, from_plain

STREAM, DGRAM = "stream", "dgram"

TICK_SECONDS = 0.1

LAG_SECONDS = 0.1
"""What is sent late is made up for up to this: the mean rate is what was asked for.  What is later
is given up, so that a guest that was away for long is not met by one huge burst."""

_ALLOWED_SECONDS = 0.002
"""How soon it is noticed that more frames are allowed."""

_NAP_SECONDS = 0.05
"""How long a stop may go unnoticed."""

_FINISH_SECONDS = 1.0
"""How long a frame that is half written is waited for at the end."""


class PeerGone(Exception):
    """Nobody reads any more."""


class Wire:
    """Writes batches of whole frames; keeps count of them."""

    def __init__(
        self, sock: socket.socket, framing: str, frames: Sequence[bytes], stop: threading.Event
    ) -> None:
        self.offered = 0
        self.bytes = 0
        self.refused = 0
        self.broken = False
        """A frame was left half written: whatever follows it is no frame any more."""
        self.allowed = float("inf")
        """Frames that may have been offered."""
        self._sock = sock
        self._stream = framing == STREAM
        self._size = len(frames[0])  # all flows have frames of one size
        self._stop = stop
        self._next = 0
        self._poll = select.poll()
        self._poll.register(sock, select.POLLOUT)
        self._hang_up = select.poll()
        self._hang_up.register(sock, 0)
        heads = [len(frame).to_bytes(4, "big") if self._stream else b"" for frame in frames]
        self._records = [head + frame for head, frame in zip(heads, frames, strict=True)]
        self._batches: dict[tuple[int, int], tuple[bytes, list[int]]] = {}

    def wait_allowed(self, seconds: float) -> bool:
        """Wait until more frames may be offered, or for ``seconds``.  Raises PeerGone."""
        if self.offered >= self.allowed and self._hang_up.poll(seconds * 1000):
            raise PeerGone
        return self.offered < self.allowed

    def send(self, count: int) -> None:
        """Send the next ``count`` frames; returns early when it is to stop.  Raises PeerGone."""
        try:
            (self._send_stream if self._stream else self._send_datagrams)(count)
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ECONNREFUSED):
                raise PeerGone from None
            raise

    def _send_stream(self, count: int) -> None:
        batch, ends = self._batch(count)
        view, written, whole = memoryview(batch), 0, 0
        deadline = None
        while written < len(batch):
            try:
                written += self._sock.send(view[written:], socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._poll.poll(_NAP_SECONDS * 1000)
            while whole < count and ends[whole] <= written:
                whole += 1
            if self._stop.is_set() and written < len(batch):
                if written == (ends[whole - 1] if whole else 0):
                    break
                deadline = deadline or time.monotonic() + _FINISH_SECONDS
                batch, view = batch[: ends[whole]], view[: ends[whole]]
                if time.monotonic() > deadline:
                    self.broken = True
                    break
        self._count(whole, whole)

    def _batch(self, count: int) -> tuple[bytes, list[int]]:
        """Return the next ``count`` records in one piece, and where each of them ends."""
        key = self._next, count
        if key not in self._batches:
            records = [self._records[(self._next + i) % len(self._records)] for i in range(count)]
            ends, end = [], 0
            for record in records:
                end += len(record)
                ends.append(end)
            self._batches[key] = b"".join(records), ends
        return self._batches[key]

    def _send_datagrams(self, count: int) -> None:
        send, frames, number = self._sock.send, self._records, self._next
        sent = tried = 0
        try:
            while tried < count and not self._stop.is_set():
                try:
                    send(frames[number], socket.MSG_DONTWAIT)
                    sent += 1
                except BlockingIOError:
                    self._poll.poll(_NAP_SECONDS * 1000)
                    continue
                except OSError as error:
                    # The queue of a tap is full: its kernel has thrown the frame away.
                    if error.errno != errno.ENOBUFS:
                        raise
                    self.refused += 1
                tried += 1
                number = number + 1 if number + 1 < len(frames) else 0
        finally:
            self._count(sent, tried)

    def _count(self, sent: int, tried: int) -> None:
        self.offered += sent
        self.bytes += sent * self._size
        self._next = (self._next + tried) % len(self._records)


class Pace:
    """Follows a shape, and knows how well."""

    def __init__(self) -> None:
        self.errors = array("d")
        """Of every burst but the first: seconds that it came later or earlier after the one before
        than the shape has it."""
        self._before: tuple[float, float] | None = None
        self.given_up = 0.0
        """Seconds the schedule was put off because the guest, or the host, did not keep up."""

    def note(self, due: float, now: float) -> None:
        """Take down that a burst which was due then is sent now."""
        if self._before is not None:
            before_due, before = self._before
            self.errors.append(abs((now - before) - (due - before_due)))
        self._before = due, now

    def percentile(self, share: float) -> float:
        """Return the error that ``share`` of the bursts do not exceed; seconds."""
        ordered = sorted(self.errors)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


class Counter:
    """Prints the counts."""

    def __init__(self, wire: Wire, pace: Pace) -> None:
        self._wire = wire
        self._pace = pace
        self._next = time.monotonic() + TICK_SECONDS

    def tick(self, now: float) -> None:
        """Print a line when one is due."""
        if now >= self._next:
            self._next = now + TICK_SECONDS
            self.say("tick")

    def say(self, event: str, reason: str = "") -> None:
        """Print a line."""
        wire, pace = self._wire, self._pace
        line: dict[str, object] = {
            "event": event,
            "time_ns": time.monotonic_ns(),
            "offered": wire.offered,
            "bytes": wire.bytes,
            "refused": wire.refused,
            "cpu_ns": time.process_time_ns(),
            "given_up_ns": int(pace.given_up * 1e9),
        }
        if event == "end":
            line |= {"reason": reason, "broken": wire.broken}
            for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                line[f"error_{name}_ns"] = int(pace.percentile(share) * 1e9)
        print(json.dumps(line), flush=True)


def follow(
    wire: Wire, shape: Shape, seconds: float | None, stop: threading.Event, pace: Pace
) -> Counter:
    """Send what is due when it is due, for ``seconds`` or until told to stop."""
    counter = Counter(wire, pace)
    base = time.monotonic()
    end = base + seconds if seconds is not None else float("inf")
    for due, count in shape.bursts():
        at = base + due
        now = time.monotonic()
        while now < at and now < end and not stop.is_set():
            time.sleep(min(at - now, _NAP_SECONDS))
            now = time.monotonic()
            counter.tick(now)
        while now < end and not stop.is_set() and not wire.wait_allowed(_ALLOWED_SECONDS):
            now = time.monotonic()
            counter.tick(now)
        if now >= end or stop.is_set():
            break
        if due:
            pace.note(due, now)
            if now - at > LAG_SECONDS:
                pace.given_up += now - at
                base += now - at
        wire.send(count)
        counter.tick(time.monotonic())
    return counter


def main() -> None:
    """Take the orders and follow them."""
    orders = json.loads(sys.stdin.readline())
    stop = threading.Event()
    data = os.pread(orders["frames"], sum(orders["sizes"]), 0)
    frames, at = [], 0
    for size in orders["sizes"]:
        frames.append(data[at : at + size])
        at += size
    pace = Pace()
    wire = Wire(socket.socket(fileno=orders["descriptor"]), orders["framing"], frames, stop)
    if orders["ahead"] is not None:
        wire.allowed = orders["ahead"]

    def listen() -> None:
        for line in iter(sys.stdin.readline, ""):
            if not line.strip():
                break
            wire.allowed = int(line)
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    reason = "done"
    try:
        follow(wire, from_plain(orders["shape"]), orders["seconds"], stop, pace)
        if stop.is_set():
            reason = "stopped"
    except PeerGone:
        reason = "peer gone"
    Counter(wire, pace).say("end", reason)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # nobody listens to the counts any more
        os._exit(0)
    except OSError as error:
        sys.exit(f"{type(error).__name__}: {error}")

# SPDX-License-Identifier: GPL-2.0-only
"""The command channel: a socket, one thread that reads it, and the watch over a silent guest.

The thread never blocks on anything but the socket's input: whatever it has to send it posts, and
the frame leaves as soon as the socket takes it.  So the host always reads, which is what the
agent's side relies on.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NoReturn, Protocol

from pytest_napi.errors import GuestLost
from pytest_napi.guest import wire
from pytest_napi.guest.wire import Frame, Hello, Kind, Ping

_RECEIVE_SIZE: Final = 262144
_TICK_S: Final = 1.0
# The watch asks when nothing has come for this long: often enough within any sensible silence.
_PING_AFTER_S: Final = 5.0
# The token of the watch's own pings, whose answers count only as signs of life.
_WATCH_TOKEN: Final = 0
_CLOSED: Final = "the command channel was closed"


class Receiver(Protocol):
    """What the frames of one id go to.  Both methods run in the reading thread; neither blocks."""

    def deliver(self, frame: Frame) -> None:
        """Take a frame of this id."""

    def channel_lost(self) -> None:
        """Wake whoever waits: no more frames will come."""


class Channel:
    """Frames to and from the guest's agent, for any number of threads.

    ``lost(reason)`` makes the exception that every present and future wait ends with; it is called
    once, in the reading thread.  ``silence`` is in seconds: how long the guest may send no byte
    while somebody waits for it.
    """

    def __init__(
        self, sock: socket.socket, lost: Callable[[str], GuestLost], silence: float
    ) -> None:
        sock.setblocking(True)
        self._sock = sock
        self._lost = lost
        self._silence = silence
        self._decoder = wire.Decoder()
        self._ids = itertools.count(1)
        self._tokens = itertools.count(_WATCH_TOKEN + 1)

        # Guards what follows and is notified of each change to it.
        self._changed = threading.Condition()
        self._hello: Hello | None = None
        self._death: GuestLost | None = None
        self._reason: str | None = None
        self._receivers: dict[int, Receiver] = {}
        self._pongs: dict[int, tuple[int, int] | None] = {}
        self._waiting = 0
        self._underway = 0

        self._send_lock = threading.Lock()
        self._posted: deque[Frame] = deque()
        self._thread = threading.Thread(target=self._read, name="napi-channel", daemon=True)
        self._thread.start()

    # For callers ---------------------------------------------------------------------------------

    def wait_hello(self, timeout: float | None) -> Hello:
        """Wait until the agent has greeted; GuestLost after ``timeout`` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self.wait(self._changed, lambda: self._hello is not None, deadline):
            with self._changed:
                self._reason = self._reason or f"the guest's agent did not report in {timeout:g} s"
            self._wait_for_death()
        assert self._hello is not None
        return self._hello

    def wake(self) -> None:
        """Take over a guest that was saved and restored, which then greets again; GuestLost."""
        with self._changed:
            self._hello = None
        payload = wire.encode_wake(time.time_ns(), os.urandom(wire.SEED_SIZE))
        with self._send_lock:
            try:
                # Past the window, which is known from the greeting.
                self._sock.sendall(Frame(Kind.WAKE, 0, payload).encode())
            except OSError:
                self._wait_for_death()

    def register(self, receiver: Receiver) -> int:
        """Return a new id whose frames go to ``receiver``."""
        with self._changed:
            id_ = next(self._ids)
            self._receivers[id_] = receiver
            return id_

    def forget(self, id_: int) -> None:
        """Drop whatever still comes for an id."""
        with self._changed:
            self._receivers.pop(id_, None)

    def send(self, kind: Kind, id_: int, payload: bytes = b"") -> None:
        """Send a frame, waiting while the guest takes none; GuestLost."""
        if self._hello is None:
            self.wait_hello(None)
        data = Frame(kind, id_, payload).encode()
        with self._watched():
            with self._send_lock:
                self._write(self._take_posted() + data)
            self._flush_posted()

    def post(self, kind: Kind, id_: int, payload: bytes = b"") -> None:
        """Send a small frame soon and never block, from any thread and any finaliser."""
        self._posted.append(Frame(kind, id_, payload))
        self._flush_posted()

    def wait(
        self, condition: threading.Condition, done: Callable[[], bool], deadline: float | None
    ) -> bool:
        """Wait until ``done()``, checked under ``condition``; False at the deadline; GuestLost.

        The deadline is one of ``time.monotonic``, None for none.
        """
        with self._watched(), condition:
            while not done():
                if self._death is not None:
                    raise self._death.with_traceback(None)
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                condition.wait(None if left is None else min(left, threading.TIMEOUT_MAX))
        return True

    def raise_if_lost(self) -> None:
        """Raise GuestLost if the guest is known to be gone."""
        if self._death is not None:
            raise self._death.with_traceback(None)

    def ping(self) -> Ping:
        """Measure one round trip; GuestLost."""
        token = next(self._tokens)
        with self._changed:
            self._pongs[token] = None
        try:
            sent_ns = time.monotonic_ns()
            self.send(Kind.PING, 0, wire.encode_ping(token))
            self.wait(self._changed, lambda: self._pongs[token] is not None, None)
        finally:
            with self._changed:
                answer = self._pongs.pop(token)
        assert answer is not None
        guest_ns, received_ns = answer
        round_trip_ns = received_ns - sent_ns
        return Ping(round_trip_ns, guest_ns, sent_ns + round_trip_ns // 2)

    def close(self) -> None:
        """Hang up: the guest powers off.  Waits that are left end with GuestLost."""
        with self._changed:
            if self._death is None:
                self._death = GuestLost("the guest was shut down")
        self._shutdown()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # Sending -------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        """Send bytes under the send lock, within the channel's window."""
        view = memoryview(data)
        while view:
            room = self._wait_for_window(len(view))
            try:
                self._sock.sendall(view[:room])
            except OSError:
                self._wait_for_death()
            view = view[room:]

    def _window(self) -> int:
        return self._hello.window if self._hello else 0

    def _wait_for_window(self, wanted: int) -> int:
        """Take up to ``wanted`` bytes of the window, waiting for one at least."""
        window = self._window()
        if not window:
            return wanted
        self.wait(self._changed, lambda: self._underway < window, None)
        with self._changed:
            room = min(wanted, window - self._underway)
            self._underway += room
        return room

    def _take_posted(self) -> bytes:
        frames = bytearray()
        with contextlib.suppress(IndexError):
            while True:
                frames += self._posted.popleft().encode()
        return bytes(frames)

    def _flush_posted(self) -> None:
        """Send posted frames if that is possible at once; else a later call does."""
        while self._posted and self._hello is not None and self._death is None:
            if not self._send_lock.acquire(blocking=False):
                return  # whoever has the lock flushes after it
            try:
                if not self._takes_a_frame():
                    return
                data = self._posted.popleft().encode()
                with self._changed:
                    self._underway += len(data)
                self._sock.sendall(data)
            except IndexError:
                return
            except OSError:
                self._shutdown()
                return
            finally:
                self._send_lock.release()

    def _takes_a_frame(self) -> bool:
        """Can a small frame be sent without blocking?"""
        window = self._window()
        if window and window - self._underway < 64:
            return False
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        return any(event & select.POLLOUT for _, event in poll.poll(0))

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """While inside, the guest's silence counts."""
        with self._changed:
            self._waiting += 1
        try:
            yield
        finally:
            with self._changed:
                self._waiting -= 1

    # The reading thread --------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            reason = self._serve()
        except ConnectionError:
            # With something unread on either side a close is a reset.
            reason = _CLOSED
        except (OSError, wire.WireError) as error:
            reason = str(error)
        self._die(self._reason or reason)

    def _serve(self) -> str:
        """Dispatch frames until the channel ends; return why it did."""
        tick = min(_TICK_S, self._silence / 8)
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        quiet = 0.0
        asked = 0.0
        before = time.monotonic()
        while True:
            ready = poll.poll(tick * 1000)
            received_ns = time.monotonic_ns()
            if ready:
                data = self._sock.recv(_RECEIVE_SIZE)
                if not data:
                    return _CLOSED
                quiet = asked = 0.0
                for frame in self._decoder.feed(data):
                    self._dispatch(frame, received_ns)
                if self._hello is not None and self._decoder.skipped:
                    return f"{self._decoder.skipped} bytes of garbage on the command channel"
            self._flush_posted()
            now = time.monotonic()
            if not self._waiting or self._hello is None:
                quiet = asked = 0.0
            elif not ready:
                # Not the plain difference: while this process was stopped, so was the watch.
                quiet += min(now - before, 2 * tick)
            before = now
            if quiet >= self._silence:
                return f"no answer for {self._silence:g} s"
            if quiet - asked >= min(_PING_AFTER_S, self._silence / 4):
                asked = quiet
                self.post(Kind.PING, 0, wire.encode_ping(_WATCH_TOKEN))

    def _dispatch(self, frame: Frame, received_ns: int) -> None:
        if frame.id:
            receiver = self._receivers.get(frame.id)
            if receiver is not None:
                receiver.deliver(frame)
            return
        with self._changed:
            if frame.kind == Kind.HELLO:
                if self._hello is None:
                    self._decoder.skipped = 0  # whatever a serial port said before
                self._hello = Hello.decode(frame.payload)
                self._underway = 0
            elif frame.kind == Kind.PONG:
                token, guest_ns = wire.decode_pong(frame.payload)
                if token in self._pongs:
                    self._pongs[token] = (guest_ns, received_ns)
            elif frame.kind == Kind.RECEIVED:
                self._underway -= wire.decode_u32(frame.payload)
            self._changed.notify_all()

    def _die(self, reason: str) -> None:
        # Before lost(): a thread that blocks in sendall() holds the lock that closing needs.
        self._shutdown()
        death = self._death
        if death is None:
            try:
                death = self._lost(reason)
            except Exception as error:  # waits must end, whatever the caller's code does
                death = GuestLost(f"{reason} ({error})")
        with self._changed:
            self._death = self._death or death
            receivers = list(self._receivers.values())
            self._changed.notify_all()
        for receiver in receivers:
            receiver.channel_lost()
        with self._send_lock:
            self._sock.close()

    def _wait_for_death(self) -> NoReturn:
        """End the channel, let the reading thread find out why, and raise what it found."""
        self._shutdown()
        self.wait(self._changed, lambda: False, None)
        raise AssertionError("a channel that was shut down lives on")

    def _shutdown(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

# SPDX-License-Identifier: GPL-2.0-only
"""Traffic into a NIC of the guest, and the proof of where it arrived."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType, TracebackType

from pytest_napi.closing import closed_on_error
from pytest_napi.errors import GuestLost, NapiError
from pytest_napi.guest.boot import Booted
from pytest_napi.guest.ethtool import NicError
from pytest_napi.machine.nics import BACKENDS, NIC_MODELS
from pytest_napi.net.frames import FrameSpec, build
from pytest_napi.net.generator import Count, Generator
from pytest_napi.net.load import keep_agent_off
from pytest_napi.net.nic import Nic
from pytest_napi.net.shapes import OnOff, Shape
from pytest_napi.net.watch import LIFE_SECONDS, KthreadWork, NicTick, NicWatch, TrafficRate

STALL_SECONDS = 1.0
"""A NIC that gets frames and shows none for this long has stopped receiving: a paced load brings
hundreds of bursts in this time, and a flood never pauses."""

_SETTLE_SECONDS = 5.0
"""What is under way when the generator ends arrives within this, or never."""

_AHEAD_FRAMES = 2048
_AHEAD_TICKS = 4
"""Over a backend that reads ahead, this much may be on its way: some frames, and as many as arrived
in that many of the 100 ms between two looks.  What is known of the guest is up to two looks old, so
that a flood never runs dry."""

_QUEUE_SECONDS = 1.0

_STALL_LOOKS = 3
_STALL_FRAMES = 1000
"""Of three looks in a row, two seconds, a queue shows nothing while others get this many: with
flows spread by a hash that does not happen."""


@dataclass(frozen=True)
class TrafficCounts:
    """What became of the frames, over the whole of the traffic."""

    seconds: float
    """From the generator's first frame to its end, on the host's clock."""
    offered: int
    """Frames the generator has written to the NIC's wire, or tried to."""
    delivered: int
    """Frames the guest's driver has received."""
    dropped: Mapping[str, int]
    """Frames that were thrown away, by who did it: the ``tap``'s queue, the guest's NIC by its own
    account (``rx_missed``, ``rx_errors``, ``ring_full``), or QEMU's model of it (``emulated``),
    where that is known to count nothing."""
    generator: Count

    @property
    def lost(self) -> int:
        """Frames nobody accounts for: 0 unless something is wrong."""
        return self.offered - self.delivered - sum(self.dropped.values())

    @property
    def delivered_per_second(self) -> float:
        """The rate at which frames arrived."""
        return self.delivered / self.seconds


def _with_dropped(counts: TrafficCounts, who: str, frames: int) -> TrafficCounts:
    return replace(counts, dropped=MappingProxyType({**counts.dropped, who: frames}))


class Traffic:
    """Traffic into one NIC: a context manager, running while inside.

    Entering waits until the guest receives.  Leaving stops it, waits for what is under way, and
    raises NicError when the NIC, or one of its queues, has stopped receiving; GeneratorError when
    the generator has died, and GuestLost when QEMU has.
    """

    def __init__(
        self,
        booted: Booted,
        nic: Nic,
        shape: Shape,
        *,
        flows: int,
        size: int,
        protocol: str,
        cpu: int | None,
        show: Callable[[str], None],
    ) -> None:
        backend = BACKENDS[nic.config.backend]
        if nic.wire.ours is None or backend.framing is None:
            raise NicError(
                f"{nic.config}: no frames from the host over {backend.name}: use backend=stream"
            )
        six = protocol == "udp6"
        self._frames = build(
            FrameSpec(
                destination_mac=nic.mac,
                destination=nic.ipv6 if six else nic.ipv4,
                source=nic.peer_ipv6 if six else nic.peer_ipv4,
                protocol=protocol,
                flows=flows,
                size=size,
            )
        )
        self.nic = nic
        self.shape = shape
        self.queues: Mapping[int, int] = MappingProxyType({})
        """Frames each RX queue received; empty where nothing counts them by queue."""
        self._booted = booted
        self._cpu = cpu
        self._show = show
        self._framing = backend.framing
        self._model = NIC_MODELS[nic.config.model]
        # A NIC that throws frames away holds nothing up, and cannot say how many are on their way.
        self._limited = backend.reads_ahead and not self._model.drops
        self._counts: TrafficCounts | None = None

    @property
    def rate(self) -> TrafficRate:
        """The counters so far."""
        return TrafficRate(tuple(self._watched.ticks), self.shape.pps)

    @property
    def ticks(self) -> tuple[NicTick, ...]:
        """The counters of every 100 ms so far."""
        return tuple(self._watched.ticks)

    @property
    def kthreads(self) -> tuple[KthreadWork, ...]:
        """What the NIC's kthreads have done so far; none when it is polled in softirq."""
        return self._watched.ticks[-1].kthreads

    @property
    def counts(self) -> TrafficCounts:
        """What became of the frames; once the traffic has ended."""
        if self._counts is None:
            raise NapiError("traffic.counts: only after the traffic has ended")
        return self._counts

    @property
    def remaining_seconds(self) -> float:
        """How long the traffic may still last."""
        return LIFE_SECONDS - (time.monotonic() - self._begun)

    def prove_queues(self, count: int) -> None:
        """Raise NicError unless ``count`` RX queues have received frames."""
        receiving = [queue for queue, frames in self.queues.items() if frames]
        if len(receiving) < count:
            raise NicError(
                f"{self.nic.name}: frames arrived on {len(receiving)} of the {count} RX queues "
                f"that were to receive: {dict(self.queues)}"
            )

    def __enter__(self) -> Traffic:
        if self._cpu is not None:
            keep_agent_off(self._booted, self._cpu)
            for kthread in self.nic.kthreads:
                self.nic.pin(kthread, self._cpu)
            for irq in self.nic.irqs:
                self.nic.pin(irq, self._cpu)
        self.nic.wait_link()
        self._watched = NicWatch(self._booted, self.nic.name)
        with closed_on_error(self._watched):
            self._begin()
        return self

    def _begin(self) -> None:
        assert self.nic.wire.ours is not None
        self._queues = _Queues(self.nic)
        self._tap_dropped = self.nic.wire.dropped()
        self._ring_full = self._read_ring_full()
        self._begun = time.monotonic()
        self.generator = Generator(
            self.nic.wire.ours.fileno(),
            self._framing,
            self._frames,
            self.shape,
            seconds=LIFE_SECONDS,
            ahead=_AHEAD_FRAMES if self._limited else None,
            watch=self._watch,
        )
        with closed_on_error(self.generator):
            try:
                self._watched.wait_working()
            except NapiError:
                self._check_generator(self.generator.latest)
                if self._watched.error is None:
                    offered = self.generator.latest.offered
                    error = NicError(f"{self.nic.name} receives nothing: {offered} frames offered")
                raise error from None
            self._queues.start()

    def _watch(self, count: Count) -> int | None:
        """Show how it goes; return how many frames may have been offered."""
        first, *_, before, last = [self._watched.ticks[0], *self._watched.ticks[-2:]]
        received = last.rx_packets - first.rx_packets
        self._show(f"{self.nic.name}: {count.offered} frames offered, {received} received")
        if not self._limited:
            return None
        return received + _AHEAD_TICKS * (last.rx_packets - before.rx_packets) + _AHEAD_FRAMES

    def _check_generator(self, count: Count) -> None:
        if not self.generator.running:
            count = self.generator.wait()
        if count.reason == "peer gone":
            raise self._booted.machine.lost(f"{self.nic.name}'s wire is closed")
        if count.broken:
            raise NicError(f"{self.nic.name} takes no frames: one is left half written")

    def stop(self) -> None:
        """End the traffic, wait for what is under way, and check that all of it arrived."""
        try:
            latest = self.generator.stop()
        finally:
            self.generator.close()
        ended = time.monotonic()
        self._check_generator(latest)
        still = self._still_since(latest.time_ns)
        stalled = self._queues.stalled()
        self._settle(latest)
        queues = self._queues.stop()
        self._watched.stop()
        first, last = self._watched.ticks[0], self._watched.ticks[-1]
        self.queues = queues
        counts = TrafficCounts(
            seconds=ended - self._begun,
            offered=latest.offered + latest.refused,
            delivered=last.rx_packets - first.rx_packets,
            dropped=MappingProxyType(self._dropped(latest, first, last)),
            generator=latest,
        )
        if full := self._read_ring_full() - self._ring_full:
            counts = _with_dropped(counts, "ring_full", full)
        elif counts.lost and self._model.drops and self._model.drop_counter is None:
            counts = _with_dropped(counts, "emulated", counts.lost)
        self._counts = counts
        if self._watched.error is not None:
            raise self._watched.error
        if still > STALL_SECONDS:
            raise NicError(
                f"{self.nic.name} stopped receiving after {counts.delivered} frames: "
                f"{counts.offered} were offered, and none arrived in the last {still:.1f} s"
            )
        if stalled is not None:
            raise NicError(f"{self.nic.name}: {stalled}")

    def _read_ring_full(self) -> int:
        counter = self._model.drop_counter
        return 0 if counter is None else self.nic.ethtool.statistics()[counter]

    def _dropped(self, count: Count, first: NicTick, last: NicTick) -> dict[str, int]:
        dropped = {
            "tap": count.refused + self.nic.wire.dropped() - self._tap_dropped,
            "rx_missed": last.rx_missed - first.rx_missed,
            "rx_errors": last.rx_errors - first.rx_errors,
        }
        return {who: frames for who, frames in dropped.items() if frames}

    def _still_since(self, end_ns: int) -> float:
        """Return how long, at the generator's end, no frame had arrived; in seconds."""
        # Between the bursts of an on/off traffic nothing is to arrive.
        pause = self.shape.off if isinstance(self.shape, OnOff) else 0.0
        ticks = self._watched.ticks
        grown = next(
            (
                tick
                for tick, before in zip(ticks[:0:-1], ticks[-2::-1], strict=True)
                if tick.rx_packets > before.rx_packets
            ),
            ticks[0],
        )
        now = self._booted.guest_now_ns() - time.monotonic_ns() + end_ns
        return (now - grown.time_ns) / 1e9 - pause

    def _settle(self, count: Count) -> None:
        """Wait until every frame is accounted for, or none has moved for a while."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        first, seen, since = self._watched.ticks[0], -1, time.monotonic()
        while time.monotonic() < deadline:
            last = self._watched.ticks[-1]
            accounted = last.rx_packets - first.rx_packets
            accounted += sum(self._dropped(count, first, last).values())
            if accounted >= count.offered + count.refused:
                return
            if accounted != seen:
                seen, since = accounted, time.monotonic()
            elif time.monotonic() - since > STALL_SECONDS:
                return
            time.sleep(0.05)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None or issubclass(kind, Exception):
                self._leave(kind)
        finally:
            self.generator.close()
            self._queues.stop()
            if kind is None or issubclass(kind, Exception):
                self._watched.close()

    def _leave(self, kind: type[BaseException] | None) -> None:
        try:
            self.stop()
        except (NapiError, GuestLost):
            # What the test itself has come to is told; a traffic that broke with it is no news.
            if kind is None:
                raise


class _Queues:
    """Looks every second at how many frames each RX queue has received."""

    def __init__(self, nic: Nic) -> None:
        self._nic = nic
        self._seen = [self._read()]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="napi-queues", daemon=True)

    def _read(self) -> Mapping[int, int]:
        try:
            return self._nic.queue_packets()
        except (GuestLost, NapiError, OSError):
            return {}

    def start(self) -> None:
        if self._nic.config.queues > 1:
            self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(_QUEUE_SECONDS):
            self._seen.append(self._read())

    def stop(self) -> Mapping[int, int]:
        """Return the frames of each queue since the beginning; later calls return nothing new."""
        if not self._over.is_set():
            self._over.set()
            if self._thread.ident is not None:
                self._thread.join()
            self._seen.append(self._read())
        first, last = self._seen[0], self._seen[-1]
        return MappingProxyType({queue: last[queue] - first.get(queue, 0) for queue in last})

    def stalled(self) -> str | None:
        """Return which queue received for a while and then no more, though others went on."""
        first, *whole = [seen for seen in self._seen if seen] or [{}]
        if len(whole) < _STALL_LOOKS:
            return None
        before, last = whole[-_STALL_LOOKS], whole[-1]
        for queue, frames in last.items():
            others_grow = sum(last.values()) - sum(before.values()) > _STALL_FRAMES
            if first[queue] < frames == before[queue] and others_grow:
                return f"queue {queue} stopped after {frames - first[queue]} frames"
        return None

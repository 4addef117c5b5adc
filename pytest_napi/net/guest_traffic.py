# SPDX-License-Identifier: GPL-2.0-only
"""Loads whose source is in the guest: for kernels and hosts without a suitable NIC."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from types import TracebackType

from pytest_napi.errors import NapiError
from pytest_napi.guest.boot import Booted
from pytest_napi.guest.ethtool import NicError
from pytest_napi.guest.events import EventStream, number
from pytest_napi.guest.process import GuestProcess
from pytest_napi.net.load import LoadUnsupportedError, keep_agent_off
from pytest_napi.net.nic import Nic
from pytest_napi.net.watch import LIFE_SECONDS, KthreadWork, NicTick, NicWatch, TrafficRate
from pytest_napi.untrusted import printable

BACKLOG = "(no_device)"
"""What the kernel calls the device of a CPU's backlog (trace/events/napi.h, NO_DEV)."""

_PEER, _DEVICE = "np0", "np1"
_ADDRESS = "10.1.0.2"


@dataclass(frozen=True)
class Pktgen:
    """The kernel's packet generator across a veth pair, into a NAPI kthread of the pair."""

    pps: float | None = 20_000
    """Frames a second; None: as many as the sending CPU makes."""
    size: int = 60
    """Bytes of a frame without FCS."""
    sender: int = 1
    """The CPU that sends: pktgen takes all of it."""


@dataclass(frozen=True)
class Backlog(Pktgen):
    """pktgen across a veth pair without NAPI: what it sends is polled by a CPU's backlog kthread.

    Those are there with the kernel parameter ``thread_backlog_napi`` (Linux 6.10).
    """


@dataclass(frozen=True)
class TcpReceive:
    """A TCP stream from the peer of a loop into the NIC."""

    port: int = 5001
    pps: float | None = None
    """None: TCP finds its own rate."""


GuestShape = Pktgen | Backlog | TcpReceive


class GuestTraffic:
    """A load of the guest's own into one device: a context manager, running while inside.

    Entering waits until the device is polled.  ``cpu`` is where it is polled.
    """

    def __init__(self, booted: Booted, shape: GuestShape, nic: Nic | None, cpu: int) -> None:
        self.shape = shape
        self.cpu = cpu
        self.bytes = 0
        """What a TCP stream has brought so far."""
        self._booted = booted
        self._guest = booted.guest
        self._nic = nic
        self._ending = contextlib.ExitStack()
        """What there is to end, the last first."""
        if isinstance(shape, TcpReceive) and (nic is None or nic.peer is None):
            raise NicError("TcpReceive needs the peer of a loop: --napi-nic=MODEL,backend=loop")

    @property
    def rate(self) -> TrafficRate:
        """The counters so far."""
        # A backlog is no device, and has no counters but those of its polls.
        counter = "work" if isinstance(self.shape, Backlog) else "rx_packets"
        return TrafficRate(self.ticks, self.shape.pps, counter)

    @property
    def ticks(self) -> tuple[NicTick, ...]:
        """The counters of every 100 ms so far."""
        return tuple(self._watched.ticks)

    @property
    def kthreads(self) -> tuple[KthreadWork, ...]:
        """What the device's kthreads have done so far."""
        return self._watched.ticks[-1].kthreads

    @property
    def bits_per_second(self) -> float:
        """What a TCP stream brought, from its first byte to its last."""
        return 8e9 * self.bytes / self._stream_ns if self._stream_ns else 0.0

    @property
    def remaining_seconds(self) -> float:
        """How long it may still last."""
        begun = self._watched.ticks[0].time_ns
        return LIFE_SECONDS - (self._booted.guest_now_ns() - begun) / 1e9

    def __enter__(self) -> GuestTraffic:
        keep_agent_off(self._booted, self.cpu)
        self._stream_ns = 0
        try:
            if isinstance(self.shape, TcpReceive):
                assert self._nic is not None
                for kthread in self._nic.kthreads:
                    self._nic.pin(kthread, self.cpu)
                for irq in self._nic.irqs:
                    self._nic.pin(irq, self.cpu)
                self._watch(self._nic.name)
                self._begin_stream(self.shape, self._nic)
            else:
                self._make_pair()
                self._watch(BACKLOG if isinstance(self.shape, Backlog) else _DEVICE)
                self._begin_pktgen(self.shape)
            self._watched.wait_working()
        except BaseException:
            with contextlib.suppress(NapiError, OSError):
                self._ending.close()
            raise
        return self

    def _watch(self, device: str) -> None:
        self._watched = self._ending.enter_context(NicWatch(self._booted, device))
        self._ending.callback(self._watched.stop)

    # pktgen --------------------------------------------------------------------------------------

    def _sh(self, script: str) -> None:
        done = self._guest.run(["sh", "-ec", script], text=True)
        if done.returncode:
            said = " ".join(printable(done.stderr).split())
            raise LoadUnsupportedError(f"no pktgen load: {said or script}")

    def _make_pair(self) -> None:
        backlog = isinstance(self.shape, Backlog)
        script = [
            "test -e /proc/net/pktgen || { echo needs CONFIG_NET_PKTGEN >&2; exit 1; }",
            # busybox cannot name the other side.
            f"ip link add {_PEER} type veth; other=$(cat /sys/class/net/{_PEER}/iflink)",
            'for device in /sys/class/net/*; do [ "$(cat $device/ifindex)" != "$other" ] || '
            f"ip link set ${{device##*/}} name {_DEVICE}; done",
            f"ip link set {_PEER} up",
            f"ip link set {_DEVICE} up",
            f"ip addr add {_ADDRESS}/24 dev {_DEVICE}",
        ]
        if backlog:
            script.append(f"echo {1 << self.cpu:x} >/sys/class/net/{_DEVICE}/queues/rx-0/rps_cpus")
            script.append(
                "grep -q ^backlog_napi /proc/[0-9]*/comm || { echo no backlog kthreads: boot with "
                "--napi-append=thread_backlog_napi, Linux 6.10 or later >&2; exit 1; }"
            )
        else:
            # A veth has a NAPI only with GRO on, and uses it only for what TSO has not made large
            # (veth_skb_is_eligible_for_gro() in drivers/net/veth.c).
            script += [f"ethtool -K {_DEVICE} gro on", f"ethtool -K {_PEER} tso off"]
            script += [f"echo 1 >/sys/class/net/{_DEVICE}/threaded"]
            script.append(
                f"for t in $(grep -l ^napi/{_DEVICE}- /proc/[0-9]*/comm); do t=${{t%/comm}}; "
                f"taskset -p {1 << self.cpu:x} ${{t#/proc/}}; done"
            )
        self._ending.callback(self._sh, f"ip link del {_PEER}")
        self._sh("\n".join(script))

    def _begin_pktgen(self, shape: Pktgen) -> None:
        mac = self._guest.read_text(f"/sys/class/net/{_DEVICE}/address").strip()
        settings = ["count 0", f"pkt_size {shape.size}", f"dst {_ADDRESS}", f"dst_mac {mac}"]
        settings += ["udp_src_min 10000", "udp_src_max 10063"]
        settings += [f"ratep {shape.pps:.0f}"] if shape.pps is not None else []
        folder = "/proc/net/pktgen"
        self._sh(
            "\n".join(
                [
                    f"echo rem_device_all >{folder}/kpktgend_{shape.sender}",
                    f"echo add_device {_PEER} >{folder}/kpktgend_{shape.sender}",
                    *(f"echo {setting} >{folder}/{_PEER}" for setting in settings),
                ]
            )
        )
        # Writing "start" returns when it has stopped.
        running = self._guest.start(["sh", "-c", f"echo start >{folder}/pgctrl"], stdin=False)
        self._ending.callback(self._stop_pktgen, running, f"{folder}/kpktgend_{shape.sender}")

    def _stop_pktgen(self, running: GuestProcess, thread: str) -> None:
        self._sh("echo stop >/proc/net/pktgen/pgctrl")
        running.wait(timeout=30)
        self._sh(f"echo rem_device_all >{thread}")

    # TCP -----------------------------------------------------------------------------------------

    def _begin_stream(self, shape: TcpReceive, nic: Nic) -> None:
        assert nic.peer is not None
        program = ["/selftests/tcp_stream", "--json", "--stdin-stop", "--port", str(shape.port)]
        program += ["--seconds", str(LIFE_SECONDS)]
        receiver = EventStream(self._guest, program)
        self._ending.callback(self._end_stream, receiver)
        for event in receiver.events(30, every=1):
            if event is not None and event["event"] == "ready":
                break
        else:
            receiver.check()
        sender = EventStream(self._guest, [*nic.peer.argv, *program, "--connect", nic.ipv4])
        self._ending.callback(sender.end_input)

    def _end_stream(self, receiver: EventStream) -> None:
        # The sender has closed: the receiver ends of that.
        with receiver:
            for event in receiver.events(30, every=1):
                if event is not None and event["event"] == "end":
                    self.bytes = number(event, "bytes")
                    self._stream_ns = number(event, "duration_ns")
            receiver.check()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self._ending.pop_all()  # interrupted: the guest is about to end
            return
        # What ends with a load that broke is no news beside what the test has come to.
        broken = (NapiError, OSError) if kind is not None else ()
        with contextlib.suppress(*broken):
            self._ending.close()
            if self._watched.error is not None:
                raise self._watched.error

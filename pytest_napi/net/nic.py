# SPDX-License-Identifier: GPL-2.0-only
"""A NIC as its guest sees it: names, queues, NAPIs, kthreads, interrupts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from subprocess import CompletedProcess

from pytest_napi.errors import NapiError
from pytest_napi.guest.boot import Booted
from pytest_napi.guest.ethtool import Ethtool, NicError
from pytest_napi.guest.events import Event, EventStream
from pytest_napi.machine.nics import NIC_MODELS, NicConfig, mac_address
from pytest_napi.machine.wires import Wire
from pytest_napi.untrusted import printable

_CARRIER_SECONDS = 15.0
"""igb needs 2 s to see its link under TCG."""

_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Kthread:
    """A kernel thread that polls one NAPI."""

    pid: int
    name: str
    """``napi/DEVICE-ID``, cut off at 15 characters."""


@dataclass(frozen=True)
class Napi:
    """One NAPI of a device, as the kernel's netdev netlink family tells it."""

    id: int
    irq: int | None
    pid: int | None
    """Its kthread; None when it is polled in softirq."""
    queue: int | None
    """The RX queue it polls, where the driver tells."""


@dataclass(frozen=True)
class Irq:
    """One interrupt of a device."""

    number: int
    name: str
    """As /proc/interrupts has it: ``eth0-TxRx-0``, ``virtio1-input.0``."""
    count: int


class _NoNetlinkError(NapiError):
    """This kernel tells nothing about NAPIs by netlink."""


class Nic:
    """One NIC of a guest, up and with addresses.

    Every method raises GuestLost when the guest is gone and NicError when the device does not do
    what is asked of it.
    """

    def __init__(self, booted: Booted, index: int) -> None:
        """Find the guest's NIC number ``index`` and bring it up.

        Raises NicError when it is not there, has fewer queues than were asked for, or no link.
        """
        self.config: NicConfig = booted.config.nics[index]
        self.wire: Wire = booted.machine.wires[index]
        self.mac = mac_address(index)
        self.ipv4 = f"10.0.{index}.2"
        self.ipv6 = f"fd00::{index:x}:2"
        self.peer_mac = mac_address(index, peer=True)
        self.peer_ipv4 = f"10.0.{index}.1"
        self.peer_ipv6 = f"fd00::{index:x}:1"
        self._guest = booted.guest
        self.name = self._named(self.mac)
        self.ethtool = Ethtool(self._guest, self.name)
        self.peer = Peer(booted, self._named(self.peer_mac)) if self._looped else None
        self._set_up()

    def __repr__(self) -> str:
        return f"<Nic {self.name}: {self.config}>"

    @property
    def _looped(self) -> bool:
        return self.config.backend == "loop"

    def _named(self, mac: str) -> str:
        said = self._guest.run(["grep", "-lx", mac, *self._addresses()], text=True).stdout
        paths = said.split()
        if len(paths) != 1:
            raise NicError(
                f"the guest has no {self.config.model} with the address {mac}: is its driver there?"
            )
        return paths[0].split("/")[4]

    def _addresses(self) -> list[str]:
        names = self._guest.run(["ls", "/sys/class/net"], text=True, check=True).stdout.split()
        return [f"/sys/class/net/{name}/address" for name in names]

    def _set_up(self) -> None:
        model = NIC_MODELS[self.config.model]
        _up(self._guest.run, self.name, self.ipv4, self.ipv6)
        if self.peer is not None:
            _up(self.peer.run, self.peer.name, self.peer_ipv4, self.peer_ipv6)
        self.wait_link()
        if model.channels is not None:
            self.ethtool.set_channels(**{model.channels: self.config.queues})
        if self.config.queues > 1:
            for flow_type in model.port_hash:
                self.ethtool.set_rx_hash(flow_type, "sdfn")
        # A driver may set up more than ever get a frame: see NIC_MODELS.
        if self.rx_queues < self.config.queues:
            raise NicError(
                f"{self.name} has {self.rx_queues} RX queues, {self.config.queues} were asked for"
            )

    def wait_link(self) -> None:
        """Wait until the device has a link: an e1000e is without for 2 s after every change to it.

        Raises NicError when it has none in 15 s, or is down.
        """
        # A vmxnet3 that is sent frames before its link is up never receives again.
        deadline = time.monotonic() + _CARRIER_SECONDS
        while (carrier := self._read("carrier")) != "1":
            if not carrier:
                raise NicError(f"{self.name} is down and receives nothing")
            if time.monotonic() > deadline:
                raise NicError(f"{self.name} has no link after {_CARRIER_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)

    @property
    def rx_queues(self) -> int:
        """How many RX queues the driver has set up."""
        listed = self._guest.run(
            ["ls", f"/sys/class/net/{self.name}/queues"], text=True, check=True
        )
        return sum(queue.startswith("rx-") for queue in listed.stdout.split())

    @property
    def threaded(self) -> bool:
        """Whether kthreads poll the device; may be set."""
        return self._read("threaded") == "1"

    @threaded.setter
    def threaded(self, wanted: bool) -> None:
        try:
            self._guest.write_text(f"/sys/class/net/{self.name}/threaded", str(int(wanted)))
        except FileNotFoundError:
            raise NicError(f"{self.name}: this kernel has no threaded NAPI (before 5.12)") from None
        except OSError as error:
            raise NicError(f"{self.name}: threaded NAPI refused: {error.strerror}") from None
        if self.threaded != wanted:
            raise NicError(f"{self.name} does not stay {'' if wanted else 'un'}threaded")

    @property
    def kthreads(self) -> tuple[Kthread, ...]:
        """The kthreads that poll the device, by pid; none when it is polled in softirq."""
        prefix = f"napi/{self.name}-"
        said = self._guest.run(["sh", "-c", f"grep -H '^{prefix}' /proc/[0-9]*/comm"], text=True)
        found = []
        for line in said.stdout.splitlines():
            path, _, name = line.partition(":")
            found.append(Kthread(int(path.split("/")[2]), name))
        return tuple(sorted(found, key=lambda kthread: kthread.pid))

    def napis(self) -> tuple[Napi, ...] | None:
        """Return the device's NAPIs; None where the kernel has no netlink to ask."""
        queues: dict[int, int] = {}
        rows: list[Event] = []
        try:
            for event in self._netlink():
                if event["event"] == "napi":
                    rows.append(event)
                elif event["event"] == "queue" and event["type"] == "rx":
                    queues[_integer(event["napi_id"]) or 0] = _integer(event["id"]) or 0
        except _NoNetlinkError:
            return None
        return tuple(
            Napi(
                id=_integer(row["id"]) or 0,
                irq=_integer(row["irq"]),
                pid=_integer(row["pid"]),
                queue=queues.get(_integer(row["id"]) or 0),
            )
            for row in rows
        )

    def _netlink(self) -> list[Event]:
        argv = ["/selftests/napi_list", "--json", "--device", self.name]
        with EventStream(self._guest, argv) as stream:
            events = [event for event in stream.events(30, every=1) if event is not None]
            stream.check(unsupported=_NoNetlinkError)
        return events

    @property
    def irqs(self) -> tuple[Irq, ...]:
        """The device's interrupts, by number; how often each came, on all CPUs."""
        device = f"/sys/class/net/{self.name}/device"
        # That of a virtio device is the PCI device above it.
        places = f"ls {device}/msi_irqs {device}/../msi_irqs 2>/dev/null; cat {device}/irq"
        listed = self._guest.run(["sh", "-c", places], text=True).stdout.split()
        numbers = {int(word) for word in listed if word.isdigit()}
        table = self._guest.read_text("/proc/interrupts").splitlines()
        cpus = len(table[0].split())
        found = []
        for row in table[1:]:
            number, *rest = row.split()
            if number.rstrip(":").isdigit() and int(number.rstrip(":")) in numbers:
                count = sum(map(int, rest[:cpus]))
                found.append(Irq(int(number.rstrip(":")), rest[-1], count))
        return tuple(found)

    def pin(self, what: Kthread | Irq, cpu: int) -> None:
        """Let a kthread run, or an interrupt arrive, on ``cpu`` only."""
        if isinstance(what, Kthread):
            self._guest.run(["taskset", "-p", f"{1 << cpu:x}", str(what.pid)], check=True)
            return
        try:
            self._guest.write_text(f"/proc/irq/{what.number}/smp_affinity_list", str(cpu))
        except OSError as error:
            raise NicError(f"IRQ {what.number} ({what.name}): {error.strerror}") from None

    def queue_packets(self) -> dict[int, int]:
        """Return the frames each RX queue has received.

        Raises NicError where neither the driver nor the kernel counts them by queue.
        """
        if self.rx_queues == 1:
            return {0: int(self._read("statistics/rx_packets"))}
        counted = self.ethtool.queue_packets()
        if len(counted) < self.rx_queues:
            counted = self._netlink_packets()
        if len(counted) < self.rx_queues:
            raise NicError(f"{self.name}: nothing in this kernel counts its frames by queue")
        return {queue: counted[queue] for queue in range(self.rx_queues)}

    def _netlink_packets(self) -> dict[int, int]:
        found = {}
        try:
            for event in self._netlink():
                if event["event"] == "statistics" and event["type"] == "rx":
                    found[_integer(event["id"]) or 0] = _integer(event["packets"]) or 0
        except _NoNetlinkError:
            return {}
        return found

    def _read(self, attribute: str) -> str:
        try:
            return self._guest.read_text(f"/sys/class/net/{self.name}/{attribute}").strip()
        except OSError:  # a device that is down refuses to tell of its carrier
            return ""


class Peer:
    """The other NIC of a loop, in a network namespace of the same guest."""

    def __init__(self, booted: Booted, name: str) -> None:
        self.name = name
        self._guest = booted.guest
        self._holder = self._guest.start(["unshare", "-n", "cat"], stdin=True)
        self._enter = ["nsenter", "-t", str(self._holder.pid), "-n"]
        deadline = time.monotonic() + _CARRIER_SECONDS
        own = self._guest.run(["readlink", "/proc/1/ns/net"], text=True).stdout
        while self._namespace() in ("", own):
            if self._holder.poll() is not None or time.monotonic() > deadline:
                raise NicError("no network namespace for the peer: needs CONFIG_NET_NS")
            time.sleep(_POLL_SECONDS)
        self._guest.run(["ip", "link", "set", name, "netns", str(self._holder.pid)], check=True)

    def _namespace(self) -> str:
        path = f"/proc/{self._holder.pid}/ns/net"
        return self._guest.run(["readlink", path], text=True).stdout

    @property
    def argv(self) -> list[str]:
        """What is put before a command that is to run in the peer's namespace."""
        return list(self._enter)

    def run(
        self, argv: Sequence[str], *, text: bool = True, check: bool = False
    ) -> CompletedProcess[str]:
        """Run a program in the peer's namespace, as ``guest.run(text=True)`` does."""
        return self._guest.run([*self._enter, *argv], text=text, check=check)


def _up(run: Callable[..., CompletedProcess[str]], name: str, ipv4: str, ipv6: str) -> None:
    """Bring a device up and give it its addresses."""
    # Without duplicate address detection, which takes seconds.
    dad = f"/proc/sys/net/ipv6/conf/{name}/accept_dad"
    script = (
        f"ip link set {name} up && ip addr add {ipv4}/24 dev {name} && if [ -e {dad} ]; then "
        f"echo 0 >{dad} && ip addr add {ipv6}/64 dev {name}; fi"
    )
    done = run(["sh", "-c", script], text=True)
    if done.returncode:
        raise NicError(f"{name} cannot be brought up: {printable(done.stderr).strip()}")


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None

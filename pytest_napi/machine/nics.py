# SPDX-License-Identifier: GPL-2.0-only
"""The NICs QEMU emulates for us and what they are connected to: a row each.

A row says what was seen on real guests: how many receive queues of a model get frames behind which
backend.  What asks for more is refused, with the nearest that works, instead of being run as less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True)
class Backend:
    """What is at the other end of a NIC's wire."""

    name: str
    what: str
    """For the documentation."""
    framing: str | None
    """How the generator writes frames into it: ``stream`` or ``dgram`` (see net/generator.py);
    None where no generator of the host can."""
    reads_ahead: bool = False
    """QEMU takes frames while the NIC is full, and keeps them in a queue without an end."""
    privileged: bool = False
    """Needs root, CAP_NET_ADMIN or a user namespace."""


BACKENDS: Mapping[str, Backend] = MappingProxyType(
    {
        row.name: row
        for row in (
            # net/stream.c reads 68 KiB at a time, and again once one frame of them is taken.
            Backend("stream", "AF_UNIX stream socket", "stream", reads_ahead=True),
            Backend("dgram", "AF_UNIX datagram socket, a frame each", "dgram"),
            Backend(
                "tap",
                "tap device with a queue each, in a network namespace of its own",
                "dgram",
                privileged=True,
            ),
            Backend("loop", "a second NIC of the same guest, in a namespace there", None),
            Backend("user", "QEMU's own NAT to the host's network (slirp)", None),
        )
    }
)

MANY = 16
"""More queues than any guest here has CPUs: "as many as CPUs"."""


@dataclass(frozen=True)
class NicModel:
    """One kind of NIC."""

    name: str
    device: str
    """QEMU's ``-device``."""
    option: str
    """CONFIG_ option of its driver."""
    module: str
    """The driver's module."""
    queues: Mapping[str, int]
    """By backend, the most receive queues that get frames; a driver makes one a CPU at most."""
    why: str
    """Why there are not more where there are not."""
    minimum_qemu: tuple[int, int] = (7, 2)
    queue_properties: str = ""
    """Device properties that give it several queues; ``{queues}`` and ``{vectors}`` are filled
    in."""
    channels: str | None = None
    """The kind of channel ``ethtool -L`` sets; None where the driver cannot."""
    own_bus: bool = False
    """It needs a PCI Express port to itself: its virtual functions take up slots of its bus."""
    drops: bool = False
    """QEMU's throws frames away when a queue's ring is full; the others hold the backend up."""
    drop_counter: str | None = None
    """What the driver calls them in ``ethtool -S``; None where they are counted nowhere."""
    port_hash: tuple[str, ...] = ()
    """Flow types whose UDP frames the NIC spreads by port only when told so (ethtool -N
    rx-flow-hash)."""


def _everywhere(queues: int) -> Mapping[str, int]:
    return MappingProxyType(dict.fromkeys(BACKENDS, queues))


NIC_MODELS: Mapping[str, NicModel] = MappingProxyType(
    {
        row.name: row
        for row in (
            NicModel(
                "virtio-net",
                device="virtio-net-pci",
                option="VIRTIO_NET",
                module="virtio_net",
                queues=MappingProxyType({**_everywhere(1), "tap": MANY}),
                why="its queues are those of the backend, and only a tap has several",
                queue_properties=",mq=on,vectors={vectors}",
                channels="combined",
            ),
            NicModel(
                "igb",
                device="igb",
                option="IGB",
                module="igb",
                # igb_get_max_rss_queues() in drivers/net/ethernet/intel/igb: 8 for an 82576.
                queues=_everywhere(8),
                why="its driver has no more (82576)",
                minimum_qemu=(8, 0),
                channels="combined",
                own_bus=True,
                # igb_receive_internal() in QEMU's hw/net/igb_core.c.
                drops=True,
                port_hash=("udp4", "udp6"),
            ),
            NicModel(
                "e1000e",
                device="e1000e",
                option="E1000E",
                module="e1000e",
                queues=_everywhere(1),
                why="its Linux driver has one NAPI",
            ),
            NicModel(
                "vmxnet3",
                device="vmxnet3",
                option="VMXNET3",
                module="vmxnet3",
                queues=_everywhere(1),
                why="QEMU's receives on queue 0 only",
                # vmxnet3_receive() in QEMU's hw/net/vmxnet3.c.
                drops=True,
                drop_counter="pkts rx OOB",
            ),
        )
    }
)


@dataclass(frozen=True)
class NicConfig:
    """One NIC of a guest, as it is asked for."""

    model: str
    queues: int = 1
    backend: str = "stream"

    def __str__(self) -> str:
        """Return it as ``--napi-nic`` takes it."""
        return f"{self.model},queues={self.queues},backend={self.backend}"


def parse_nic(text: str) -> NicConfig:
    """Read ``MODEL[,queues=N][,backend=NAME]``.

    Raises ValueError with one line for what is not known, and for what would not be what it says.
    """
    model, *settings = (word.strip() for word in text.split(","))
    if model not in NIC_MODELS:
        raise ValueError(f"unknown NIC model {model!r}: use {', '.join(NIC_MODELS)}")
    nic = NicConfig(model)
    for word in settings:
        key, _, value = word.partition("=")
        if key == "queues":
            if not value.isdigit() or int(value) < 1:
                raise ValueError(f"queues={value}: a NIC has a number of queues from 1 on")
            nic = replace(nic, queues=int(value))
        elif key == "backend":
            if value not in BACKENDS:
                raise ValueError(f"unknown backend {value!r}: use {', '.join(BACKENDS)}")
            nic = replace(nic, backend=value)
        else:
            raise ValueError(f"{word!r}: a NIC is MODEL[,queues=N][,backend=NAME]")
    _check_queues(nic)
    return nic


def _check_queues(nic: NicConfig) -> None:
    model = NIC_MODELS[nic.model]
    most = model.queues[nic.backend]
    if nic.queues <= most:
        return
    nearest = next(
        (
            replace(nic, backend=name)
            for name, queues in model.queues.items()
            if queues >= nic.queues
        ),
        replace(nic, queues=most),
    )
    raise ValueError(
        f"{nic.model} receives on {most} queue{'s' if most > 1 else ''} over {nic.backend}, not "
        f"{nic.queues}: {model.why}; the nearest that works is {nearest}"
    )


def unfit(nic: NicConfig, qemu: Sequence[int], cpus: int) -> str | None:
    """Return why this host's QEMU or a guest of ``cpus`` CPUs cannot have ``nic``; None if it can.

    One line that says what to do.
    """
    model = NIC_MODELS[nic.model]
    if tuple(qemu[:2]) < model.minimum_qemu:
        least = ".".join(map(str, model.minimum_qemu))
        others = [
            name
            for name, row in NIC_MODELS.items()
            if tuple(qemu[:2]) >= row.minimum_qemu and row.queues[nic.backend] >= nic.queues
        ]
        instead = f", or use {' or '.join(others)}" if others else ""
        return (
            f"{nic.model} needs QEMU {least}, this is {'.'.join(map(str, qemu))}: install a newer "
            f"one (Debian 12: apt-get install -t bookworm-backports qemu-system-x86){instead}"
        )
    if nic.queues > cpus:
        return (
            f"{nic}: its driver makes a queue for each CPU and the guest has {cpus}: use "
            f"--napi-cpus={nic.queues} or queues={cpus}"
        )
    return None


def mac_address(index: int, peer: bool = False) -> str:
    """Return the MAC address of a guest's NIC number ``index``, or of its loop peer.

    QEMU's prefix; the kernel's names of devices depend on drivers, these do not.
    """
    return f"52:54:00:6e:{1 if peer else 0:02x}:{index:02x}"


def _device(nic: NicConfig, netdev: str, mac: str, chassis: int) -> list[str]:
    """Return the QEMU arguments of one device.  No boot ROM: nothing boots from the network."""
    model = NIC_MODELS[nic.model]
    # A vector for each queue's RX and TX, one for the configuration, one for control.
    several = model.queue_properties.format(queues=nic.queues, vectors=2 * nic.queues + 2)
    properties = several if nic.queues > 1 else ""
    port = f"{netdev}-port"
    bus = ["-device", f"pcie-root-port,id={port},chassis={chassis}"] if model.own_bus else []
    where = f",bus={port}" if model.own_bus else ""
    text = f"{model.device},netdev={netdev},mac={mac},romfile={where}{properties}"
    return [*bus, "-device", text]


def descriptors_of(nic: NicConfig) -> int:
    """Return how many descriptors QEMU needs for a NIC's backend."""
    return {"stream": 1, "dgram": 1, "tap": nic.queues}.get(nic.backend, 0)


def netdevs(nic: NicConfig, index: int, descriptors: Sequence[int]) -> list[str]:
    """Return the QEMU arguments of one NIC: backend and device, twice for a loop.

    ``descriptors`` are QEMU's ends of the backend: one a queue for tap, one for the sockets, none
    otherwise.
    """
    name = f"nic{index}"
    fds = ":".join(map(str, descriptors))
    kind = {
        "stream": f"stream,id={name},addr.type=fd,addr.str={fds}",
        "dgram": f"dgram,id={name},local.type=fd,local.str={fds}",
        "tap": f"tap,id={name},{'fds' if len(descriptors) > 1 else 'fd'}={fds}",
        "loop": f"hubport,id={name},hubid={index}",
        "user": f"user,id={name}",
    }[nic.backend]
    arguments = ["-netdev", kind, *_device(nic, name, mac_address(index), 2 * index + 1)]
    if nic.backend == "loop":
        peer = f"{name}-peer"
        arguments += ["-netdev", f"hubport,id={peer},hubid={index}"]
        arguments += _device(nic, peer, mac_address(index, peer=True), 2 * index + 2)
    return arguments


def matrix() -> str:
    """Return the table of models and backends for the documentation, in Markdown."""
    rows = [
        f"| NIC | {' | '.join(BACKENDS)} | driver | QEMU |",
        "|---" * (len(BACKENDS) + 3) + "|",
    ]
    for model in NIC_MODELS.values():
        queues = [_number(model.queues[name]) for name in BACKENDS]
        least = ".".join(map(str, model.minimum_qemu))
        rows.append(
            f"| {model.name} | {' | '.join(queues)} | `{model.module}` (CONFIG_{model.option}) "
            f"| {least} |"
        )
    return "\n".join(rows)


def _number(queues: int) -> str:
    return "one a CPU" if queues == MANY else f"1 to {queues}" if queues > 1 else "1"

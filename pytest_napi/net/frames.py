# SPDX-License-Identifier: GPL-2.0-only
"""The frames of a traffic, built once before it starts."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

PROTOCOLS = ("udp4", "udp6", "raw")

ETHERTYPE = 0x88B5
"""Of raw frames: IEEE 802 local experimental, which no protocol in the guest takes up."""

SIZES = {"udp4": 60, "udp6": 62, "raw": 60}
"""The smallest frame of each protocol without FCS: Ethernet's own least, or the headers."""

MAX_SIZE = 1514

DISCARD_PORT = 9
_FIRST_PORT = 10_000


@dataclass(frozen=True)
class FrameSpec:
    """What the frames of a traffic are like."""

    destination_mac: str
    destination: str = ""
    """IPv4 or IPv6 address in the guest; unused for raw."""
    source_mac: str = "02:00:00:00:00:01"
    source: str = ""
    protocol: str = "udp4"
    """One of PROTOCOLS."""
    flows: int = 64
    """How many there are: they differ in UDP source port, raw frames in their source address."""
    size: int = 64
    """Bytes of a frame without FCS."""
    port: int = DISCARD_PORT

    def check(self) -> None:
        """Raise ValueError, in one line, for frames that cannot be."""
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"unknown protocol {self.protocol!r}: use {', '.join(PROTOCOLS)}")
        least = SIZES[self.protocol]
        if not least <= self.size <= MAX_SIZE:
            raise ValueError(
                f"a frame of {self.size} bytes: {self.protocol} takes {least} to {MAX_SIZE}"
            )
        if not 1 <= self.flows <= 0x10000 - _FIRST_PORT:
            raise ValueError(f"flows={self.flows}: use 1 to {0x10000 - _FIRST_PORT}")


def build(spec: FrameSpec) -> tuple[bytes, ...]:
    """Return one frame of each flow.  Raises ValueError as ``FrameSpec.check`` does."""
    spec.check()
    return tuple(_frame(spec, flow) for flow in range(spec.flows))


def _frame(spec: FrameSpec, flow: int) -> bytes:
    # Only who sends traffic needs it.
    from dpkt.ethernet import Ethernet  # noqa: PLC0415
    from dpkt.ip import IP, IP_PROTO_UDP  # noqa: PLC0415
    from dpkt.ip6 import IP6  # noqa: PLC0415
    from dpkt.udp import UDP  # noqa: PLC0415

    source, destination = map(_mac, (spec.source_mac, spec.destination_mac))
    if spec.protocol == "raw":
        source = source[:4] + flow.to_bytes(2, "big")
        header: bytes = bytes(Ethernet(src=source, dst=destination, type=ETHERTYPE))
        return header.ljust(spec.size, b"\0")
    header_size = 14 + (20 if spec.protocol == "udp4" else 40) + 8
    udp = UDP(sport=_FIRST_PORT + flow, dport=spec.port, data=bytes(spec.size - header_size))
    udp.ulen = len(udp)
    ends = [ipaddress.ip_address(text).packed for text in (spec.source, spec.destination)]
    if spec.protocol == "udp4":
        packet = IP(src=ends[0], dst=ends[1], p=IP_PROTO_UDP, ttl=64, data=udp)
        packet.len = len(packet)
    else:
        packet = IP6(src=ends[0], dst=ends[1], nxt=IP_PROTO_UDP, hlim=64, data=udp)
        packet.plen = len(udp)
    kind = 0x0800 if spec.protocol == "udp4" else 0x86DD
    return bytes(Ethernet(src=source, dst=destination, type=kind, data=packet))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))

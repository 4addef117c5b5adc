# SPDX-License-Identifier: GPL-2.0-only
"""Makes a tap in the network namespace it is run in, and hands its descriptors over.

    python -m pytest_napi.machine.tap SOCKET QUEUES

Run by wires.py inside a new namespace, which lives on in the descriptors it sends: a packet socket
bound to the tap, /proc/net/dev, and the queues.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

# linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000
IFF_MULTI_QUEUE = 0x0100

# linux/sockios.h, linux/if.h
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1

NAME = b"tap0"


def _ifreq(flags: int) -> bytes:
    return struct.pack("16sh22x", NAME, flags)


def main() -> None:
    """Make the tap and send the descriptors."""
    descriptor, queues = int(sys.argv[1]), int(sys.argv[2])
    # Else the namespace's own router solicitations arrive in the guest as frames nobody offered.
    ipv6 = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if ipv6.exists():
        ipv6.write_text("1")
    flags = IFF_TAP | IFF_NO_PI | (IFF_MULTI_QUEUE if queues > 1 else 0)
    taps = []
    for _ in range(queues):
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, TUNSETIFF, _ifreq(flags))
        taps.append(tap)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, _ifreq(IFF_UP))
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    packets.bind((NAME.decode(), 0))
    counters = os.open("/proc/self/net/dev", os.O_RDONLY)
    with socket.socket(fileno=descriptor) as receiver:
        socket.send_fds(receiver, [b"\0"], [packets.fileno(), counters, *taps])


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"{error.filename or 'tap'}: {error.strerror}")

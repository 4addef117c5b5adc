# SPDX-License-Identifier: GPL-2.0-only
"""How well the traffic generator keeps its pace and how many frames it writes; prints one table.

    python tests/bench/generator.py [--seconds S] [--rounds N]

Frames go into a sink, a process that reads and forgets them, over each kind of wire a NIC has.  All
rows are of one run on one host, which should do nothing else meanwhile; every round measures all of
them in turn.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
from collections import defaultdict

from pytest_napi.net.frames import FrameSpec, build
from pytest_napi.net.generator import Generator
from pytest_napi.net.shapes import Flood, Paced

SINK = """
import socket, sys
sink = socket.socket(fileno=int(sys.argv[1]))
while sink.recv(1 << 16):
    pass
"""

FRAMES = FrameSpec(
    destination_mac="52:54:00:6e:00:00",
    destination="10.0.0.2",
    source="10.0.0.1",
    protocol="udp4",
    flows=64,
    size=64,
)

SHAPES = (Paced(20_000), Paced(20_000, burst=1), Flood())
KINDS = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_SEQPACKET}


def generated(framing: str, shape: Paced | Flood, seconds: float) -> tuple[float, ...]:
    """Run the generator into a sink; return frames/s, its share of a CPU, and the pace's errors.

    A sink of datagrams has a connected socket that keeps their bounds, so that it sees the end.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, KINDS[framing])
    with ours, theirs:
        argv = [sys.executable, "-c", SINK, str(theirs.fileno())]
        sink = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
        theirs.close()
        try:
            frames = build(FRAMES)
            with Generator(ours.fileno(), framing, frames, shape, seconds=seconds) as generator:
                end = generator.wait(seconds + 10)
        finally:
            ours.close()
            sink.wait()
    errors = (end.error_p50_ns / 1e6, end.error_p99_ns / 1e6, end.error_max_ns / 1e6)
    return end.offered / seconds, 100 * end.cpu_ns / 1e9 / seconds, *errors


def name(shape: Paced | Flood) -> str:
    """Return the shape in the words of its row."""
    if isinstance(shape, Flood):
        return "flood"
    return f"{shape.pps:.0f}/s in bursts of {shape.burst}"


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    figures = defaultdict(list)
    for _ in range(arguments.rounds):
        for framing in KINDS:
            for shape in SHAPES:
                figures[framing, name(shape)].append(generated(framing, shape, arguments.seconds))
    print(
        f"traffic generator, frames of {FRAMES.size} bytes in {FRAMES.flows} flows, "
        f"{arguments.seconds:g} s, medians of {arguments.rounds}; {os.cpu_count()} host CPUs"
    )
    print(f"{'':<32}{'frames/s':>10}{'CPU':>7}   error between bursts: p50, p99, max")
    for (framing, shape), rows in figures.items():
        rate, cpu, *errors = map(statistics.median, zip(*rows, strict=True))
        row = f"{framing:<8}{shape:<24}{rate:>10.0f}{cpu:>6.1f}%"
        if shape != "flood":
            row += "   " + "".join(f"{error:>8.3f} ms" for error in errors)
        print(row)


if __name__ == "__main__":
    main()

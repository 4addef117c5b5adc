# SPDX-License-Identifier: GPL-2.0-only
"""What the plugin adds to what QEMU and the kernel themselves need, and the cost of a command.

    python tests/bench/startup.py [SPEC] [ROUNDS]

Prints a table.  Each round boots the same kernel twice in turn: by the same QEMU command line
started by hand, until the agent's first word; and by ``pytest --kernel=SPEC``, from the start of
the process to the end of the first guest command.  The difference is the plugin's.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_napi.machine.argv import Descriptors, qemu_argv
from pytest_napi.options import Settings
from pytest_napi.run import Run, Target

TEST = """
import statistics, time
from pathlib import Path

def test_first(guest):
    guest.run(["true"])
    Path("first").write_text(str(time.time()))
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        guest.run(["true"])
        times.append(time.perf_counter() - begun)
    Path("round_trip").write_text(str(statistics.median(times)))
    Path("ping").write_text(str(statistics.median(guest.ping().round_trip_ns for _ in range(200))))
"""


def by_hand(run, folder):
    """Boot with the plugin's QEMU command line and nothing else of it; return seconds."""
    with run.boot(Target(run.kernels[0], None), run.settings, folder) as booted:
        config = booted.machine.config
    pairs = [socket.socketpair() for _ in range(3)]
    theirs = [pair[1].fileno() for pair in pairs]
    begun = time.time()
    argv = qemu_argv(run.emulator.path, config, Descriptors(*theirs))
    process = subprocess.Popen(argv, pass_fds=theirs, stdin=subprocess.DEVNULL)
    console = subprocess.Popen(["cat"], stdin=pairs[0][0], stdout=subprocess.DEVNULL)
    pairs[1][0].recv(1)  # the agent's first byte
    took = time.time() - begun
    process.kill()
    process.wait()
    console.kill()
    console.wait()
    for ours, other in pairs:
        ours.close()
        other.close()
    return took


def run_pytest(folder, *arguments):
    """Run pytest as a user has it: with byte code on disk."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    argv = [sys.executable, "-m", "pytest", "-q", f"--rootdir={folder}", *arguments]
    subprocess.run(argv, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)


def by_pytest(spec, folder):
    """Run pytest; return seconds to the first command's end, and the round trips in ms."""
    (folder / "test_first.py").write_text(TEST)
    begun = time.time()
    run_pytest(folder, f"--kernel={spec}", folder / "test_first.py")
    first = float((folder / "first").read_text()) - begun
    round_trip = float((folder / "round_trip").read_text()) * 1e3
    return first, round_trip, float((folder / "ping").read_text()) / 1e6


def pytest_alone(folder):
    """Run pytest without the plugin; return seconds to the first line of a test."""
    test = folder / "test_alone.py"
    test.write_text(
        "import time\nfrom pathlib import Path\n\n"
        'def test_it():\n    Path("alone").write_text(str(time.time()))\n'
    )
    begun = time.time()
    run_pytest(folder, "-p", "no:napi", test)
    return float((folder / "alone").read_text()) - begun


def main():
    """Run the rounds and print the table."""
    spec = sys.argv[1] if len(sys.argv) > 1 else "debian:6.12"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    run = Run(Settings(kernels=(spec,)), say=print)
    run.prepare()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        by_pytest(spec, folder)  # fills every cache
        for _ in range(rounds):
            rows.append((by_hand(run, folder), pytest_alone(folder), *by_pytest(spec, folder)))
    hand, alone, first, round_trip, ping = (
        statistics.median(column) for column in zip(*rows, strict=True)
    )
    added = statistics.median(first - hand - alone for hand, alone, first, *_ in rows)
    print(f"{spec}, {run.emulator}, {run.accelerator.name}, medians of {rounds} rounds")
    print(f"QEMU by hand to the agent's first word   {hand:8.2f} s")
    print(f"pytest without the plugin, to a test     {alone:8.2f} s")
    print(f"pytest to the end of the first command   {first:8.2f} s")
    print(f"the difference: added by the plugin      {added:8.2f} s")
    print(f"round trip of an empty command           {round_trip:8.2f} ms")
    print(f"round trip to the agent                  {ping:8.2f} ms")


if __name__ == "__main__":
    main()

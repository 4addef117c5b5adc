# SPDX-License-Identifier: GPL-2.0-only
"""What a fresh guest costs: in seconds, in memory, and beside virtme-ng; prints one table.

    python tests/bench/fresh_guests.py [SPEC] [--rounds N] [--vng COMMAND | --without virtme-ng]

All rows are of one run on one host, which should do nothing else meanwhile.  Every round measures
all of them in turn, so that a change of the host's speed shows as spread and not as a difference.
The saved guests in the cache are removed, over and over.
"""

import argparse
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pexpect

from pytest_napi.guest.boot import BootConfig, guest_image, machine_config
from pytest_napi.machine.argv import Descriptors, qemu_argv
from pytest_napi.options import Settings
from pytest_napi.run import Run, Target

# The CPUs and the memory are those of the plugin's guests.  Without modules: Debian's cloud kernels
# have what virtme-ng needs built in, and modules compressed in a way its initramfs cannot load.
VNG = "vng -r {image} --skip-modules --cpus {cpus} --memory {memory}M -- true"

# The clock is the wall's: its readings are compared between processes.
TEST = """
import time
from pathlib import Path
import pytest

@pytest.fixture(autouse=True)
def begun():
    return time.time()

@pytest.mark.parametrize("number", range({count}))
def test_true(begun, guest, number):
    assert guest.run(["true"]).returncode == 0
    with Path("times").open("a") as times:
        print(begun, time.time(), file=times)
"""

ALONE = """
import time
from pathlib import Path

def test_nothing():
    Path("times").write_text(f"0 {time.time()}")
"""

ROUND_TRIPS = 200
SHARED_OUT = 40
WORKERS = (0, 2, 4)
MEMORY_MIB = 256


@dataclass(frozen=True)
class Pytest:
    """The times of one pytest process, in seconds."""

    wall: float
    first: float
    """From its start to the end of the first command."""
    guests: tuple[float, ...]
    """From a test's request for a guest to the end of its command, of every test but the first."""


class Bench:
    """What is measured, of one kernel."""

    def __init__(self, spec: str, folder: Path) -> None:
        self.run = Run(Settings(kernels=(spec,)), say=say)
        self.run.prepare()
        self.kernel = self.run.kernels[0]
        self._spec = spec
        self._folder = folder

    def header(self) -> str:
        """Return what was measured, and on what, in one line."""
        settings = self.run.settings
        return (
            f"{self.kernel.release}, {self.run.emulator}, {self.run.accelerator.name}, "
            f"{os.cpu_count()} host CPUs; guests: {settings.cpus} CPUs, {settings.memory_mib} MiB"
        )

    def by_hand(self) -> float:
        """Boot with the plugin's QEMU command line and nothing else of it, to the first byte."""
        run, settings = self.run, self.run.settings
        size = {"cpus": settings.cpus, "memory_mib": settings.memory_mib}
        boot_config = BootConfig(run.emulator, run.accelerator, run.cache, **size)
        config = machine_config(self.kernel, boot_config, guest_image(self.kernel, run.cache))
        with ExitStack() as stack:
            pairs = [socket.socketpair() for _ in range(3)]
            for end in (end for pair in pairs for end in pair):
                stack.enter_context(end)
            theirs = [their_end.fileno() for _, their_end in pairs]
            begun = time.perf_counter()
            argv = qemu_argv(run.emulator.path, config, Descriptors(*theirs))
            qemu = subprocess.Popen(argv, pass_fds=theirs, stdin=subprocess.DEVNULL)
            stack.callback(qemu.wait)
            stack.callback(qemu.kill)
            # Somebody must read the console, or the guest waits.
            cat = subprocess.Popen(["cat"], stdin=pairs[0][0], stdout=subprocess.DEVNULL)
            stack.callback(cat.wait)
            stack.callback(cat.kill)
            pairs[1][0].recv(1)
            return time.perf_counter() - begun

    def pytest(self, text: str, *options: str) -> Pytest:
        """Run pytest on a file of tests as a user has it: with byte code on disk."""
        times = self._folder / "times"
        times.unlink(missing_ok=True)
        test = self._folder / "test_fresh.py"
        test.write_text(text)
        env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        # Without what else is installed here: other plugins take their own time to load.
        env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        argv += [f"--rootdir={self._folder}", *options, str(test)]
        begun = time.time()
        done = subprocess.run(argv, cwd=self._folder, env=env, check=False, capture_output=True)
        wall = time.time() - begun
        if done.returncode:
            sys.exit(f"{shlex.join(argv)}:\n{done.stdout.decode()}{done.stderr.decode()}")
        rows = [tuple(map(float, line.split())) for line in times.read_text().splitlines()]
        return Pytest(wall, rows[0][1] - begun, tuple(end - start for start, end in rows[1:]))

    def alone(self) -> Pytest:
        """Run pytest without the plugin."""
        return self.pytest(ALONE)

    def tests(self, count: int, workers: int = 0) -> Pytest:
        """Run ``count`` tests, a fresh guest and a ``true`` each; 0: without pytest-xdist."""
        options = ["-p", "pytest_napi.plugin", f"--kernel={self._spec}"]
        options += ["-p", "xdist", "-n", str(workers)] if workers else []
        return self.pytest(TEST.format(count=count), *options)

    def forget(self) -> None:
        """Remove the saved guests."""
        shutil.rmtree(self.run.cache / "templates", ignore_errors=True)

    def round_trips(self) -> tuple[float, float]:
        """Return the milliseconds of an empty command and of a ping."""
        with self.run.boot(Target(self.kernel, None), self.run.settings, self._folder) as booted:
            commands = []
            for _ in range(ROUND_TRIPS):
                begun = time.perf_counter()
                booted.guest.run(["true"])
                commands.append(time.perf_counter() - begun)
            pings = [booted.guest.ping().round_trip_ns for _ in range(ROUND_TRIPS)]
        return statistics.median(commands) * 1e3, statistics.median(pings) / 1e6

    def memory(self, count: int) -> float:
        """Return the MiB that the QEMUs of ``count`` guests have while all of them live.

        What they share counts once: Pss.
        """
        settings = replace(self.run.settings, memory_mib=MEMORY_MIB)
        with ExitStack() as stack:
            guests = []
            for number in range(count):
                folder = self._folder / f"guest-{number}"
                guest = self.run.boot(Target(self.kernel, None), settings, folder)
                guests.append(stack.enter_context(guest))
                guest.guest.run(["true"], check=True)
            return sum(map(pss_mib, (guest.machine.pid for guest in guests)))

    def virtme_ng(self, template: str) -> float:
        """Run virtme-ng once; return the seconds.  Raises NoVirtmeNgError."""
        settings = self.run.settings
        size = {"cpus": settings.cpus, "memory": settings.memory_mib}
        program, *arguments = shlex.split(template.format(image=self.kernel.image, **size))
        if shutil.which(program) is None:
            raise NoVirtmeNgError(f"{program} is not on PATH")
        begun = time.perf_counter()
        # It refuses to run a command without a terminal.
        child = pexpect.spawn(program, arguments, timeout=120)
        ended = child.expect([pexpect.EOF, pexpect.TIMEOUT]) == 0
        child.close(force=True)
        seconds = time.perf_counter() - begun
        if not ended or child.exitstatus != 0:
            how = f"status {child.exitstatus}" if ended else f"nothing after {child.timeout} s"
            raise NoVirtmeNgError(f"{program} ended with {how}: {template}")
        return seconds


class NoVirtmeNgError(Exception):
    """virtme-ng does not run here; the message says why in one line."""


def pss_mib(pid: int) -> float:
    """Return a process's proportional set size."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(row.split()[1]) for row in rollup.splitlines() if row.startswith("Pss:")) / 1024


def say(line: str) -> None:
    """Tell the user what is being done, apart from the table."""
    print(line, file=sys.stderr, flush=True)


class Table:
    """Figures by name, and the table of their medians."""

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, name: str, *values: float, unit: str = "s") -> None:
        """Add figures to a row; the rows are in the order they were first added to."""
        self._figures[name, unit].extend(values)

    def print(self) -> None:
        """Print a row for each name, with the least and the largest figure of several."""
        print(f"{'':<58}{'median':>9}    {'least':>9} {'largest':>9}     n")
        for (name, unit), figures in self._figures.items():
            digits = 1 if unit == "MiB" else 2
            row = f"{name:<58}{statistics.median(figures):>9.{digits}f} {unit:<3}"
            if len(figures) > 1:
                spread = f"{min(figures):>9.{digits}f} {max(figures):>9.{digits}f}"
                row += f"{spread} {len(figures):>5}"
            print(row.rstrip())


def measure(bench: Bench, table: Table, arguments: argparse.Namespace, vng: str) -> None:
    """Measure everything once; virtme-ng unless ``vng`` is empty.  Raises NoVirtmeNgError."""
    fresh = arguments.fresh
    table.add("QEMU by hand to the agent's first byte", bench.by_hand())
    table.add("pytest without the plugin, to a test", bench.alone().first)
    bench.forget()
    none = bench.tests(1)
    bench.forget()
    nones = bench.tests(fresh)
    saved = bench.tests(fresh)
    table.add("pytest to the first command's end, no template", none.first, nones.first)
    table.add("pytest to the first command's end, template", saved.first)
    table.add("each guest after the first: request to command's end", *saved.guests)
    command, ping = bench.round_trips()
    table.add("round trip of an empty command", command, unit="ms")
    table.add("round trip to the agent", ping, unit="ms")
    for count in arguments.tests:
        times = saved if count == fresh else bench.tests(count)
        table.add(f"pytest, {count} test(s) in as many guests, template", times.wall)
    for workers in WORKERS:
        times = bench.tests(SHARED_OUT, workers)
        table.add(
            f"{SHARED_OUT} fresh guests: pytest{f' -n {workers}' if workers else ''}", times.wall
        )
    table.add(f"{fresh} fresh guests: pytest, template", saved.wall)
    table.add(f"{fresh} fresh guests: pytest, no template", nones.wall)
    table.add("1 fresh guest: pytest, no template", none.wall)
    if vng:
        taken = [bench.virtme_ng(vng) for _ in range(fresh)]
        table.add("1 fresh guest: virtme-ng", *taken)
        table.add("    over pytest, no template", statistics.median(taken) / none.wall, unit="x")
        table.add(f"{fresh} fresh guests: virtme-ng", sum(taken))
        table.add(f"    over pytest of {fresh} tests, template", sum(taken) / saved.wall, unit="x")
        table.add(
            f"    over pytest of {fresh} tests, no template", sum(taken) / nones.wall, unit="x"
        )


def main() -> None:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("spec", nargs="?", default="debian:6.12", metavar="SPEC")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--vng", default=VNG, help=f"virtme-ng's command line (default: {VNG})")
    parser.add_argument("--without", choices=["virtme-ng"], help="leave virtme-ng out")
    # Smaller numbers are for work on this script.
    for name, default in (("--fresh", 10), ("--guests", 8)):
        parser.add_argument(name, type=int, default=default, help=argparse.SUPPRESS)
    parser.add_argument(
        "--tests",
        type=lambda text: [int(count) for count in text.split(",")],
        default=[1, 10, 100],
        help=argparse.SUPPRESS,
    )
    arguments = parser.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(arguments.spec, Path(name))
        vng, note = ("", "left out") if arguments.without else (arguments.vng, arguments.vng)
        bench.tests(1)  # before anything counts: fills every cache
        for number in range(1, arguments.rounds + 1):
            say(f"round {number} of {arguments.rounds}")
            try:
                measure(bench, table, arguments, vng)
            except NoVirtmeNgError as error:
                vng, note = "", str(error)
        guests, mib = arguments.guests, bench.memory(arguments.guests)
        table.add(f"{guests} guests of {MEMORY_MIB} MiB alive at once: Pss of all", mib, unit="MiB")
        table.add("    of each", mib / guests, unit="MiB")
    print(bench.header())
    table.print()
    print(f"virtme-ng: {note}")


if __name__ == "__main__":
    main()

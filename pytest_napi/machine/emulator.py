# SPDX-License-Identifier: GPL-2.0-only
"""The QEMU of this host: where it is, its version, and which accelerator really runs a guest."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.errors import HostUnfit
from pytest_napi.machine.boards import Board
from pytest_napi.machine.tether import tethered

MINIMUM_VERSION = (7, 2)
"""The oldest QEMU the project is run with (Debian 12's)."""

PROBE_SECONDS = 2.0
"""A probe guest needs tens of milliseconds; a KVM that has not run it by then does not work."""


@dataclass(frozen=True)
class Emulator:
    """A QEMU program that is there and new enough."""

    path: Path
    version: tuple[int, int, int]

    def __str__(self) -> str:
        return "QEMU " + ".".join(map(str, self.version))


@dataclass(frozen=True)
class Accelerator:
    """The accelerator to use, and why (one line for the report header)."""

    name: str
    reason: str


def find_emulator(board: Board) -> Emulator:
    """Find ``board``'s QEMU on PATH.

    Raises HostUnfit, with the command that installs it, when there is none or it is too old.
    """
    found = shutil.which(board.qemu)
    install = f"apt-get install {board.package}"
    if found is None:
        raise HostUnfit(f"{board.qemu} is not installed: {install}")
    try:
        said = subprocess.run(
            [found, "--version"], capture_output=True, text=True, timeout=20, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise HostUnfit(f"{found} does not run ({error}): {install}") from None
    match = re.search(r"version (\d+)\.(\d+)(?:\.(\d+))?", said)
    if match is None:
        raise HostUnfit(f"{found} --version names no version: {install}")
    version = (int(match[1]), int(match[2]), int(match[3] or 0))
    if version < MINIMUM_VERSION:
        least = ".".join(map(str, MINIMUM_VERSION))
        has = ".".join(map(str, version))
        raise HostUnfit(f"{found} is QEMU {has}, at least {least} is needed: {install}")
    return Emulator(Path(found), version)


def probe(emulator: Emulator, board: Board, accelerator: str) -> str | None:
    """Run a few guest instructions under ``accelerator``.

    Returns None when the guest ran, else one line that says what happened instead.  A /dev/kvm that
    opens, and even creates a virtual machine, may still not run a guest: only running one tells.
    """
    rom = os.memfd_create("probe.rom")
    try:
        os.write(rom, board.probe.rom)
        argv = [
            str(emulator.path),
            *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
            *("-machine", board.machine, "-accel", accelerator, "-cpu", board.cpu[accelerator]),
            *("-m", "16M", "-bios", f"/proc/self/fd/{rom}", "-device", board.probe.device),
        ]
        done = subprocess.run(
            tethered(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            pass_fds=(rom,),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"a guest did not run within {PROBE_SECONDS:g} s"
    finally:
        os.close(rom)
    if done.returncode == board.probe.status:
        return None
    if done.returncode == board.probe.slow:
        return "it interprets a guest instead of running it"
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"QEMU ended with status {done.returncode}"


def choose_accelerator(
    wanted: str,
    emulator: Emulator,
    board: Board,
    device: Path = Path("/dev/kvm"),
    run_probe: Callable[[Emulator, Board, str], str | None] = probe,
) -> Accelerator:
    """Choose the accelerator for ``wanted`` (``auto``, ``kvm`` or ``tcg``).

    ``auto`` takes KVM when a guest ran under it and TCG otherwise.  Raises HostUnfit when ``kvm``
    is demanded and cannot be had.
    """
    if wanted == "tcg":
        return Accelerator("tcg", "asked for")
    if not device.exists():
        failure: str | None = f"no {device}"
    elif not os.access(device, os.R_OK | os.W_OK):
        failure = f"no permission for {device}"
    else:
        failure = run_probe(emulator, board, "kvm")
    if failure is None:
        return Accelerator("kvm", "a probe guest ran")
    if wanted == "kvm":
        raise HostUnfit(f"KVM does not run guests here ({failure}): use --napi-accel=tcg")
    return Accelerator("tcg", f"no usable KVM: {failure}")

# SPDX-License-Identifier: GPL-2.0-only
"""``pytest-napi doctor``: what this host has and lacks, with the command that mends it."""

from __future__ import annotations

import argparse
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping

from pytest_napi.cache import cache_folder
from pytest_napi.errors import HostUnfit, NapiError
from pytest_napi.image.host_files import find
from pytest_napi.image.manifest import load_manifest
from pytest_napi.image.programs import built
from pytest_napi.kernel.apt import Apt
from pytest_napi.kernel.architecture import X86_64
from pytest_napi.kernel.build import tools
from pytest_napi.kernel.config import parse_config
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.emulator import choose_accelerator, find_emulator
from pytest_napi.machine.nics import NIC_MODELS, NicConfig, unfit
from pytest_napi.machine.tether import find_setpriv
from pytest_napi.machine.wires import Wire
from pytest_napi.shipped import shipped

_GIB = 2**30

_ROOM = {"run tests": 1, "build kernels": 8}
"""GiB a use takes in the cache: a fetched kernel with its modules is 0.2, a source and what is
built of it 4."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    doctor = commands.add_parser(
        "doctor",
        help="what this host has and lacks",
        description="Try what each use of pytest-napi needs of this host, and print what is there, "
        "what is not, and the command that mends it.  Exit status 1 when tests cannot be run.",
    )
    doctor.set_defaults(run=_doctor)


def _python() -> str:
    return f"Python {platform.python_version()}"


def _qemu() -> str:
    emulator = find_emulator(BOARDS["x86_64"])
    return f"{emulator} ({emulator.path})"


def _accelerator() -> str:
    board = BOARDS["x86_64"]
    accelerator = choose_accelerator("auto", find_emulator(board), board)
    return f"accelerator {accelerator.name}: {accelerator.reason}"


def _compiler() -> str:
    for name in ("images", "selftests"):
        built(shipped(name), cache_folder())
    return "a C compiler that builds the guest programs"


def _host_files(manifest: str) -> str:
    programs = load_manifest(shipped(manifest)).host_programs
    return f"for the guest: {', '.join(str(find(program)) for program in programs)}"


def _guest_files() -> str:
    return _host_files("images/guest.yaml")


def _nic_files() -> str:
    return _host_files("images/nic.yaml")


def _models() -> str:
    version = find_emulator(BOARDS["x86_64"]).version
    unfit_here = [why for name in NIC_MODELS if (why := unfit(NicConfig(name), version, cpus=1))]
    if unfit_here:
        raise HostUnfit("; ".join(unfit_here))
    return f"a QEMU with {', '.join(NIC_MODELS)}"


def _tap() -> str:
    Wire(NicConfig("virtio-net", queues=2, backend="tap")).close()
    return "taps of several queues"


def _apt() -> str:
    Apt(cache_folder() / "debian" / X86_64.debian / "apt", X86_64)
    return "apt with Debian's archive"


def _build_tools() -> str:
    # objtool is in nearly every x86 kernel; what else a config asks for, a build says.
    tools.require(parse_config("CONFIG_OBJTOOL=y\n", "doctor"), patches=True)
    return "what a kernel build needs"


def _room(use: str) -> Callable[[], str]:
    def check() -> str:
        folder = cache_folder()
        free = shutil.disk_usage(folder).free / _GIB
        if free < _ROOM[use]:
            raise HostUnfit(
                f"{free:.1f} GiB free in the cache {folder}, {_ROOM[use]} are needed: free some, "
                "or set PYTEST_NAPI_CACHE"
            )
        return f"{free:.0f} GiB free in the cache {folder}"

    return check


CHECKS: Mapping[str, tuple[Callable[[], str], ...]] = {
    "run tests": (
        _python,
        _qemu,
        _accelerator,
        find_setpriv,
        _compiler,
        _guest_files,
        _room("run tests"),
    ),
    "give guests a NIC": (_nic_files, _models, _tap),
    "fetch Debian's kernels": (_apt,),
    "build kernels": (_build_tools, _room("build kernels")),
}
"""For each use of the product what it needs; a check returns what is there or raises NapiError."""


def examine(checks: tuple[Callable[[], str], ...]) -> Iterator[tuple[bool, str]]:
    """Yield for each check whether it is good, and what it said; the same word once."""
    seen = set()
    for check in checks:
        try:
            good, said = True, check()
        except NapiError as error:
            good, said = False, str(error)
        if said not in seen:
            yield good, said
        seen.add(said)


def _doctor(_: argparse.Namespace) -> int:
    fit = True
    for use, checks in CHECKS.items():
        print(f"to {use}")
        for good, said in examine(checks):
            print(f"  {'has  ' if good else 'LACKS'}  {said}", flush=True)
            fit = fit and (good or use != "run tests")
    return 0 if fit else 1

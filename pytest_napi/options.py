# SPDX-License-Identifier: GPL-2.0-only
"""Every option, ini value and marker argument, and the frozen Settings they amount to.

One rule of precedence: marker, then command line, then ini file, then default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

ACCELERATORS = ("auto", "kvm", "tcg")
MODELS = ("none", "voluntary", "full", "lazy")
"""The preemption models by name; kernel/preempt.py says what each is."""
FAIL, PASS = "fail", "pass"
"""What ``--napi-expect`` may say of a kernel."""
SEVERAL = ";"
"""Between the values of an option that may be given several times."""
RESTORE, BOOT = "restore", "boot"
"""How a test gets its fresh guest."""


@dataclass(frozen=True)
class Settings:
    """What a test is run with."""

    kernels: tuple[str, ...] = ()
    """``[LABEL=]SPEC`` of each kernel."""
    preempt: tuple[str, ...] = ()
    """The preemption models; empty: the one each kernel boots with."""
    accel: str = "auto"
    cpus: int = 2
    memory_mib: int = 512
    fresh: str = RESTORE
    """RESTORE: a copy of a guest that was saved after it had booted; BOOT: booted for each test."""
    template_space_mib: int = 4096
    """What saved guests may take of the cache's file system, about 100 MiB each."""
    nics: tuple[str, ...] = ()
    """``MODEL[,queues=N][,backend=NAME]`` of each NIC of a guest."""
    append: tuple[str, ...] = ()
    """Kernel parameters beside those every guest gets."""
    bounds: Path | None = None
    """None: the bounds that ship with the plugin."""
    expect: tuple[tuple[str, str], ...] = ()
    """What each kernel is to do: its label, and FAIL or PASS."""
    results: Path | None = None
    artifacts: Path | None = None
    boot_timeout: float = 60.0
    """Seconds a guest may take from QEMU's start to its first word."""


def _models(text: str) -> tuple[str, ...]:
    models = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for model in models:
        if model not in MODELS:
            raise ValueError(f"unknown preemption model {model!r}: use {', '.join(MODELS)}")
    return models


def _accelerator(text: str) -> str:
    if text not in ACCELERATORS:
        raise ValueError(f"unknown accelerator {text!r}: use {', '.join(ACCELERATORS)}")
    return text


def _fresh(text: str) -> str:
    if text not in (RESTORE, BOOT):
        raise ValueError(f"{text!r} is no way to a fresh guest: use {RESTORE} or {BOOT}")
    return text


def _cpus(text: str) -> int:
    available = os.cpu_count() or 1
    # A load takes one CPU and the measurement another; more vCPUs than a PC has ports are a typo.
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise ValueError(f"{text!r} is no number of CPUs: use 1 to 64 (this host has {available})")
    return int(text)


def _memory(text: str) -> int:
    match = re.fullmatch(r"(\d+) *([MG]i?B?)?", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text!r} is no size of memory: write 512M or 1G")
    factor = 1024 if (match[2] or "M").upper().startswith("G") else 1
    return int(match[1]) * factor


def _nics(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(SEVERAL))))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"{text}: no such file")
    return path


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise ValueError(f"{text!r} is no time in seconds: write a number above 0")
    return value


def _expectations(text: str) -> tuple[tuple[str, str], ...]:
    expected: dict[str, str] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        label, _, what = word.rpartition(":")
        if not label or what not in (FAIL, PASS):
            raise ValueError(f"{word!r} is no expectation: write LABEL:{FAIL} or LABEL:{PASS}")
        if label in expected:
            raise ValueError(f"{label!r} is given twice")
        expected[label] = what
    return tuple(expected.items())


@dataclass(frozen=True)
class Option:
    """One setting and the ways to give it."""

    field: str
    """Its name in Settings."""
    flag: str
    help: str
    metavar: str
    parse: Callable[[str], Any]
    marker: str | None = None
    """Its name as an argument of ``@pytest.mark.napi``, where one test may differ."""
    between: str = ","
    """What joins the values of a list; with other than a comma the flag itself may be repeated."""

    @property
    def ini(self) -> str:
        """Its name in an ini file."""
        name = self.flag.removeprefix("--").replace("-", "_")
        return name if name.startswith("napi_") else f"napi_{name}"


OPTIONS = (
    Option(
        "preempt",
        "--napi-preempt",
        f"preemption models to test, of {', '.join(MODELS)} (default: the kernel's own)",
        "MODEL[,MODEL]",
        _models,
        marker="preempt",
    ),
    Option("accel", "--napi-accel", "auto, kvm or tcg (default: auto)", "ACCEL", _accelerator),
    Option("cpus", "--napi-cpus", "CPUs of a guest (default: 2)", "N", _cpus, marker="cpus"),
    Option(
        "memory_mib",
        "--napi-memory",
        "memory of a guest (default: 512M)",
        "SIZE",
        _memory,
        marker="memory",
    ),
    Option(
        "fresh",
        "--napi-fresh",
        f"how each test gets its guest: {RESTORE} a saved copy, or {BOOT} (default: {RESTORE})",
        "HOW",
        _fresh,
        marker="fresh",
    ),
    Option(
        "template_space_mib",
        "--napi-template-space",
        "what saved guests may take of the disk (default: 4G)",
        "SIZE",
        _memory,
    ),
    Option(
        "nics",
        "--napi-nic",
        "a NIC of the guest: virtio-net, igb, e1000e or vmxnet3; repeatable (default: none)",
        "MODEL[,queues=N][,backend=NAME]",
        _nics,
        marker="nic",
        between=SEVERAL,
    ),
    Option(
        "append",
        "--napi-append",
        "kernel parameters for the guest, e.g. thread_backlog_napi; repeatable",
        "PARAMETERS",
        _words,
        marker="append",
        between=" ",
    ),
    Option("bounds", "--napi-bounds", "bounds file (default: the plugin's)", "FILE", _file),
    Option(
        "expect",
        "--napi-expect",
        "what each labelled kernel is to do: succeed when it does exactly that",
        "LABEL:fail|pass[,...]",
        _expectations,
    ),
    Option("results", "--napi-results", "write all samples as JSON to FILE", "FILE", Path),
    Option(
        "artifacts",
        "--napi-artifacts",
        "keep each guest's console.log and qemu.log below DIR (default: pytest's temporary folder)",
        "DIR",
        Path,
    ),
    Option(
        "boot_timeout",
        "--napi-boot-timeout",
        "seconds a guest may take to boot (default: 60)",
        "SECONDS",
        _seconds,
    ),
)

MARKER = (
    "napi(preempt=None, cpus=None, memory=None, fresh=None, nic=None, append=None): the guest of "
    "this test, where it differs from --napi-preempt, --napi-cpus and so on"
)


def add_options(parser: pytest.Parser) -> None:
    """Tell pytest of every option and ini value."""
    group = parser.getgroup("napi", "kernels under a busy NAPI")
    group.addoption(
        "--kernel",
        action="append",
        dest="napi_kernel",
        metavar="[LABEL=]SPEC",
        help="kernel to test: an image, a build tree, a package, debian:VERSION, host; repeatable",
    )
    parser.addini("napi_kernel", "kernels to test, one [LABEL=]SPEC a line", type="linelist")
    for option in OPTIONS:
        group.addoption(
            option.flag,
            action="store" if option.between == "," else "append",
            dest=option.ini,
            metavar=option.metavar,
            help=option.help,
        )
        parser.addini(option.ini, option.help, type="string")


def settings(config: pytest.Config) -> Settings:
    """Return the settings of command line and ini file.

    Raises ValueError with one line: the option, what is wrong with it, and what is right.
    """
    kernels = config.getoption("napi_kernel") or config.getini("napi_kernel") or ()
    values: dict[str, Any] = {"kernels": tuple(kernels)}
    for option in OPTIONS:
        given, name = config.getoption(option.ini), option.flag
        if given is None:
            given, name = config.getini(option.ini), option.ini
        if given:
            values[option.field] = _parsed(option, name, given)
    return Settings(**values)


def marked(base: Settings, arguments: Mapping[str, object]) -> Settings:
    """Return ``base`` with the arguments of a ``napi`` marker.

    Raises ValueError with one line.
    """
    known = {option.marker: option for option in OPTIONS if option.marker is not None}
    values: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in known:
            raise ValueError(f"@pytest.mark.napi({name}=…): unknown, use {', '.join(known)}")
        if value is not None:
            values[known[name].field] = _parsed(known[name], f"@pytest.mark.napi({name}=…)", value)
    return replace(base, **values)


def _parsed(option: Option, name: str, value: object) -> Any:
    text = option.between.join(value) if isinstance(value, list | tuple) else str(value)
    try:
        return option.parse(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None

# SPDX-License-Identifier: GPL-2.0-only
"""``pytest-napi shell``: a shell in a guest."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from pytest_napi import options, terminal
from pytest_napi.options import Settings
from pytest_napi.run import Run, Target

SHELL = ("sh", "-l")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    shell = commands.add_parser(
        "shell",
        help="boot a kernel and give a shell in the guest",
        description="Boot a kernel and give a shell in the guest, or run COMMAND there and return "
        "its exit status.  The guest ends with the shell.",
    )
    shell.add_argument("--kernel", required=True, metavar="SPEC", help="as pytest's --kernel")
    for option in options.OPTIONS:
        if option.field in ("preempt", "accel", "cpus", "memory_mib", "boot_timeout", "nics"):
            shell.add_argument(
                "--" + option.flag.removeprefix("--napi-"),
                dest=option.field,
                type=_parser(option),
                metavar=option.metavar,
                help=option.help,
            )
    shell.add_argument("argv", nargs="*", metavar="COMMAND", help="behind --")
    shell.set_defaults(run=_shell)


def _parser(option: options.Option) -> Callable[[str], object]:
    def parse(text: str) -> object:
        try:
            return option.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def _shell(given: argparse.Namespace) -> int:
    fields = ("accel", "cpus", "memory_mib", "boot_timeout", "nics")
    chosen = {name: getattr(given, name) for name in fields if getattr(given, name) is not None}
    settings = Settings(kernels=(given.kernel,), **chosen)
    run = Run(settings, say=lambda line: print(f"pytest-napi: {line}", file=sys.stderr))
    run.prepare()
    model = given.preempt[0] if given.preempt else None
    target = Target(run.kernels[0], model)
    with (
        tempfile.TemporaryDirectory(prefix="pytest-napi-") as folder,
        run.boot(target, settings, Path(folder)) as booted,
    ):
        if sys.stdin.isatty() and not given.argv:
            return terminal.interact(booted.guest, SHELL)
        return terminal.stream(booted.guest, given.argv or SHELL)

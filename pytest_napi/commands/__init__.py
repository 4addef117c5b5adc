# SPDX-License-Identifier: GPL-2.0-only
"""The ``pytest-napi`` command: one module a subcommand."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence

from pytest_napi.commands import bisect, build, compare, doctor, fetch, shell
from pytest_napi.errors import NapiError

SUBCOMMANDS = (doctor, fetch, build, shell, compare, bisect)
"""Each has ``add(commands)``, which adds its parser and sets ``run`` to what it does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: 2 for bad arguments, 1 when it cannot be done."""
    parser = argparse.ArgumentParser(prog="pytest-napi")
    commands = parser.add_subparsers(dest="command", required=True)
    for subcommand in SUBCOMMANDS:
        subcommand.add(commands)
    given = parser.parse_args(arguments)
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    run: Callable[[argparse.Namespace], int] = given.run
    try:
        return run(given)
    except NapiError as error:
        print(f"pytest-napi: {error}", file=sys.stderr)
        if error.detail:
            print(error.detail, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> None:
    """End as by an exception, so that nothing is left behind."""
    sys.exit(128 + number)

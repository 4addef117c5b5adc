# SPDX-License-Identifier: GPL-2.0-only
"""``pytest-napi fetch``: get kernels ahead of time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_napi.cache import cache_folder
from pytest_napi.guest.boot import guest_image
from pytest_napi.kernel import debian
from pytest_napi.kernel.resolve import resolve
from pytest_napi.kernel.spec import DEBIAN, KernelSpec, parse_spec
from pytest_napi.machine.boards import BOARDS


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    fetch = commands.add_parser(
        "fetch",
        help="get kernels ahead of time",
        description="Fetch and unpack kernels into the cache, and make the image each boots into, "
        "so that a later run needs no network and starts at once.  Prints the path of each.",
    )
    fetch.add_argument("kernels", nargs="+", metavar="SPEC", help="as pytest's --kernel")
    fetch.set_defaults(run=_fetch)


def _fetch(given: argparse.Namespace) -> int:
    cache = cache_folder()
    for text in given.kernels:
        print(_fetched(parse_spec(text), cache), flush=True)
    return 0


def _fetched(spec: KernelSpec, cache: Path) -> Path:
    """Return the image of a kernel, which may be of an architecture that cannot be booted here."""
    if spec.text.startswith(DEBIAN) and debian.parse(spec.text).architecture.name not in BOARDS:
        return debian.fetch_kernel(spec.text, cache, _say).image
    kernel = resolve(spec, cache, _say)
    guest_image(kernel, cache)
    return kernel.image


def _say(line: str) -> None:
    print(f"pytest-napi: {line}", file=sys.stderr)

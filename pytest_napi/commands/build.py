# SPDX-License-Identifier: GPL-2.0-only
"""``pytest-napi build``: a kernel from a source, config fragments and patches."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from pytest_napi.cache import cache_folder
from pytest_napi.kernel import build as building
from pytest_napi.kernel.build import output
from pytest_napi.kernel.build.builder import BASE
from pytest_napi.kernel.build.make import duration
from pytest_napi.report.progress import Progress

_DESCRIPTION = """\
Build a kernel: SOURCE is a source tree, which is copied and never written to, a tarball of one, or
debian:VERSION.  What a guest needs is always configured.  The same build a second time is found in
the cache; with other patches, or after edits of the source tree, only what differs is compiled.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    build = commands.add_parser(
        "build",
        help="build a kernel from a source, config fragments and patches",
        description=_DESCRIPTION,
    )
    build.add_argument("source", metavar="SOURCE")
    add_inputs(build)
    build.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="the image file to write, with OUT.config beside it; or a folder (OUT/), which gets "
        "the modules too (default: print where it is in the cache)",
    )
    build.add_argument(
        "-j", "--jobs", type=_count, metavar="N", help="compilers at a time (default: one a CPU)"
    )
    build.set_defaults(run=_build)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the options for what goes into a build beside its source."""
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a Kconfig fragment; of several the later wins, and each option must stick",
    )
    parser.add_argument(
        "--patch",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a diff, a patch mail, or a mailbox of them; applied in order",
    )
    parser.add_argument(
        "--base",
        default=BASE,
        metavar="TARGET",
        help="make's config target to start from (%(default)s)",
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of jobs: give 1 or more")
    return int(text)


def _build(given: argparse.Namespace) -> int:
    if given.output is not None:
        output.check(given.output)
    terminal = sys.stderr.isatty()
    line = Progress(_write if terminal else None)

    def say(text: str) -> None:
        line.clear()
        print(f"pytest-napi: {text}", file=sys.stderr, flush=True)

    def show(text: str) -> None:
        line.show(text[: shutil.get_terminal_size().columns - 1])

    try:
        built = building.build(
            given.source,
            given.config,
            given.patch,
            cache=cache_folder(),
            base=given.base,
            jobs=given.jobs,
            progress=say,
            live=show if terminal else None,
        )
    finally:
        line.clear()
    image = built.image
    if given.output is not None:
        image = output.place(built, given.output)
        if built.modules is not None and not output.is_folder(given.output):
            say(f"the kernel has modules, which need a folder: -o {given.output}/")
    how = "from the cache" if built.cached else "built"
    print(f"{built.release}: {image} ({how} in {duration(built.seconds)})")
    return 0


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

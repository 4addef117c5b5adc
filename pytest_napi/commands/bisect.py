# SPDX-License-Identifier: GPL-2.0-only
"""``pytest-napi bisect-step``: one step of ``git bisect run``."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytest_napi.cache import cache_folder
from pytest_napi.commands.build import add_inputs
from pytest_napi.errors import HostUnfit, NapiError
from pytest_napi.kernel.build import build
from pytest_napi.options import Settings
from pytest_napi.report.record import TestRecord, read_results
from pytest_napi.run import Run

GOOD, BAD, CANNOT_TELL, ABORT = 0, 1, 125, 128
"""Exit statuses; their meaning is git's: from 128 on ``git bisect run`` gives up, which is right
where the next step would end the same way."""

_GIVE_UP: Mapping[int, int] = {
    pytest.ExitCode.INTERRUPTED: 128 + signal.SIGINT,
    pytest.ExitCode.INTERNAL_ERROR: ABORT,
    pytest.ExitCode.USAGE_ERROR: ABORT,
}
"""By pytest's exit status."""

_DESCRIPTION = """\
Build the kernel of a source tree, run tests on it, and tell git whether this commit is good:

  git bisect run pytest-napi bisect-step --config FRAGMENT -- selftests/test_netdev_deletion.py

Exit status 0: good, all tests passed; 1: bad, one failed; 125: cannot tell (the kernel does not
build or boot, the guest was lost, a verdict is inconclusive, every test was skipped); 128: no step
can succeed (bad arguments, or this host lacks something), which ends the bisection.

To find the commit that mended a fault, swap 0 and 1 with --find-fix:

  git bisect start --term-old=broken --term-new=fixed HEAD v6.12
  git bisect run pytest-napi bisect-step --find-fix --config FRAGMENT -- TEST
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    step = commands.add_parser(
        "bisect-step",
        help="one step of git bisect run: build, boot, test",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    step.add_argument(
        "--find-fix",
        action="store_true",
        help="look for the commit that mended a fault: exit status 0 where it shows, 1 where not",
    )
    step.add_argument("--source", default=".", metavar="FOLDER", help="the source tree (.)")
    add_inputs(step)
    step.add_argument(
        "--build-command",
        metavar="COMMAND",
        help="build with this shell command in the source tree instead; --kernel says what it made",
    )
    step.add_argument("--kernel", metavar="SPEC", help="what --build-command made (default: .)")
    step.add_argument("arguments", nargs="+", metavar="PYTEST-ARGUMENT", help="behind --")
    step.set_defaults(run=_step)


def _step(given: argparse.Namespace) -> int:
    try:
        kernel = _own_build(given) if given.build_command else _build(given)
        # pytest would call it bad usage, as it is from a command line; here it is this commit's.
        Run(Settings(kernels=(kernel,)), say=print).prepare()
    except HostUnfit as error:
        return _end(ABORT, str(error), error.detail)
    except NapiError as error:
        return _end(CANNOT_TELL, f"no kernel to test: {error}", error.detail)
    with tempfile.TemporaryDirectory(prefix="pytest-napi-") as folder:
        results = Path(folder) / "results.json"
        argv = [sys.executable, "-m", "pytest", f"--kernel=bisect={kernel}"]
        status = subprocess.run(
            [*argv, f"--napi-results={results}", *given.arguments], check=False
        ).returncode
        tests = read_results(results).tests if results.exists() else []
    told = _end(*verdict(status, tests))
    return {GOOD: BAD, BAD: GOOD}.get(told, told) if given.find_fix else told


def _end(status: int, reason: str, detail: str = "") -> int:
    words = {GOOD: "the tests pass", BAD: "the fault shows", CANNOT_TELL: "cannot tell"}
    print(f"bisect-step: {words.get(status, 'giving up')}: {reason}", flush=True)
    if detail:
        print(detail, file=sys.stderr)
    return status


def _own_build(given: argparse.Namespace) -> str:
    source = Path(given.source)
    done = subprocess.run(given.build_command, shell=True, cwd=source, check=False)
    if done.returncode != 0:
        raise NapiError(f"{given.build_command}: exit status {done.returncode}")
    return given.kernel or str(source.resolve())


def _build(given: argparse.Namespace) -> str:
    made = build(
        given.source,
        given.config,
        given.patch,
        cache=cache_folder(),
        base=given.base,
        progress=lambda line: print(f"bisect-step: {line}", file=sys.stderr),
    )
    return str(made.image)


def verdict(status: int, tests: Sequence[TestRecord]) -> tuple[int, str]:
    """Return the exit status for a pytest run, and why, from its own status and its records.

    A failed test says bad whatever else happened; without one, anything but a pass on all that ran
    says nothing.
    """
    outcomes = [test.outcome for test in tests]
    failed = [test for test in tests if test.outcome == "failed"]
    if status in _GIVE_UP:
        return _GIVE_UP[status], f"pytest ended with status {status}"
    if failed:
        return BAD, f"{failed[0].nodeid}: {failed[0].verdict}"
    if "passed" in outcomes and status == 0:
        return GOOD, f"{outcomes.count('passed')} passed"
    undecided = sorted({*outcomes} - {"passed"})
    return (
        CANNOT_TELL,
        f"pytest ended with status {status}, tests: {', '.join(undecided) or 'none'}",
    )

# SPDX-License-Identifier: GPL-2.0-only
"""``pytest-napi compare``: the before/after table of stored results."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_napi.errors import NapiError
from pytest_napi.report import layouts
from pytest_napi.report.compare import Measured, compare, measured
from pytest_napi.report.record import Results, read_results
from pytest_napi.untrusted import printable


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "compare",
        help="print the before/after table of stored results",
        description="Print what was measured on several kernels side by side, the first kernel "
        "being the base: the kernels of one FILE, or of several.  The exit status is 1 when the "
        "loads did not do the same work, so that the figures cannot be compared.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="of --napi-results")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--mail",
        dest="layout",
        action="store_const",
        const=layouts.mail,
        help=f"plain text of {layouts.MAIL_WIDTH} columns, for a commit message",
    )
    form.add_argument(
        "--markdown",
        dest="layout",
        action="store_const",
        const=layouts.markdown,
        help="a table for GitHub",
    )
    parser.set_defaults(run=_compare, layout=layouts.terminal)


def _compare(given: argparse.Namespace) -> int:
    files = {path: read_results(path) for path in given.files}
    if len(files) < len(given.files):
        raise NapiError("one file is given twice")
    names = _names(files)
    found = [m for path, results in files.items() for m in measured(results.tests, names[path])]
    labels = [name for path in files for name in names[path].values()]
    for label, count in Counter(labels).items():
        if count > 1:
            raise NapiError(printable(f"two kernels are called {label}: rename a file"))
    comparisons, absent = compare(found, labels)
    if not comparisons:
        raise NapiError(f"nothing to compare: {_contents(found, labels)}")
    blocks = [given.layout(comparison) for comparison in comparisons]
    print("\n\n".join("\n".join(block) for block in blocks))
    for line in absent:
        print(f"pytest-napi: {printable(line)}", file=sys.stderr)
    invalid = next((comparison for comparison in comparisons if comparison.invalid), None)
    if invalid is not None:
        raise NapiError(printable(f"{invalid.subject}: {invalid.control}"))
    return 0


def _names(files: Mapping[Path, Results]) -> dict[Path, dict[str, str]]:
    """Return for each file its labels and what to call them: a label of two files by the file."""
    count = Counter(label for results in files.values() for label in results.labels)
    stems = Counter(path.stem for path in files)
    names: dict[Path, dict[str, str]] = {}
    for path, results in files.items():
        file = path.stem if stems[path.stem] == 1 else str(path)
        alone = len(results.labels) == 1
        own = {label: file if alone else f"{file}:{label}" for label in results.labels}
        names[path] = {label: own[label] if count[label] > 1 else label for label in own}
    return names


def _contents(found: Sequence[Measured], labels: Sequence[str]) -> str:
    """Return what was measured on each kernel, on one line."""
    kernels = []
    for label in labels:
        own = [one for one in found if one.label == label]
        subjects = dict.fromkeys(
            f"{one.subject}{'' if one.result.complete else ' (cut short)'}" for one in own
        )
        kernels.append(f"{label} has {'; '.join(subjects) or 'no measurement'}")
    text = " | ".join(kernels) or "no kernel was tested"
    return " ".join(printable(text).split())

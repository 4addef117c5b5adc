# SPDX-License-Identifier: GPL-2.0-only
"""Runs of pytest as a user starts them, and what is left of them."""

import json
import os
import sys
from pathlib import Path

import pytest

from pytest_napi.cache import cache_folder
from pytest_napi.errors import NapiError
from pytest_napi.kernel import parse_spec, resolve

FULL = bool(os.environ.get("NAPI_TEST_FULL"))
full_only = pytest.mark.skipif(not FULL, reason="takes minutes: NAPI_TEST_FULL is not set")

SELFTESTS = Path(__file__).resolve().parents[2] / "selftests"


def fetched(spec):
    """Return the kernel of ``spec``, or skip with the reason why it cannot be had."""
    try:
        return resolve(parse_spec(spec), cache_folder(), print)
    except NapiError as error:
        pytest.skip(str(error))


class NapiRun:
    """A finished pytest run in a folder of its own."""

    def __init__(self, done, folder):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        results = folder / "results.json"
        self.tests = json.loads(results.read_text())["tests"] if results.exists() else []

    def outcomes(self):
        return {
            test["nodeid"].partition("[")[2].rstrip("]"): test["outcome"] for test in self.tests
        }


def command(folder, *arguments):
    # Without --rootdir pytest would take this project's own configuration.
    return [
        *(sys.executable, "-m", "pytest", f"--rootdir={folder}", "-p", "no:cacheprovider"),
        *(f"--basetemp={folder / 'base'}", f"--napi-results={folder / 'results.json'}"),
        *arguments,
    ]


def qemus(marker):
    """Return the pids of the QEMUs whose command line holds ``marker``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if line.startswith(("/usr/bin/qemu", "qemu")) and marker in line:
            found.append(int(path.parent.name))
    return found

# SPDX-License-Identifier: GPL-2.0-only
"""Repeats a test whose guest was lost to a defect of QEMU: it says nothing of the kernel.

An object of its own among the plugins, so that it is left out where another one repeats tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from pytest_napi.run import GuestTest

TEST_ATTEMPTS = 3
"""Runs of a test until one whose guests QEMU loses is given up."""

TEST = pytest.StashKey[GuestTest]()
"""In ``item.stash``: the test's guest and records, once it has asked for a guest."""
FOLDER = pytest.StashKey[Path]()
"""In ``item.stash``: where the files of its machine go."""
LOST_TO_EMULATOR = pytest.StashKey[str]()
"""In ``item.stash``: how the test's guest was lost to a defect of QEMU."""
NOTES = pytest.StashKey[list[str]]()
"""In ``item.stash``: what the report of the test is to say of the runs before."""


class Repeater:
    """The hook that runs a test."""

    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a test that wants a guest until QEMU keeps it, and report the last run.

        One that is lost TEST_ATTEMPTS times is not excused.
        """
        if "napi_target" not in getattr(item, "fixturenames", ()):
            return None
        where = {"nodeid": item.nodeid, "location": item.location}
        item.ihook.pytest_runtest_logstart(**where)
        for attempt in range(1, TEST_ATTEMPTS + 1):
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
            lost = item.stash.get(LOST_TO_EMULATOR, None)
            if lost is None or attempt == TEST_ATTEMPTS:
                break
            _forget(item, attempt, lost)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(**where)
        return True


def _forget(item: pytest.Item, attempt: int, lost: str) -> None:
    """Make ``item`` as if it had not run, but for a note and the files of its machine."""
    del item.stash[LOST_TO_EMULATOR]
    item.stash.setdefault(NOTES, []).append(f"run again: {lost}")
    if TEST in item.stash:
        del item.stash[TEST]
    if FOLDER in item.stash:
        item.stash[FOLDER] = item.stash[FOLDER] / f"run-{attempt + 1}"

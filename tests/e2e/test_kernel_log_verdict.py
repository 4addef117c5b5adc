# SPDX-License-Identifier: GPL-2.0-only
"""A splat fails the test during which it was logged: shown with real ones."""

SPLATS = """
import time

import pytest


def test_soft_lockup(guest, reentry_load):
    # Says nothing about any bound: without the kernel log it would pass.
    guest.write_text("/proc/sys/kernel/watchdog_thresh", "2")
    with reentry_load(cpu=0, seconds=20):
        time.sleep(15)


def test_quiet(guest):
    assert guest.run(["true"]).returncode == 0


@pytest.mark.xfail(strict=True, reason="the splat is expected here")
def test_expected(guest):
    guest.write_text("/dev/kmsg", "WARNING: made up at nowhere.c:1\\n")
"""


def test_a_splat_fails_a_test_that_found_nothing(napi):
    run = napi("--kernel=k=debian:6.1", "--napi-preempt=none", "-rx", source=SPLATS)
    tests = {t["nodeid"].partition("::")[2].partition("[")[0]: t for t in run.tests}
    assert tests["test_soft_lockup"]["outcome"] == "failed"
    assert "soft_lockup" in {splat["kind"] for splat in tests["test_soft_lockup"]["splats"]}
    assert "BUG: soft lockup - CPU#0 stuck" in run.out
    assert "Call Trace" in run.out
    assert tests["test_quiet"]["outcome"] == "passed"
    assert run.status == 1
    assert "1 failed, 1 passed, 1 xfailed" in run.out

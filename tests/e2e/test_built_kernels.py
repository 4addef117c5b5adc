# SPDX-License-Identifier: GPL-2.0-only
"""Kernels that take a quarter of an hour to build: a debug kernel, and the newest there is."""

from cli import PROJECT, built
from runs import SELFTESTS, full_only

pytestmark = full_only

# The patch of the kernel below makes writing 1 sleep in atomic context, and 0 invert two locks.
SOURCE = """
import pytest

@pytest.mark.parametrize("carrier", ["1", "0"])
def test_carrier(guest, carrier):
    guest.run(["ip", "link", "add", "d0", "type", "dummy"], check=True)
    guest.run(["ip", "link", "set", "d0", "up"], check=True)
    guest.write_text("/sys/class/net/d0/carrier", carrier)

def test_nothing(guest):
    guest.run(["true"], check=True)
"""


def test_a_debug_kernels_complaints_fail_their_tests(napi, tmp_path):
    image = tmp_path / "debug.img"
    patch = PROJECT / "tests/e2e/patches/dummy-faults.patch"
    built("debian:6.12", image, configs=["debug.config"], patches=[patch])
    run = napi(
        f"--kernel=debug={image}", "--napi-memory=1G", "--napi-boot-timeout=300", source=SOURCE
    )
    assert run.status == 1
    found = {test["nodeid"]: test for test in run.tests}
    splats = {name: {splat["kind"] for splat in test["splats"]} for name, test in found.items()}
    (sleep,) = (name for name in found if name.endswith("-1]"))
    (inversion,) = (name for name in found if name.endswith("-0]"))
    (nothing,) = (name for name in found if "test_nothing" in name)
    assert splats == {sleep: {"atomic_sleep"}, inversion: {"lockdep"}, nothing: set()}
    assert "possible circular locking dependency detected" in run.out
    assert "sleeping function called from invalid context" in run.out


def test_the_newest_source_keeps_the_bound(napi, tmp_path):
    image = tmp_path / "lazy.img"
    built("debian:7", image, configs=["preempt-lazy.config"])
    run = napi(f"--kernel=built={image}", str(SELFTESTS / "test_netdev_deletion.py"))
    assert run.status == 0
    assert run.outcomes() == {"built-lazy": "passed"}

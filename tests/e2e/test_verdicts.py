# SPDX-License-Identifier: GPL-2.0-only
"""The main job on kernels people run: the verdict is that of the report the project comes from."""

import pytest

from runs import FULL, SELFTESTS

MODELS = ("none", "voluntary", "full")
RUNS = 10 if FULL else 1


@pytest.mark.parametrize("spec", ["debian:6.12", "debian:6.1"])
@pytest.mark.parametrize("attempt", range(RUNS))
def test_kernels_that_cannot_preempt_the_kthread_fail(napi, spec, attempt, kernel_6_12, kernel_6_1):
    run = napi(
        f"--kernel=k={spec}",
        f"--napi-preempt={','.join(MODELS)}",
        str(SELFTESTS / "test_netdev_deletion.py"),
    )
    assert run.status == 1
    assert run.outcomes() == {"k-none": "failed", "k-voluntary": "failed", "k-full": "passed"}

    results = {test["guest"]["preemption"]: test["results"][0] for test in run.tests}
    rates = [result["load"]["reentries_per_second"] for result in results.values()]
    assert min(rates) > 10_000
    assert max(rates) < 1.1 * min(rates)
    for model in ("none", "voluntary"):
        message = results[model]["message"]
        assert "waited in" in message or "had not ended" in message
        assert message in run.out
    assert "netdev_deletion, seconds" in run.out


def test_rcu_barrier(napi, kernel_6_12):
    run = napi(
        "--kernel=k=debian:6.12", "--napi-preempt=full", str(SELFTESTS / "test_rcu_barrier.py")
    )
    assert run.status == 0
    (test,) = run.tests
    (result,) = test["results"]
    assert test["guest"]["preemption"] == "full"
    assert len(result["measurement"]["idle"]["samples"]) > 3
    assert len(result["measurement"]["loaded"]["samples"]) > 3


# So many frames fill a poll's budget: the kthread yields, and the fault of kernels is hidden.
WEAK = """
def test_weak(reentry_load, netdev_deletion, bounds):
    with reentry_load(cpu=0, frames=60, seconds=20) as load:
        deletion = netdev_deletion(seconds=3)
    bounds.check(deletion, control=load.rate)
"""


def test_a_good_figure_under_a_load_that_did_no_work_is_inconclusive(napi, kernel_6_12):
    run = napi("--kernel=k=debian:6.12", "--napi-preempt=full", source=WEAK)
    assert run.status == 6
    assert run.outcomes() == {"k-full": "inconclusive"}
    assert "re-entries/s, at least 10000 are needed" in run.out

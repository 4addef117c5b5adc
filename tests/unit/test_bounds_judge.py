# SPDX-License-Identifier: GPL-2.0-only
from dataclasses import replace

from pytest_napi.bounds.judge import Outcome, judge
from pytest_napi.bounds.model import Bound, Bounds, Duration, LoadBound
from pytest_napi.measure.series import Measurement, Sample, Series
from pytest_napi.net.load import LoadWindow

MS = 10**6
BOUNDS = Bounds(
    mean=Bound(Duration(500 * MS), idle=10),
    max=Bound(Duration(1000 * MS), idle=10),
    load=LoadBound(10_000),
)
LOAD = LoadWindow(10.0, 80_000.0, 8.0, 1.0, 0.0, (0,))


def series(*milliseconds, withheld=0, phases=None):
    return Series(
        tuple(
            Sample(i * 10**9, ms * MS, phases or {}, withheld * MS)
            for i, ms in enumerate(milliseconds)
        )
    )


def measured(loaded, idle=None):
    idle = series(20, 30) if idle is None else idle
    return Measurement("netdev_deletion", 1, "rtnl", 0, 10**10, idle, loaded)


def test_within_bounds():
    verdict = judge(measured(series(100, 200)), BOUNDS, LOAD, load_wanted=True)
    assert verdict.outcome is Outcome.PASSED
    assert [check.statistic for check in verdict.checks] == ["mean", "max"]


def test_over_a_bound_names_the_phase_and_the_load():
    loaded = series(2000, 100, phases={"flush_work": 90 * MS, "synchronize_net": 5 * MS})
    verdict = judge(measured(loaded), BOUNDS, LOAD, load_wanted=True)
    assert verdict.outcome is Outcome.FAILED
    assert "max 2.00 s over its bound of 1.00 s" in verdict.message
    assert "waited in flush_work" in verdict.message
    assert "80000 re-entries/s" in verdict.message


def test_one_long_wait_fails_though_the_mean_is_fine():
    loaded = series(*[50] * 99, 1500)
    verdict = judge(measured(loaded), BOUNDS, LOAD, load_wanted=True)
    assert verdict.outcome is Outcome.FAILED
    assert "mean" not in verdict.message


def test_a_slow_host_has_bounds_in_proportion_to_its_idle_baseline():
    slow = measured(series(1500, 900), idle=series(150, 160))
    assert judge(slow, BOUNDS, LOAD, load_wanted=True).outcome is Outcome.PASSED
    fast = measured(series(1500, 900), idle=series(20, 30))
    assert judge(fast, BOUNDS, LOAD, load_wanted=True).outcome is Outcome.FAILED


def test_what_the_host_explains_is_inconclusive():
    loaded = series(1200, 100, withheld=900)
    verdict = judge(measured(loaded), BOUNDS, LOAD, load_wanted=True)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "host" in verdict.message


def test_what_the_host_explains_only_in_part_is_a_failure():
    loaded = series(5000, 100, withheld=900)
    verdict = judge(measured(loaded), BOUNDS, LOAD, load_wanted=True)
    assert verdict.outcome is Outcome.FAILED


def test_a_good_figure_under_a_weak_load_proves_nothing():
    weak = replace(LOAD, reentries_per_second=312.0)
    verdict = judge(measured(series(100)), BOUNDS, weak, load_wanted=True)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "312 re-entries/s, at least 10000" in verdict.message


def test_a_bad_figure_under_a_weak_load_is_bad_all_the_same():
    weak = replace(LOAD, reentries_per_second=312.0)
    assert judge(measured(series(2000)), BOUNDS, weak, True).outcome is Outcome.FAILED


def test_a_load_that_did_not_run():
    verdict = judge(measured(series(100)), BOUNDS, None, load_wanted=True)
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_no_samples_are_no_pass():
    assert judge(measured(series()), BOUNDS, LOAD, True).outcome is Outcome.INCONCLUSIVE
    without_idle = measured(series(100), idle=series())
    assert judge(without_idle, BOUNDS, LOAD, True).outcome is Outcome.INCONCLUSIVE


def test_an_operation_that_never_ended_fails():
    loaded = Series((Sample(0, 20_000 * MS, unfinished=True),))
    verdict = judge(measured(loaded), BOUNDS, LOAD, load_wanted=True)
    assert verdict.outcome is Outcome.FAILED
    assert "had not ended after 20.0 s" in verdict.message


def test_without_a_control_no_load_is_asked_for():
    assert judge(measured(series(100)), BOUNDS, None, False).outcome is Outcome.PASSED

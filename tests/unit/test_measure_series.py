# SPDX-License-Identifier: GPL-2.0-only
from pytest_napi.measure.series import Sample, Series
from pytest_napi.measure.units import seconds


def series(*durations):
    return Series(tuple(Sample(0, duration) for duration in durations))


def test_figures():
    figures = series(*range(1, 201))
    assert (figures.n, figures.mean_ns, figures.max_ns) == (200, 100.5, 200)
    assert figures.p99_ns == 198
    assert figures.over(198) == 2


def test_p99_of_few_samples_is_their_maximum():
    assert series(3, 1, 2).p99_ns == 3


def test_no_samples():
    empty = series()
    assert (empty.n, empty.mean_ns, empty.p99_ns, empty.max_ns, empty.worst) == (0, 0, 0, 0, None)


def test_phase_totals_are_sorted_by_time():
    both = Series((Sample(0, 9, {"a": 1, "b": 5}), Sample(0, 9, {"a": 2, "b": 1})))
    assert list(both.phase_totals().items()) == [("b", 6), ("a", 3)]


def test_seconds_for_people():
    shown = [seconds(ns) for ns in (22_940_000_000, 1_184_000_000, 82_000_000, 350_000)]
    assert shown == ["22.9 s", "1.18 s", "0.082 s", "0.000350 s"]

# SPDX-License-Identifier: GPL-2.0-only
from pytest_napi.net.load import LoadRate, Tick

TENTH = 10**8


def ticks(n, per_tick=8000, busy=1.0, sleeps=0):
    return tuple(
        Tick(
            time_ns=i * TENTH,
            polls=i * per_tick,
            reentries=i * per_tick,
            work=i * per_tick * 8,
            runtime_ns=int(i * TENTH * busy),
            voluntary=i * sleeps,
            nonvoluntary=0,
            cpu=0,
        )
        for i in range(n)
    )


def test_rate_in_a_window():
    window = LoadRate(ticks(100)).window(2 * 10**9, 4 * 10**9)
    assert window.seconds == 2.0
    assert window.reentries_per_second == 80_000
    assert (window.mean_work, window.busy, window.cpus) == (8.0, 1.0, (0,))


def test_a_load_that_ended_early_is_judged_by_what_is_there():
    window = LoadRate(ticks(20)).window(10**9, 10**10)
    assert window.seconds < 1


def test_a_load_that_stood_still_is_seen():
    still = tuple(Tick(i * TENTH, 5, 5, 40, 0, 0, 0, 0) for i in range(20, 60))
    window = LoadRate((*ticks(20), *still)).window(0, 6 * 10**9)
    assert window.reentries_per_second < 80_000


def test_no_window_without_ticks():
    assert LoadRate(()).window(0, 10**9) is None
    assert LoadRate(ticks(5)).window(10**10, 2 * 10**10) is None

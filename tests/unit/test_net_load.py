# SPDX-License-Identifier: GPL-2.0-only
from types import SimpleNamespace

import pytest

from pytest_napi.errors import NapiError
from pytest_napi.net import load as module
from pytest_napi.net.load import LoadRate, ReentryLoad, Tick

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


@pytest.fixture
def load(monkeypatch):
    """A load whose program prints the given counts of polls, a tick each, and ends."""

    def make(*polls):
        class Stream:
            def __init__(self, guest, argv):
                pass

            def events(self, timeout, every):
                for i, count in enumerate(polls):
                    tick = Tick(i * TENTH, count, 0, 0, 0, 0, 0, 0)
                    names = ("time_ns", "polls", "reentries", "work", "runtime_ns", "voluntary")
                    names += ("nonvoluntary", "cpu")
                    yield {"event": "tick", **{name: getattr(tick, name) for name in names}}

            def check(self, unsupported):
                pass

            def end_input(self):
                pass

            close = end_input

        monkeypatch.setattr(module, "EventStream", Stream)
        run = SimpleNamespace(run=lambda argv, check: None)
        booted = SimpleNamespace(
            config=SimpleNamespace(cpus=2), guest=run, guest_now_ns=lambda: 10**12
        )
        return ReentryLoad(booted)

    return make


def test_a_load_without_re_entries_runs_and_is_weak(load):
    with load(0, 700, 1400) as running:
        pass
    assert running.rate.window(0, 2 * TENTH).reentries_per_second == 0


def test_a_load_that_ended_before_it_worked_is_an_error(load):
    with pytest.raises(NapiError, match="ended before it was seen at work"), load(0, 0):
        pass

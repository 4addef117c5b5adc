# SPDX-License-Identifier: GPL-2.0-only
import pytest

from pytest_napi.net.load import Tick
from pytest_napi.net.search import Point, point_of, point_of_reentries, search
from pytest_napi.net.watch import NicTick


def point(pps, burst, received=None, reentries=0.0):
    return Point(pps, burst, received or pps or 1e5, 1, 1, reentries, 1, 1)


def test_higher_rates_are_left_out_once_the_guest_does_not_keep_up():
    tried = []

    def measure(pps, burst):
        tried.append((pps, burst))
        return point(pps, burst, received=min(pps or 1e6, 9000))

    search(measure, rates=(20_000, 5_000, 10_000, 40_000), bursts=(4, 16))
    once = [(5_000, 4), (10_000, 4), (20_000, 4)]
    assert tried == [(None, 64), *once, *((pps, 16) for pps, _ in once)]


def test_the_best_has_the_most_reentries_and_is_marked():
    curve = search(lambda pps, burst: point(pps, burst, reentries=burst % 50), (10,), (4, 48, 16))
    assert (curve.best.pps, curve.best.burst) == (10, 48)
    assert curve.flood.pps is None
    (marked,) = [row for row in curve.table().splitlines() if row.endswith("<-")]
    assert marked.startswith("10/s in bursts of 48")


def nic_tick(at, frames, **counters):
    zero = {"polls": 0, "reentries": 0, "work": frames, "runtime_ns": 0, "voluntary": 0}
    zero |= {"nonvoluntary": 0, "cpu": 0, **counters}
    return NicTick(time_ns=int(at * 1e9), rx_packets=frames, **zero)


def test_only_the_time_in_which_frames_arrived_counts():
    ticks = [
        nic_tick(0, 0),
        nic_tick(1, 100, polls=50, reentries=50),
        nic_tick(2, 1100, polls=150, reentries=130, full=20, voluntary=30),
        nic_tick(9, 1100, polls=150, reentries=130, full=20, voluntary=31),
    ]
    found = point_of(1000, 16, ticks)
    assert found.received_per_second == pytest.approx(1000)
    assert found.mean_work == pytest.approx(10)
    assert found.below_budget == pytest.approx(0.8)
    assert found.reentries_per_second == pytest.approx(50)
    assert found.switches_per_second == pytest.approx(30)


def test_the_longest_time_without_a_switch():
    def tick(at, switches):
        return Tick(int(at * 1e9), at, at, at * 8, 0, switches, 0, 0)

    found = point_of_reentries(10, 8, [tick(at, at > 7) for at in range(10)])
    assert found.longest_ns == pytest.approx(7e9)

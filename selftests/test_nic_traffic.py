# SPDX-License-Identifier: GPL-2.0-only
"""Frames from outside arrive: all of them, in their pace, on every RX queue."""

import time

import pytest

from pytest_napi.net.shapes import Flood, Paced

PPS = 20_000
SECONDS = 10
FLOWS = 1024
"""So many that a hash spreads them evenly: a queue's share has a standard deviation of 1.6 %."""

pytestmark = pytest.mark.napi(cpus=2)


@pytest.fixture(params=[False, True], ids=["softirq", "threaded"])
def polled(nic, request):
    """The NIC, polled in softirq or by kthreads, with rings that ride out a pause of the host."""
    nic.threaded = request.param
    nic.ethtool.set_rings(rx=nic.ethtool.largest_rings()["rx"])
    return nic


def test_paced_traffic_arrives_on_every_queue(polled, traffic, record_property):
    with traffic(Paced(PPS), flows=FLOWS) as load:
        time.sleep(SECONDS)
    counts, queues = load.counts, polled.config.queues
    record_property("traffic", str(counts))
    assert counts.lost == 0
    assert counts.delivered >= 0.99 * counts.offered
    assert counts.delivered_per_second == pytest.approx(PPS, rel=0.1), "the guest is too slow"
    load.prove_queues(queues)
    for frames in load.queues.values():
        if frames:
            assert 0.8 / queues < frames / counts.delivered < 1.2 / queues
    if polled.threaded:
        at_work = [kthread for kthread in load.kthreads if kthread.runtime_ns > 0.1e9]
        assert len(at_work) >= queues


@pytest.mark.usefixtures("polled")
def test_every_frame_of_a_flood_is_accounted_for(traffic, record_property):
    with traffic(Flood()) as load:
        time.sleep(SECONDS)
    record_property("traffic", str(load.counts))
    assert load.counts.delivered > 0
    assert load.counts.lost == 0

# SPDX-License-Identifier: GPL-2.0-only
"""Deletions and rcu_barrier() take bounded time while a NIC receives, whoever polls it."""

import pytest

from pytest_napi.net.shapes import Paced

PPS = 20_000

pytestmark = pytest.mark.napi(cpus=2)


@pytest.fixture(params=[False, True], ids=["softirq", "threaded"])
def polled(nic, request):
    """The NIC, polled in softirq or by kthreads."""
    nic.threaded = request.param
    return nic


@pytest.mark.usefixtures("polled")
def test_deletion_is_bounded_while_a_nic_receives(netdev_deletion, traffic, bounds):
    with traffic(Paced(PPS), cpu=0) as load:
        deletion = netdev_deletion(cpu=1, seconds=10)
    bounds.check(deletion, control=load.rate)


@pytest.mark.usefixtures("polled")
def test_rcu_barrier_is_bounded_while_a_nic_receives(rcu_barrier, traffic, bounds):
    with traffic(Paced(PPS), cpu=0) as load:
        barrier = rcu_barrier(cpu=1, seconds=10)
    bounds.check(barrier, control=load.rate)

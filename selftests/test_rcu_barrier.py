# SPDX-License-Identifier: GPL-2.0-only
"""``rcu_barrier()`` takes bounded time while a NAPI kthread is busy."""

import pytest


@pytest.mark.napi(cpus=2)
def test_rcu_barrier_is_bounded_while_napi_is_busy(reentry_load, rcu_barrier, bounds):
    with reentry_load(cpu=0) as load:
        barrier = rcu_barrier(cpu=1, seconds=10)
    bounds.check(barrier, control=load.rate)

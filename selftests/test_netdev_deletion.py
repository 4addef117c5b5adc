# SPDX-License-Identifier: GPL-2.0-only
"""Deleting a network device takes bounded time while a NAPI kthread is busy."""

import pytest


@pytest.mark.napi(cpus=2)
def test_deletion_is_bounded_while_napi_is_busy(reentry_load, netdev_deletion, bounds):
    with reentry_load(cpu=0) as load:
        deletion = netdev_deletion(cpu=1, seconds=10)
    bounds.check(deletion, control=load.rate)

# SPDX-License-Identifier: GPL-2.0-only
import os
import threading
import time

from pytest_napi.machine.interference import Interference


def test_the_worst_served_vcpu_counts():
    readings = {1: 0, 2: 0}
    interference = Interference(1, [1, 2], read=lambda _, thread: readings[thread])
    start = time.monotonic_ns()
    readings.update({1: 5_000_000, 2: 70_000_000})
    time.sleep(0.12)
    end = time.monotonic_ns()
    interference.close()
    assert interference.withheld_ns(start, end) == 70_000_000


def test_a_real_thread_is_read():
    interference = Interference(os.getpid(), [threading.get_native_id()])
    begun = time.monotonic_ns()
    time.sleep(0.06)
    assert interference.available
    assert interference.withheld_ns(begun, time.monotonic_ns()) >= 0
    interference.close()


def test_a_thread_that_is_gone_reads_as_nothing():
    interference = Interference(2**22 + 1, [2**22 + 1])
    assert not interference.available
    assert interference.withheld_ns(0, 10**9) == 0
    interference.close()

# SPDX-License-Identifier: GPL-2.0-only
"""How long the host withheld the CPU from the guest's vCPUs.

Each vCPU is a host thread.  The second figure of its ``/proc/PID/task/TID/schedstat`` is its run
delay: the ns it was runnable and did not run (kernel: Documentation/scheduler/sched-stats.rst).  A
guest that waited because its vCPU did not run has done nothing wrong.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

SAMPLE_SECONDS = 0.05
"""Spacing of the readings: short against any bound (the tightest is half a second)."""


def read_run_delay(pid: int, thread: int) -> int:
    """Return the run delay of a thread in ns.  Raises OSError when it is gone or not counted."""
    return _schedstat(pid, thread)[1]


def read_run_time(pid: int, thread: int) -> int:
    """Return the CPU time of a thread in ns.  Raises OSError when it is gone or not counted."""
    return _schedstat(pid, thread)[0]


def _schedstat(pid: int, thread: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()))


class Interference:
    """Samples the vCPUs' run delays until it is closed.

    ``available`` is False on hosts whose kernel keeps no schedstat; delays then read as 0.
    """

    def __init__(
        self,
        pid: int,
        threads: Sequence[int],
        read: Callable[[int, int], int] = read_run_delay,
    ) -> None:
        self._read: Callable[[], list[int]] = lambda: [read(pid, thread) for thread in threads]
        self._times: list[int] = []
        self._delays: list[list[int]] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.available = self._sample()
        self._thread = threading.Thread(target=self._run, name="napi-schedstat", daemon=True)
        if self.available:
            self._thread.start()

    def _sample(self) -> bool:
        try:
            delays = self._read()
        except (OSError, IndexError, ValueError):
            return False
        with self._lock:
            self._times.append(time.monotonic_ns())
            self._delays.append(delays)
        return True

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS) and self._sample():
            pass

    def withheld_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the ns the host withheld from the worst-served vCPU between two host times.

        Times are of the host's CLOCK_MONOTONIC.  The nearest readings outside the interval are
        taken, so that a delay at its edge is not missed.
        """
        self._sample()
        with self._lock:
            if len(self._times) < 2:
                return 0
            first = max(bisect.bisect_right(self._times, start_ns) - 1, 0)
            last = min(bisect.bisect_left(self._times, end_ns), len(self._times) - 1)
            pairs = zip(self._delays[first], self._delays[last], strict=True)
            return max((after - before for before, after in pairs), default=0)

    def close(self) -> None:
        """Stop sampling."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

# SPDX-License-Identifier: GPL-2.0-only
"""The next tests' guests, restored while the present test runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.closing import Closing
from pytest_napi.errors import NapiError
from pytest_napi.guest.boot import BootConfig, Booted
from pytest_napi.kernel.kernel import Kernel

DEPTH = 2
"""Guests prepared at once: a guest takes 0.4 s on one CPU, and a short test is over before that."""

_SPARE_MIB = 256
"""What is left of the host's memory for everything else."""


@dataclass(frozen=True)
class Request:
    """A guest that is wanted, and where the files of its machine go."""

    kernel: Kernel
    config: BootConfig
    folder: Path


class Pool(Closing):
    """Up to DEPTH restored guests that stand still until they are taken.

    ``copy`` restores one, or returns None where there is nothing to restore.  ``workers`` is how
    many processes run tests on this host at once: each needs a CPU for the test itself.
    """

    def __init__(
        self, copy: Callable[[Kernel, BootConfig, Path], Booted | None], workers: int = 1
    ) -> None:
        self._copy = copy
        self.depth = DEPTH if (os.cpu_count() or 1) > workers else 0
        """How many guests are worth asking for."""
        # Its threads live as long as itself: a QEMU dies with the thread that has started it.
        self._executor = ThreadPoolExecutor(DEPTH, thread_name_prefix="napi-pool")
        self._prepared: dict[Request, Future[Booted | None]] = {}

    def prepare(self, requests: Sequence[Request]) -> None:
        """Begin to restore the guests that are wanted next, if the host has memory to spare.

        Those that were prepared for others are ended.
        """
        for unwanted in self._prepared.keys() - set(requests):
            self._drop(unwanted)
        for request in requests[: self.depth]:
            fits = request.config.memory_mib + _SPARE_MIB < available_mib()
            if fits and request not in self._prepared:
                self._prepared[request] = self._executor.submit(
                    self._copy, request.kernel, request.config, request.folder
                )

    def take(self, request: Request) -> Booted | None:
        """Return the guest that was prepared for ``request``; None when there is none."""
        future = self._prepared.pop(request, None)
        with suppress(NapiError):  # who restores it next is told the same
            return future.result() if future is not None else None
        return None

    def settle(self) -> None:
        """Wait until nothing is under way: a prepared guest takes no CPU."""
        for future in self._prepared.values():
            future.exception()

    def _drop(self, request: Request) -> None:
        unwanted = self.take(request)
        if unwanted is not None:
            unwanted.close()

    def close(self) -> None:
        """End the guests nobody has taken, and the threads: to be called when no guest runs."""
        self.prepare([])
        self._executor.shutdown()


def available_mib() -> int:
    """Return how much memory the host has for new processes (proc_meminfo(5), MemAvailable)."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) >> 10
    return 0

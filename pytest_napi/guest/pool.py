# SPDX-License-Identifier: GPL-2.0-only
"""The next test's guest, restored while the present test runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.closing import Closing
from pytest_napi.errors import NapiError
from pytest_napi.guest.boot import BootConfig, Booted
from pytest_napi.kernel.kernel import Kernel

_SPARE_MIB = 256
"""What is left of the host's memory for everything else."""


@dataclass(frozen=True)
class Request:
    """A guest that is wanted, and where the files of its machine go."""

    kernel: Kernel
    config: BootConfig
    folder: Path


class Pool(Closing):
    """At most one restored guest that stands still until it is taken.

    ``copy`` restores one, or returns None where there is nothing to restore.  ``workers`` is how
    many processes run tests on this host at once: each needs a CPU for the test itself.
    """

    def __init__(
        self, copy: Callable[[Kernel, BootConfig, Path], Booted | None], workers: int = 1
    ) -> None:
        self._copy = copy
        self._has_cpu = (os.cpu_count() or 1) > workers
        # One thread for all: a QEMU dies with the thread that has started it.
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="napi-pool")
        self._next: tuple[Request, Future[Booted | None]] | None = None

    def prepare(self, request: Request) -> None:
        """Begin to restore a guest, if the host has a CPU and the memory to spare."""
        self._drop()
        if self._has_cpu and request.config.memory_mib + _SPARE_MIB < available_mib():
            future = self._executor.submit(
                self._copy, request.kernel, request.config, request.folder
            )
            self._next = request, future

    def take(self, request: Request) -> Booted | None:
        """Return the guest that was prepared for ``request``; None when there is none."""
        if self._next is None or self._next[0] != request:
            self._drop()
            return None
        (_, future), self._next = self._next, None
        with suppress(NapiError):  # who restores it next is told the same
            return future.result()
        return None

    def settle(self) -> None:
        """Wait until nothing is under way: a prepared guest takes no CPU."""
        if self._next is not None:
            self._next[1].exception()

    def _drop(self) -> None:
        if self._next is not None:
            (_, future), self._next = self._next, None
            with suppress(NapiError):
                unwanted = future.result()
                if unwanted is not None:
                    unwanted.close()

    def close(self) -> None:
        """End the guest nobody has taken, and the thread: to be called when no guest runs."""
        self._drop()
        self._executor.shutdown()


def available_mib() -> int:
    """Return how much memory the host has for new processes (proc_meminfo(5), MemAvailable)."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) >> 10
    return 0

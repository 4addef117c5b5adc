# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of each test: plain data that goes to JSON, between processes, and into tables."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from pytest_napi.bounds.judge import Check, Outcome
from pytest_napi.errors import HostUnfit
from pytest_napi.measure.series import Measurement
from pytest_napi.net.load import LoadWindow

FORMAT = 1
"""Version of the results file; a reader refuses one it does not know."""


class GuestRecord(msgspec.Struct, frozen=True):
    """The guest a test ran in, as it proved to be."""

    kernel: str
    """The kernel's label."""
    release: str
    banner: str
    source: str
    """The SPEC of --kernel."""
    preemption_asked: str | None
    preemption: str | None
    """The preemption model read back."""
    preemption_evidence: str
    accelerator: str
    qemu: str
    cpus: int
    memory_mib: int


class Result(msgspec.Struct):
    """One measurement and what came of it; ``outcome`` is "" until its bounds were checked."""

    measurement: Measurement
    outcome: str = ""
    message: str = ""
    checks: list[Check] = []
    load: LoadWindow | None = None
    attempts: int = 1
    """How often it was measured because the host interfered."""
    complete: bool = True
    """False: it was cut short, by Ctrl-C or a lost guest."""


class SplatRecord(msgspec.Struct, frozen=True):
    """One kernel log splat."""

    kind: str
    line: str
    excerpt: str


class TestRecord(msgspec.Struct):
    """One test: its guest, its measurements, the splats of its kernel log."""

    __test__ = False  # for pytest, which would take it for a test class

    nodeid: str
    guest: GuestRecord | None = None
    outcome: str = ""
    """pytest's word for the test, or ``inconclusive``, ``lost``, ``interrupted``."""
    reason: str = ""
    results: list[Result] = []
    splats: list[SplatRecord] = []
    notes: list[str] = []
    """What was out of the ordinary, though it changed no verdict."""

    @property
    def stalls(self) -> int:
        """How many RCU stalls the kernel reported."""
        return sum(splat.kind == "rcu_stall" for splat in self.splats)

    @property
    def verdict(self) -> str:
        """The word for the table."""
        if self.outcome == "failed" and self.splats:
            kinds = ", ".join(sorted({splat.kind for splat in self.splats}))
            bound = any(result.outcome == Outcome.FAILED for result in self.results)
            return f"FAILED ({'bound, ' if bound else ''}{kinds})"
        if self.outcome == "failed":
            bound = any(result.outcome == Outcome.FAILED for result in self.results)
            return "FAILED (bound)" if bound else "FAILED"
        return self.outcome


class Results(msgspec.Struct):
    """A results file."""

    format: int
    tool: str
    host: str
    tests: list[TestRecord]


def results(tests: Sequence[TestRecord]) -> Results:
    """Return ``tests`` with what identifies this run."""
    host = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Results(FORMAT, f"pytest-napi {version('pytest-napi')}", host, list(tests))


def check_writable(path: Path) -> None:
    """Make the results file, so that a run does not learn at its end that it cannot be written.

    Raises HostUnfit.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise HostUnfit(f"cannot write the results to {path}: {error.strerror}") from None


def write_results(path: Path, tests: Sequence[TestRecord]) -> None:
    """Write the results file.  Raises HostUnfit when it cannot be written."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(results(tests)), indent=1) + b"\n")
    except OSError as error:
        raise HostUnfit(f"cannot write the results to {path}: {error.strerror}") from None


def to_plain(record: TestRecord) -> dict[str, Any]:
    """Return ``record`` as plain lists and dicts, which pytest sends between processes."""
    plain = msgspec.to_builtins(record)
    assert isinstance(plain, dict)
    return plain


def from_plain(plain: object) -> TestRecord:
    """Return the record ``to_plain`` made ``plain`` of."""
    return msgspec.convert(plain, TestRecord)

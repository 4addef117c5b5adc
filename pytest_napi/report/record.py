# SPDX-License-Identifier: GPL-2.0-only
"""What is kept of each test: plain data that goes to JSON, between processes, and into tables."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from pytest_napi.bounds.judge import Check, Outcome
from pytest_napi.errors import HostUnfit, NapiError
from pytest_napi.measure.series import Measurement
from pytest_napi.net.load import LoadWindow
from pytest_napi.options import FAIL, MODELS
from pytest_napi.untrusted import printable

FORMAT = 1
"""Version of the results file; a reader refuses one it does not know."""

EITHER = "either"
"""Beside FAIL and PASS: what is expected of a kernel that ``--napi-expect`` does not mention."""

LOGGED = "the kernel logged: "
"""How the reason of a test begins that only the kernel log has failed."""

_WITHOUT_CONFIG = "default"
"""The model in the id of a test on a kernel of which nobody knows what it boots with."""


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
    restored: bool = False
    """A copy of a guest that had been saved; else booted for this test."""
    nics: tuple[str, ...] = ()
    """The NICs as ``--napi-nic`` takes them."""


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
    kernel: str = ""
    """The kernel's label, known before there is a guest."""
    model: str = ""
    """The preemption model asked for or predicted, known before there is a guest."""
    expected: str = ""
    """FAIL, PASS or EITHER in a run with ``--napi-expect``."""
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
    def label(self) -> str:
        """The label of the kernel; "" for a test that has none."""
        return self.guest.kernel if self.guest is not None else self.kernel

    @property
    def preemption(self) -> str:
        """The preemption model the test is about; ``?`` when nobody knows.

        A test for which another one runs than was asked for is skipped: of a measurement it is the
        model that was read back.
        """
        if self.guest is None:
            return self.model or "?"
        return self.guest.preemption_asked or self.guest.preemption or "?"

    @property
    def test(self) -> str:
        """The node id without its kernel and preemption model: the same on every kernel."""
        models = "|".join((*MODELS, _WITHOUT_CONFIG))
        target = rf"{re.escape(self.label)}-(?:{models})"
        own = rf"(?<=\[){target}(?:-|(?=\]))|-{target}(?=[-\]])"
        return re.sub(own, "", self.nodeid, count=1).replace("[]", "")

    @property
    def faults(self) -> tuple[str, ...]:
        """What the kernel did wrong: ``bound``, and the kinds of its splats."""
        bound = any(result.outcome == Outcome.FAILED for result in self.results)
        return (*(("bound",) if bound else ()), *sorted({splat.kind for splat in self.splats}))

    @property
    def shows_fault(self) -> bool:
        """Whether the kernel failed a measuring test: not the test itself, by an error of its own.

        Such an error may come with a splat and even a failed bound, but tells of a broken test.
        """
        failed = [r.message for r in self.results if r.outcome == Outcome.FAILED]
        logged = bool(self.splats) and self.reason.startswith(LOGGED)
        by_kernel = self.reason in failed or logged
        return self.outcome == "failed" and bool(self.results) and by_kernel

    @property
    def unexpected_pass(self) -> bool:
        """Whether the load did not show the fault on a kernel that was to have it."""
        return self.expected == FAIL and bool(self.results) and self.outcome == "passed"

    @property
    def verdict(self) -> str:
        """The word for the table."""
        if self.outcome == "failed":
            faults = f" ({', '.join(self.faults)})" if self.faults else ""
            said = {FAIL: ", expected", EITHER: ", not counted"}.get(self.expected, "")
            return f"FAILED{faults}{said if self.shows_fault else ''}"
        return f"{self.outcome}, not expected" if self.unexpected_pass else self.outcome


class Results(msgspec.Struct):
    """A results file."""

    format: int
    tool: str
    host: str
    tests: list[TestRecord]
    kernels: list[str] = []
    """The labels of the kernels, in the order of ``--kernel``: the first is the base."""

    @property
    def labels(self) -> list[str]:
        """The labels of the kernels, the base first, also of a file that does not list them."""
        return list(dict.fromkeys([*self.kernels, *(t.label for t in self.tests if t.guest)]))


class _Head(msgspec.Struct):
    """What every version of a results file has."""

    format: int
    tool: str


def _this_tool() -> str:
    return f"pytest-napi {version('pytest-napi')}"


def results(tests: Sequence[TestRecord], kernels: Sequence[str]) -> Results:
    """Return ``tests`` on these ``kernels`` (labels) with what identifies this run."""
    host = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Results(FORMAT, _this_tool(), host, list(tests), list(kernels))


def check_writable(path: Path) -> None:
    """Find out now, and not at the end of a run, whether the results file can be written.

    Leaves no file that was not there.  Raises HostUnfit.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists()
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise HostUnfit(f"cannot write the results to {path}: {error.strerror}") from None


def write_results(path: Path, tests: Sequence[TestRecord], kernels: Sequence[str]) -> None:
    """Write the results file.  Raises HostUnfit when it cannot be written."""
    content = msgspec.json.encode(results(tests, kernels))
    try:
        path.write_bytes(msgspec.json.format(content, indent=1) + b"\n")
    except OSError as error:
        raise HostUnfit(f"cannot write the results to {path}: {error.strerror}") from None


def read_results(path: Path) -> Results:
    """Read a results file.  Raises NapiError with one line: the file and what is wrong with it."""
    try:
        content = path.read_bytes()
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise NapiError(
                f"{path}: is in format {head.format}, of {printable(head.tool)}; "
                f"this is {_this_tool()}, which reads format {FORMAT}"
            )
        return msgspec.json.decode(content, type=Results)
    except OSError as error:
        raise NapiError(f"{path}: {error.strerror}") from None
    except msgspec.ValidationError as error:
        raise NapiError(f"{path}: not a results file: {printable(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NapiError(f"{path}: not JSON: {printable(str(error))}") from None


def to_plain(record: TestRecord) -> dict[str, Any]:
    """Return ``record`` as plain lists and dicts, which pytest sends between processes."""
    plain = msgspec.to_builtins(record)
    assert isinstance(plain, dict)
    return plain


def from_plain(plain: object) -> TestRecord:
    """Return the record ``to_plain`` made ``plain`` of."""
    return msgspec.convert(plain, TestRecord)

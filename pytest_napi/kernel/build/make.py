# SPDX-License-Identifier: GPL-2.0-only
"""Run the kernel's make: always in the same environment, all of it ended with this process."""

from __future__ import annotations

import errno
import os
import re
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pytest_napi.errors import HostUnfit
from pytest_napi.kernel.architecture import X86_64, Architecture
from pytest_napi.untrusted import printable

_ERROR_LINES = 10
_LINE_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_END_SECONDS = 10.0

# "  CC [M]  net/core/dev.o"
_STEP = re.compile(r"  [A-Z][A-Z0-9_]*(?: \[[A-Z]+\])? +(\S+)")
_ERROR = re.compile(
    r"(?i:\berror:)|undefined reference to|multiple definition of|: syntax error"
    r"|\*\*\* (?!\[|Waiting)|:\d+: (?:unknown|invalid|recursive)"
)
_STOPPED = re.compile(r"\*\*\* \[")  # make's own "*** [file:line: target] Error 1"
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_KILLED = re.compile(r"Killed signal terminated program|internal compiler error: Killed")


@dataclass(frozen=True)
class Target:
    """How an architecture's kernel is asked for.

    ``arch`` is make's ARCH, ``folder`` the architecture's folder in arch/, ``image`` the target
    that makes the bootable image.
    """

    arch: str
    folder: str
    image: str


TARGETS: Mapping[str, Target] = {X86_64.name: Target("x86_64", "x86", "bzImage")}
"""By the name of the architecture."""

# Ends its whole process group when it is told to: make alone would leave what a shell of its runs.
_SUPERVISOR = """
trap 'trap "" TERM; kill -TERM 0; wait' TERM
make "$@" &
wait $!
"""
# It is told when this process dies, however it does (the thread that starts it, in truth).
_SUPERVISED = ("setpriv", "--pdeathsig", "TERM", "--", "sh", "-c", _SUPERVISOR, "sh")

# What else the environment holds (KCFLAGS, MAKEFLAGS, ARCH …) would change what is built.
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "CROSS_COMPILE", "CCACHE_DIR", "CCACHE_CONFIGPATH")

_FIXED = {
    "LC_ALL": "C",
    # The same input gives the same image, wherever and whenever it is built.
    "KBUILD_BUILD_USER": "pytest-napi",
    "KBUILD_BUILD_HOST": "pytest-napi",
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_VERSION": "1",
}


class MakeFailed(Exception):
    """make ended with an error; ``lines`` are those of its output that say why, ready to print."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(lines[0] if lines else "make said nothing")
        self.lines = lines


@dataclass
class Watch:
    """Tells how far a build is.

    ``live`` is called at every step with a line that replaces the one before; where it is None,
    ``progress`` gets one every 30 seconds.  ``total`` is about how many steps there will be, 0
    where that is not known; ``steps`` how many there were.
    """

    name: str
    progress: Callable[[str], None]
    live: Callable[[str], None] | None = None
    total: int = 0
    steps: int = 0
    _started: float = field(default_factory=time.monotonic)
    _said: float = field(default_factory=time.monotonic)

    def step(self, file: str) -> None:
        """Count one file that is made."""
        self.steps += 1
        now = time.monotonic()
        say = self.live
        if say is None and now - self._said >= _LINE_SECONDS:
            say, self._said = self.progress, now
        if say is not None:
            of = f" of about {self.total}" if self.total >= self.steps else ""
            passed = duration(now - self._started)
            say(f"building {self.name}: {self.steps}{of} steps, {passed}, {file}")


def duration(seconds: float) -> str:
    """Return a time for people: "0.4 s", "12 min 3 s"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@dataclass(frozen=True)
class Make:
    """make in one pair of trees; what it says is added to ``log``."""

    source: Path
    object: Path
    architecture: Architecture
    jobs: int
    log: Path

    @property
    def target(self) -> Target:
        """The names make has for the architecture."""
        return TARGETS[self.architecture.name]

    def clean_source(self) -> None:
        """Remove from the source itself what a build in it left.  Raises MakeFailed."""
        self._run(["mrproper"], None)

    def run(self, targets: Sequence[str], watch: Watch | None = None) -> None:
        """Make ``targets``, with variables among them; returns when every process has ended.

        Raises MakeFailed, HostUnfit if the compiler was killed for want of memory, and OSError
        (ENOSPC) if the disk is full.
        """
        self.object.mkdir(exist_ok=True)
        self._run([f"O={self.object}", *targets], watch)

    def _run(self, arguments: Sequence[str], watch: Watch | None) -> None:
        options = ["-C", str(self.source), f"-j{self.jobs}", f"ARCH={self.target.arch}"]
        options += ["LOCALVERSION="]  # even empty, it keeps a "+" from the release
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        outside = {"GIT_CEILING_DIRECTORIES": str(self.source.parent)}
        # Not through a pipe: if it broke, make could not remove what is half made.
        with self.log.open("ab") as log, self.log.open("rb") as said:
            said.seek(0, os.SEEK_END)
            process = subprocess.Popen(
                [*_SUPERVISED, *options, *arguments],
                env={**passed_on, **_FIXED, **outside},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            try:
                last, errors = self._read(process, said, watch)
            except BaseException:
                _end(process)
                raise
        if process.returncode:
            self._fail(last, errors)

    def _read(
        self, process: subprocess.Popen[bytes], said: BinaryIO, watch: Watch | None
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Follow make to its end; return its last lines and those that name errors."""
        last: deque[str] = deque(maxlen=_ERROR_LINES)
        errors: list[str] = []
        for raw in _lines(process, said):
            line = printable(raw).rstrip().replace(f"{self.source}/", "")
            step = _STEP.match(line)
            if step:
                if watch is not None:
                    watch.step(step[1])
                continue
            last.append(line)
            if _ERROR.search(line) or _NO_SPACE.search(line):
                errors.append(line)
        return last, errors

    def _fail(self, last: Sequence[str], errors: Sequence[str]) -> None:
        for line in errors:
            if _NO_SPACE.search(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if _KILLED.search(line):
                raise HostUnfit(
                    "the compiler was killed, as the kernel does when memory runs out: "
                    f"use fewer jobs than -j {self.jobs}"
                )
        lines = errors or [line for line in last if not _STOPPED.search(line)] or last
        raise MakeFailed(lines[:_ERROR_LINES])


def _lines(process: subprocess.Popen[bytes], said: BinaryIO) -> Iterator[bytes]:
    """Yield the lines a process adds to its log, until it has ended."""
    rest = b""
    end = os.pidfd_open(process.pid)
    try:
        while process.returncode is None:
            select.select([end], [], [], _LOOK_SECONDS)
            process.poll()  # once it has ended, all it wrote is there
            *lines, rest = (rest + said.read()).split(b"\n")
            yield from lines
    finally:
        os.close(end)
    if rest:
        yield rest


def _end(process: subprocess.Popen[bytes]) -> None:
    """End make and all it started, letting it remove what is half made."""
    process.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

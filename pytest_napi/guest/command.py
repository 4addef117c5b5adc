# SPDX-License-Identifier: GPL-2.0-only
"""From what ``subprocess`` takes to a SPAWN, and from a failed step to what ``subprocess`` raises.

Pure functions.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from pytest_napi.guest import wire
from pytest_napi.guest.wire import Failed, Flag, Mode, Spawn

Word: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
Argv: TypeAlias = "Word | Sequence[Word]"
Environment: TypeAlias = "Mapping[str, str] | Mapping[bytes, bytes]"

_TIMEOUT_MAX_MS: Final = 0xFFFFFFFF


def command(
    argv: Argv,
    *,
    env: Environment | None,
    cwd: Word | None,
    cpu: int | None,
    timeout: float | None,
    stdin: bool,
    pty: tuple[int, int] | None,
) -> Spawn:
    """Return the SPAWN that runs a program; ValueError for what no program can be given."""
    if cpu is not None and cpu < 0:
        raise ValueError(f"there is no CPU {cpu}")
    flags = Flag.NONE if stdin or pty else Flag.NO_STDIN
    rows, cols = pty or (0, 0)
    return Spawn(
        argv=words(argv),
        flags=flags | Flag.PTY if pty else flags,
        cpu=-1 if cpu is None else cpu,
        timeout_ms=timeout_ms(timeout),
        env=None if env is None else environment(env),
        cwd=b"" if cwd is None else os.fsencode(cwd),
        rows=rows,
        cols=cols,
    )


def words(argv: Argv) -> list[bytes]:
    """Return argv as bytes; a lone string or path is a program without arguments."""
    if isinstance(argv, str | bytes | os.PathLike):
        argv = [argv]
    if not argv:
        raise ValueError("argv is empty")
    return [os.fsencode(word) for word in argv]


def environment(env: Environment) -> list[bytes]:
    """Return an environment as "name=value"."""
    pairs = [(os.fsencode(name), os.fsencode(value)) for name, value in env.items()]
    for name, _ in pairs:
        if not name or b"=" in name:
            raise ValueError(f"illegal environment variable name: {os.fsdecode(name)!r}")
    return [name + b"=" + value for name, value in pairs]


def timeout_ms(timeout: float | None) -> int:
    """Return a timeout in whole milliseconds, 1 at least; 0 for None."""
    if timeout is None:
        return 0
    return min(max(math.ceil(timeout * 1000), 1), _TIMEOUT_MAX_MS)


def payload(spawn: Spawn) -> bytes:
    """Return a SPAWN's payload; OSError if it is more than the channel carries."""
    encoded = spawn.encode()
    if len(encoded) > wire.PAYLOAD_MAX:
        raise OSError(
            errno.E2BIG,
            f"argv and environment have {len(encoded)} bytes, "
            f"a guest program can be given {wire.PAYLOAD_MAX}",
            os.fsdecode(spawn.argv[0]),
        )
    return encoded


def failure(failed: Failed, spawn: Spawn, cpus: int) -> OSError | ValueError:
    """Return the exception of a failed step, as ``subprocess`` or ``open`` would raise it."""
    if failed.step == "cpu":
        return ValueError(f"the guest has no CPU {spawn.cpu} to run on: it has {cpus}")
    text = f"{os.strerror(failed.error)} in the guest"
    if failed.step == "chdir":
        return OSError(failed.error, text, os.fsdecode(spawn.cwd))
    if failed.step == "exec" or spawn.mode is not Mode.EXEC:
        return OSError(failed.error, text, os.fsdecode(spawn.argv[0]))
    return OSError(failed.error, f"{text} ({failed.step})", os.fsdecode(spawn.argv[0]))

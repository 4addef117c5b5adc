# SPDX-License-Identifier: GPL-2.0-only
"""Apply patches with git apply, and say what is wrong where one does not.

git is what a patch was made with: it knows creations, deletions, renames and modes, takes offsets
but no fuzz, changes all files of a patch or none, and refuses paths that lead out of the folder.
(patch-ng does half of that; whatthepatch only parses.)
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.build.patches import Patch
from pytest_napi.untrusted import printable

_FAILED_HUNK = re.compile(r"^error: patch failed: (.*):(\d+)$", re.MULTILINE)
_ABSENT = re.compile(r"^error: (.*): No such file or directory$", re.MULTILINE)
_PRESENT = re.compile(r"^error: (.*): already exists in working directory$", re.MULTILINE)


def git_environment() -> dict[str, str]:
    """Return the environment without what git sets for its hooks, which points to a repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _git_apply(folder: Path, diff: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git apply in a folder, unseen by a repository around it and by the user's settings."""
    own = {
        "LC_ALL": "C",
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *arguments],
        cwd=folder,
        env={**git_environment(), **own},
        input=diff,
        capture_output=True,
        check=False,
    )


def paths_of(patch: Patch, folder: Path) -> set[str]:
    """Return every path a patch creates, changes or removes.

    ``folder`` is any that exists.  Raises KernelUnusable for a path that leads out of the source.
    """
    paths: set[str] = set()
    # git prints the name after the change only; turned round, it is the one before.
    for direction in ([], ["-R"]):
        listed = _git_apply(folder, patch.diff, "--numstat", "-z", *direction)
        if listed.returncode:
            raise KernelUnusable(f"{patch.name}: {_first_error(listed)}")
        records = os.fsdecode(listed.stdout).split("\0")
        paths.update(record.split("\t", 2)[2] for record in records if record)
    for path in sorted(paths):
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts:
            raise KernelUnusable(
                f"{patch.name}: refused: it writes {printable(path)}, outside of the source"
            )
    return paths


def apply(patches: Sequence[Patch], folder: Path) -> None:
    """Apply patches in order to the files in ``folder``.

    Raises KernelUnusable that names the hunk where one does not apply; those before it have been
    applied by then.
    """
    for patch in patches:
        done = _git_apply(folder, patch.diff)
        if done.returncode == 0:
            continue
        if _git_apply(folder, patch.diff, "--check", "-R").returncode == 0:
            raise KernelUnusable(f"{patch.name}: is already in the source; leave it out")
        raise KernelUnusable(f"{patch.name}: {_reason(patch, done)}")


def _reason(patch: Patch, failed: subprocess.CompletedProcess[bytes]) -> str:
    said = printable(failed.stderr)
    other = "give one that was made for this source, or the source it was made for"
    if match := _FAILED_HUNK.search(said):
        path, start = match[1], int(match[2])
        for hunk in patch.hunks:
            if (hunk.path, hunk.start) == (path, start):
                return f"{hunk} does not apply; {other}"
        return f"does not apply at {path}:{start}; {other}"
    if match := _ABSENT.search(said):
        return f"the source has no {match[1]}; {other}"
    if match := _PRESENT.search(said):
        return f"creates {match[1]}, which the source has already; {other}"
    return _first_error(failed)


def _first_error(failed: subprocess.CompletedProcess[bytes]) -> str:
    lines = printable(failed.stderr).splitlines()
    first = lines[0] if lines else f"exit status {failed.returncode}"
    return f"git apply refuses it: {first.removeprefix('error: ')}"

# SPDX-License-Identifier: GPL-2.0-only
"""The ``pytest-napi`` command as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PATCH = PROJECT / "configs/patches/napi-threaded-yield-6.12.patch"


def pytest_napi(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "pytest_napi.commands", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def built(source, image, configs=("preempt-none.config",), patches=()):
    """Build ``image`` with fragments of configs/, or skip where the source cannot be fetched."""
    done = pytest_napi(
        *("build", source, "-o", str(image)),
        *(f"--config={PROJECT / 'configs' / name}" for name in configs),
        *(f"--patch={path}" for path in patches),
    )
    print(done.stdout, done.stderr)
    if done.returncode and ("apt-get update" in done.stderr or "; there are: " in done.stderr):
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr

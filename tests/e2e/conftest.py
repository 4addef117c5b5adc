# SPDX-License-Identifier: GPL-2.0-only
"""Real kernels for the tests: fetched once, kept in the user's cache."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import newer_qemu
from cli import PATCH, built
from runs import NapiRun, command, fetched


@pytest.fixture(scope="session")
def kernel_6_12():
    return fetched("debian:6.12")


@pytest.fixture(scope="session")
def kernel_6_1():
    return fetched("debian:6.1")


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """Build 6.12 without preemption, and the same with the fix; both are kept in the cache."""
    folder = tmp_path_factory.mktemp("images")
    images = {"before": folder / "before.img", "after": folder / "after.img"}
    built("debian:6.12", images["before"])
    built("debian:6.12", images["after"], patches=[PATCH])
    return images


@pytest.fixture(scope="session")
def with_igb():
    """Return the environment in which QEMU is one that has an igb: the host's, or a fetched one."""
    return newer_qemu.environment((8, 0))


@pytest.fixture
def doctored(kernel_6_12, tmp_path):
    """Make a copy of a real kernel whose config file says something else."""

    def make(**options):
        image = tmp_path / "bzImage"
        image.write_bytes(kernel_6_12.image.read_bytes())
        text = Path(kernel_6_12.config.source).read_text()
        for name, value in options.items():
            text = re.sub(rf"^CONFIG_{name}=.*$", f"CONFIG_{name}={value}", text, flags=re.M)
        (tmp_path / "bzImage.config").write_text(text)
        return image

    return make


@pytest.fixture
def napi(tmp_path):
    """Run pytest with the plugin, as a user does, and return what came of it."""

    def run(*arguments, source=None, timeout=600, env=None):
        if source is not None:
            (tmp_path / "test_it.py").write_text(source)
        done = subprocess.run(
            command(tmp_path, *arguments),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**os.environ, **(env or {})},
        )
        print(done.stdout, done.stderr)
        return NapiRun(done, tmp_path)

    return run

# SPDX-License-Identifier: GPL-2.0-only
"""No guest outlives pytest, however it dies; what was measured until Ctrl-C is shown."""

import os
import signal
import subprocess
import time

import pytest

from runs import NapiRun, command, qemus

# A window long enough that it is certainly under way when the run is ended.
LONG = """
from pathlib import Path

def test_it(reentry_load, netdev_deletion, bounds):
    with reentry_load(cpu=0, seconds=120) as load:
        Path("loaded").touch()
        netdev_deletion(seconds=100)
"""


@pytest.fixture
def running(tmp_path, kernel_6_12):
    """Start a test and return its process when it measures under load."""
    (tmp_path / "test_it.py").write_text(LONG)
    process = subprocess.Popen(
        # The size of the memory tells this run's QEMU from others.
        command(
            tmp_path, f"--kernel=k={kernel_6_12.image}", "--napi-memory=499M", "--napi-preempt=full"
        ),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # A shell that runs these tests in the background has SIGINT ignored, for us and ours.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "loaded").exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(4)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_kill_9_leaves_no_qemu_within_a_second(running, tmp_path):
    assert qemus("499M")
    os.kill(running.pid, signal.SIGKILL)
    killed = time.monotonic()
    while qemus("499M") and time.monotonic() < killed + 10:
        time.sleep(0.01)
    assert time.monotonic() - killed < 1
    assert not [path for path in tmp_path.rglob("*") if path.is_socket()]


def test_ctrl_c_leaves_none_and_prints_what_was_measured(running, tmp_path):
    os.killpg(running.pid, signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    print(out)
    assert qemus("499M") == []
    assert running.returncode == 2
    assert "netdev_deletion, seconds" in out
    assert "interrupted" in out
    (test,) = NapiRun(subprocess.CompletedProcess([], 2, out, ""), tmp_path).tests
    assert test["outcome"] == "interrupted"
    assert test["results"][0]["measurement"]["loaded"]["samples"]
    assert not test["results"][0]["complete"]

# SPDX-License-Identifier: GPL-2.0-only
import signal
import subprocess
import sys
import time
from pathlib import Path

PARENT = """
import subprocess, sys, time
from pytest_napi.machine.tether import tethered
child = subprocess.Popen(tethered(["sleep", "60"]), start_new_session=True)
print(child.pid, flush=True)
time.sleep(60)
"""


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # a dead child waits for init to take note


def until(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_child_dies_with_its_parent_however_that_dies():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    until(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n")
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not alive(child))
    parent.stdout.close()

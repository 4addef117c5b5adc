# SPDX-License-Identifier: GPL-2.0-only
"""The guest's commands on real kernels, over each kind of channel."""

import pytest

from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.emulator import find_emulator, probe
from runs import fetched


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_the_guest_that_probes_an_accelerator_runs(board):
    assert probe(find_emulator(board), board, "tcg") is None


COMMANDS = """
import subprocess

import pytest


def test_commands(guest):
    done = guest.run(["sh", "-c", "cat; echo err >&2; exit 3"], input=bytes(range(256)) * 64)
    assert (done.returncode, done.stdout, done.stderr) == (3, bytes(range(256)) * 64, b"err\\n")
    assert guest.run(["sh", "-c", "kill -9 $$"]).returncode == -9
    assert guest.run(["sh", "-c", "echo $A; pwd"], env={"A": "b", "PATH": "/bin"}, cwd="/tmp",
                     text=True).stdout == "b\\n/tmp\\n"
    mask = guest.run(["taskset", "-p", "0"], text=True, cpu=1).stdout
    assert "Cpus_allowed_list:\\t1" in guest.run(
        ["grep", "Cpus_allowed_list", "/proc/self/status"], text=True, cpu=1).stdout
    with pytest.raises(subprocess.TimeoutExpired):
        guest.run(["sleep", "100"], timeout=0.5)
    with pytest.raises(FileNotFoundError):
        guest.run(["no-such-program"])
    with pytest.raises(subprocess.CalledProcessError):
        guest.run(["false"], check=True)


def test_files(guest):
    content = bytes(range(256)) * 4096
    guest.write_bytes("/tmp/file", content, mode=0o600)
    assert guest.read_bytes("/tmp/file") == content
    guest.write_text("/proc/sys/kernel/hung_task_timeout_secs", "33\\n")
    assert guest.read_text("/proc/sys/kernel/hung_task_timeout_secs") == "33\\n"
    with pytest.raises(FileNotFoundError):
        guest.read_bytes("/nowhere")


def test_several_at_once(guest):
    sleepers = [guest.start(["sleep", "100"]) for _ in range(8)]
    flood = guest.start(["sh", "-c", "head -c 3000000 /dev/zero"])
    assert guest.run(["echo", "hi"], text=True).stdout == "hi\\n"
    assert len(flood.communicate()[0]) == 3_000_000
    for sleeper in sleepers:
        sleeper.kill()
        assert sleeper.wait() == -9


def test_the_log_is_not_the_channel(guest):
    guest.run(["sh", "-c", "for i in $(seq 300); do echo line $i > /dev/kmsg; echo $i; done"])
    assert guest.run(["echo", "still"], text=True).stdout == "still\\n"
"""


@pytest.mark.parametrize("channel", ["virtio", "serial"])
def test_commands(napi, doctored, channel):
    image = doctored(VIRTIO_CONSOLE="y" if channel == "virtio" else "n")
    run = napi(f"--kernel=k={image}", "--napi-preempt=full", source=COMMANDS)
    assert run.status == 0
    assert {test["outcome"] for test in run.tests} == {"passed"}
    assert len(run.tests) == 4


TRIVIAL = "def test_it(guest): assert guest.run(['uname', '-r']).returncode == 0\n"


def test_a_model_that_cannot_be_had_is_a_skip_with_its_reason(napi, kernel_6_12):
    run = napi("--kernel=k=debian:6.12", "--napi-preempt=lazy", "-rs", source=TRIVIAL)
    assert "1 skipped" in run.out
    assert "preempt=lazy: k can be booted with preemption none, voluntary, full only" in run.out


def test_a_kernel_in_split_packages(napi):
    kernel = fetched("debian:7.3")
    run = napi("--kernel=k=debian:7.3", "--napi-preempt=none,lazy", "-rs", source=TRIVIAL)
    assert run.status == 0
    assert "1 passed, 1 skipped" in run.out
    assert "preempt=none: " in run.out
    (test,) = run.tests
    assert (test["guest"]["release"], test["guest"]["preemption"]) == (kernel.release, "lazy")


def test_a_kernel_whose_config_is_unknown_is_asked(napi, kernel_6_12, tmp_path):
    image = tmp_path / "alone" / "bzImage"
    image.parent.mkdir()
    image.write_bytes(kernel_6_12.image.read_bytes())
    run = napi(f"--kernel=k={image}", "-v", source=TRIVIAL)
    assert run.status == 0
    assert "test_it[k-default]" in run.out
    (test,) = run.tests
    assert test["guest"]["preemption"] == "voluntary"
    assert "/sys/kernel/debug/sched/preempt" in test["guest"]["preemption_evidence"]

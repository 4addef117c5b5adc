# SPDX-License-Identifier: GPL-2.0-only
"""A lost guest is an error of its one test, with the right blame, and the next gets a fresh one."""

import os
import signal
import time

import pytest

from pytest_napi.errors import GuestLost
from pytest_napi.guest.guest import Guest
from pytest_napi.machine.argv import MachineConfig
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.emulator import find_emulator
from pytest_napi.machine.kernel_log import load_signatures
from pytest_napi.machine.machine import Machine
from pytest_napi.shipped import shipped
from runs import qemus

LOSSES = """
import os, signal

def test_panic(guest):
    guest.write_text("/proc/sysrq-trigger", "c")
    guest.run(["true"])

def test_qemu_crash(guest, napi_test):
    os.kill(napi_test.booted.machine.pid, signal.SIGSEGV)
    guest.run(["true"])

def test_power_off(guest):
    guest.run(["poweroff", "-f"])

def test_next_is_fresh(guest):
    assert guest.run(["true"]).returncode == 0
"""


def test_each_loss_costs_one_test_and_is_named(napi):
    run = napi("--kernel=k=debian:6.12", "-v", source=LOSSES)
    assert run.status == 1
    outcomes = {t["nodeid"].partition("::")[2].partition("[")[0]: t for t in run.tests}
    assert {name: test["outcome"] for name, test in outcomes.items()} == {
        "test_panic": "lost",
        "test_qemu_crash": "lost",
        "test_power_off": "lost",
        "test_next_is_fresh": "passed",
    }
    assert "Kernel panic - not syncing: sysrq triggered crash" in outcomes["test_panic"]["reason"]
    assert "QEMU died (SIGSEGV)" in outcomes["test_qemu_crash"]["reason"]
    assert "powered off or reset itself" in outcomes["test_power_off"]["reason"]
    assert "1 passed" in run.out
    assert "3 errors" in run.out
    assert "failed" not in run.out.splitlines()[-1]
    assert "Traceback" not in run.out
    assert [splat["kind"] for splat in outcomes["test_panic"]["splats"]][-1] == "panic"


# What the kernel printed when a vCPU of QEMU 7.2 had lost its flags, and how often it is lost.
EMULATOR_DEFECT = """
from pathlib import Path

SPLAT = (
    "Oops: double fault: 0000 [#1] PREEMPT SMP NOPTI",
    "RSP: 0018:ffffc9000006bcd0 EFLAGS: 04b2e342",
)

def defect(guest, times):
    runs = Path(__file__).with_name(f"runs-{times}")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    if len(runs.read_text()) <= times:
        for line in SPLAT:
            guest.write_text("/dev/kmsg", f"{line}\\n")

def test_lost_once(guest):
    defect(guest, 1)

def test_always_lost(guest):
    defect(guest, 99)
"""


def test_one_lost_to_a_defect_of_the_emulator_is_repeated(napi, tmp_path):
    run = napi(
        *("--kernel=k=debian:6.12", "--napi-accel=tcg", f"--napi-artifacts={tmp_path / 'kept'}"),
        source=EMULATOR_DEFECT,
    )
    assert run.status == 1
    assert "1 passed, 1 error" in run.out
    once, always = run.tests
    assert (once["outcome"], always["outcome"]) == ("passed", "lost")
    assert [len(test["notes"]) for test in run.tests] == [1, 2]
    assert once["notes"][0].startswith("run again: guest lost: Oops: double fault: 0000")
    assert "flags that no x86 CPU can have" in once["notes"][0]
    assert f"{once['nodeid']}: {once['notes'][0]}" in run.out
    assert once["splats"] == []
    consoles = sorted(tmp_path.glob("kept/*lost_once*/**/console.log"))
    assert ["EFLAGS: 04b2e342" in path.read_text() for path in consoles] == [True, False]


def test_a_guest_that_does_not_boot_in_time_is_given_up(napi):
    source = "def test_it(guest): pass\n"
    run = napi(
        *("--kernel=k=debian:6.12", "--napi-boot-timeout=0.1", "--napi-fresh=boot"), source=source
    )
    assert run.status == 1
    assert "1 error" in run.out
    (test,) = run.tests
    assert test["outcome"] == "lost"
    assert test["reason"].startswith("guest lost: ")
    assert "Traceback" not in run.out


@pytest.fixture
def machine(kernel_6_12, tmp_path):
    """Boot the real kernel into an initramfs that holds nothing."""
    board = BOARDS["x86_64"]
    nothing = tmp_path / "nothing.cpio"
    nothing.write_bytes(bytes(512))
    config = MachineConfig(
        board=board,
        accelerator="tcg",
        cpus=1,
        memory_mib=256,
        kernel=kernel_6_12.image,
        initramfs=nothing,
        virtio_channel=True,
    )
    signatures = load_signatures(shipped("configs/log-signatures.yaml"))
    with Machine(find_emulator(board), config, tmp_path, signatures) as machine:
        yield machine


def test_a_kernel_that_panics_early_is_lost_long_before_the_timeout(machine):
    guest = Guest(machine.channel, machine.lost)
    begun = time.monotonic()
    with pytest.raises(GuestLost) as caught:
        guest.wait_ready(60)
    assert time.monotonic() - begun < 50
    assert "Kernel panic - not syncing" in str(caught.value)
    assert "Linux version" not in str(caught.value)
    assert "Kernel panic" in caught.value.detail


def test_a_kernel_that_hangs_is_given_up_with_its_last_lines(machine):
    assert machine.log.wait_for("Linux version", timeout=60)
    os.kill(machine.pid, signal.SIGSTOP)
    guest = Guest(machine.channel, machine.lost)
    begun = time.monotonic()
    with pytest.raises(GuestLost, match="guest lost: ") as caught:
        guest.wait_ready(1)
    assert time.monotonic() - begun < 10
    assert "died" not in str(caught.value)
    assert "Linux version" in caught.value.detail


def test_the_machine_leaves_nothing(machine, tmp_path):
    assert qemus(str(tmp_path)) == [machine.pid]
    machine.close()
    assert qemus(str(tmp_path)) == []
    assert not [path for path in tmp_path.rglob("*") if path.is_socket()]
    assert machine.channel.fileno() == -1

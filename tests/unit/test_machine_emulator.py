# SPDX-License-Identifier: GPL-2.0-only
"""Stands in for QEMU with small scripts: which accelerator is chosen when KVM misbehaves."""

import time

import pytest

from pytest_napi.errors import HostUnfit
from pytest_napi.machine import emulator
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.emulator import choose_accelerator, find_emulator

BOARD = BOARDS["x86_64"]


@pytest.fixture
def qemu(tmp_path, monkeypatch):
    """Put a QEMU of a version on PATH that does what a shell script says when it is to run."""

    def make(version="7.2.22", runs="exit 0"):
        program = tmp_path / "bin" / BOARD.qemu
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            "#!/bin/sh\n"
            f'[ "$1" = --version ] && {{ echo "QEMU emulator version {version} (X)"; exit; }}\n'
            f"{runs}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return find_emulator(BOARD)

    return make


@pytest.fixture
def kvm(tmp_path):
    device = tmp_path / "kvm"
    device.touch()
    return device


def test_version(qemu):
    assert str(qemu("10.0.2")) == "QEMU 10.0.2"


def test_too_old(qemu):
    with pytest.raises(HostUnfit, match=r"is QEMU 6\.2\.0, at least 7\.2 .*apt-get install qemu"):
        qemu("6.2.0")


def test_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostUnfit, match="is not installed: apt-get install qemu-system-x86"):
        find_emulator(BOARD)


def test_one_that_does_not_run(qemu):
    with pytest.raises(HostUnfit, match="apt-get install"):
        qemu(version='"; exit 1; echo "')


def test_kvm_that_runs_a_guest_is_taken(qemu, kvm):
    found = qemu(runs=f"exit {BOARD.probe.status}")
    assert choose_accelerator("auto", found, BOARD, kvm).name == "kvm"


def test_kvm_that_aborts_is_not(qemu, kvm):
    found = qemu(runs="echo 'KVM internal error. Suberror: 1' >&2; kill -ABRT $$")
    chosen = choose_accelerator("auto", found, BOARD, kvm)
    assert chosen.name == "tcg"
    assert "KVM internal error" in chosen.reason


def test_kvm_that_interprets_its_guest_is_not(qemu, kvm):
    chosen = choose_accelerator("auto", qemu(runs=f"exit {BOARD.probe.slow}"), BOARD, kvm)
    assert chosen.name == "tcg"
    assert "interprets" in chosen.reason


def test_kvm_that_hangs_is_given_up_in_seconds(qemu, kvm, monkeypatch):
    assert emulator.PROBE_SECONDS < 3
    monkeypatch.setattr(emulator, "PROBE_SECONDS", 0.2)
    hanging = qemu(runs="exec sleep 60")
    begun = time.monotonic()
    chosen = choose_accelerator("auto", hanging, BOARD, kvm)
    assert time.monotonic() - begun < 3
    assert chosen.name == "tcg"
    assert "did not run within" in chosen.reason


def test_kvm_that_ends_as_if_all_were_well_is_not_believed(qemu, kvm):
    assert choose_accelerator("auto", qemu(runs="exit 0"), BOARD, kvm).name == "tcg"


def test_no_device(qemu, tmp_path):
    chosen = choose_accelerator("auto", qemu(), BOARD, tmp_path / "none")
    assert (chosen.name, chosen.reason) == ("tcg", f"no usable KVM: no {tmp_path / 'none'}")


def test_kvm_that_is_demanded_and_cannot_be_had(qemu, tmp_path):
    with pytest.raises(HostUnfit, match="use --napi-accel=tcg"):
        choose_accelerator("kvm", qemu(), BOARD, tmp_path / "none")

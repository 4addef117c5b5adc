# SPDX-License-Identifier: GPL-2.0-only
"""The cache of saved guests: what makes another one, and what is removed."""

import os
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from pytest_napi.errors import GuestLost
from pytest_napi.guest import templates as module
from pytest_napi.guest.boot import BootConfig
from pytest_napi.guest.templates import Templates, template_key
from pytest_napi.machine.argv import MachineConfig
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.control import ControlError
from pytest_napi.machine.emulator import Accelerator, Emulator

KERNEL = SimpleNamespace(image=None)


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A machine whose files are there; nothing of it is booted."""
    for name in ("qemu", "kernel", "initramfs"):
        (tmp_path / name).write_text(name)

    def machine(kernel, config, image):
        return MachineConfig(
            board=BOARDS["x86_64"],
            accelerator=config.accelerator.name,
            cpus=config.cpus,
            memory_mib=config.memory_mib,
            kernel=tmp_path / "kernel",
            initramfs=image,
            virtio_channel=True,
            boot_parameters=(f"preempt={config.model}",),
        )

    monkeypatch.setattr(KERNEL, "image", tmp_path / "kernel")
    monkeypatch.setattr(module, "machine_config", machine)
    monkeypatch.setattr(module, "guest_image", lambda kernel, cache, nics: tmp_path / "initramfs")
    emulator = Emulator(tmp_path / "qemu", (7, 2, 22))
    return BootConfig(emulator, Accelerator("tcg", ""), tmp_path, memory_mib=1)


class Guest:
    """A guest of which only the life is followed."""

    def __init__(self, log, restored=False, splats=(), refusal=None):
        self.log = log
        self.restored = restored
        self.notes = []
        self.guest = SimpleNamespace(run=lambda argv, check: None)
        self.machine = SimpleNamespace(
            log=SimpleNamespace(splats=lambda: list(splats)),
            wait_idle=lambda: None,
            save=self.save,
        )
        self.refusal = refusal

    def save(self, snapshot):
        if self.refusal:
            raise self.refusal
        snapshot.memory.write_bytes(bytes(1 << 20))
        snapshot.state.write_bytes(b"state")
        self.log.append("saved")

    def wake(self):
        self.log.append("resumed")

    def take_over(self):
        self.log.append("taken over")

    def close(self):
        self.log.append("closed")


@pytest.fixture
def machines(monkeypatch):
    """Let QEMU be a log of what would be done with it."""
    made = SimpleNamespace(log=[], splats=(), refusal=None, broken=0, deaf=0, notes=[])

    def boot(kernel, config, folder, *, saveable=False):
        made.log.append("booted")
        guest = Guest(made.log, splats=made.splats, refusal=made.refusal)
        guest.notes += made.notes
        return guest

    def restore(kernel, config, folder, snapshot):
        if made.broken:
            made.broken -= 1
            raise GuestLost("guest lost: QEMU died")
        made.log.append("restored")
        guest = Guest(made.log, restored=True)
        if made.deaf:
            made.deaf -= 1
            guest.take_over = deaf
        return guest

    def deaf():
        raise GuestLost("guest lost: the guest's agent did not report in 60 s")

    monkeypatch.setattr(module, "boot", boot)
    monkeypatch.setattr(module, "restore", restore)
    return made


@pytest.fixture
def templates(tmp_path):
    return Templates(tmp_path / "templates", 4096, print)


def test_the_first_guest_is_saved_and_the_others_are_copies(templates, machines, config, tmp_path):
    guests = [templates.guest(KERNEL, config, tmp_path) for _ in range(3)]
    assert [guest.restored for guest in guests] == [False, True, True]
    assert machines.log == ["booted", "saved", "resumed", *["restored", "taken over"] * 2]


def test_another_run_that_saved_it_meanwhile_spares_the_boot(
    templates, machines, config, tmp_path, monkeypatch
):
    @contextmanager
    def locked(folder, say):
        Templates(tmp_path / "templates", 4096, print).guest(KERNEL, config, tmp_path)
        yield

    real = module.locked
    monkeypatch.setattr(
        module, "locked", lambda *_: (monkeypatch.setattr(module, "locked", real), locked(*_))[1]
    )
    assert templates.guest(KERNEL, config, tmp_path).restored
    assert machines.log.count("booted") == 1


def test_a_boot_repeated_is_noted_with_the_test_it_was_for(templates, machines, config, tmp_path):
    machines.notes.append("booted again: guest lost")
    assert templates.guest(KERNEL, config, tmp_path).notes == ["booted again: guest lost"]
    assert templates.guest(KERNEL, config, tmp_path).notes == []


def test_whatever_a_guest_depends_on_makes_another_template(config, tmp_path):
    key = template_key(KERNEL, config)
    assert template_key(KERNEL, config) == key
    for changed in (
        replace(config, cpus=4),
        replace(config, model="full"),
        replace(config, memory_mib=2),
        replace(config, accelerator=Accelerator("kvm", "")),
    ):
        assert template_key(KERNEL, changed) != key
    for name in ("qemu", "kernel", "initramfs"):
        before = template_key(KERNEL, config)
        (tmp_path / name).write_text("another")
        assert template_key(KERNEL, config) != before


def test_one_that_cannot_be_restored_is_made_anew_with_a_note(
    templates, machines, config, tmp_path
):
    templates.guest(KERNEL, config, tmp_path)
    machines.broken = 1
    guest = templates.guest(KERNEL, config, tmp_path)
    assert "could not be restored" in guest.notes[0]
    assert templates.guest(KERNEL, config, tmp_path).notes == []


def test_a_memory_file_cut_off_is_not_used(templates, machines, config, tmp_path):
    templates.guest(KERNEL, config, tmp_path)
    os.truncate(tmp_path / "templates" / template_key(KERNEL, config) / "memory", 1000)
    guest = templates.guest(KERNEL, config, tmp_path)
    assert "cut off" in guest.notes[0]
    assert machines.log.count("booted") == 2


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"refusal": ControlError("nvme is not migratable")}, "nvme is not migratable"),
        ({"refusal": OSError(28, "No space left on device")}, "No space left"),
        ({"splats": [SimpleNamespace(line="WARNING: at x")]}, "the kernel logged 'WARNING: at x'"),
    ],
)
def test_a_guest_that_cannot_be_saved_serves_and_the_next_is_booted(
    machines, config, tmp_path, fault, why
):
    templates = Templates(tmp_path / "templates", 4096, print)
    vars(machines).update(fault)
    guests = [templates.guest(KERNEL, config, tmp_path) for _ in range(2)]
    assert not any(guest.restored for guest in guests)
    assert all(why in guest.notes[0] for guest in guests)
    assert machines.log.count("booted") == 2
    assert "closed" not in machines.log  # they are in use
    assert not [path for path in (tmp_path / "templates").iterdir() if path.name != "making"]


def test_one_that_cannot_be_restored_each_time_costs_boots_and_nothing_else(
    templates, machines, config, tmp_path
):
    machines.broken = 9
    guests = [templates.guest(KERNEL, config, tmp_path) for _ in range(3)]
    assert not any(guest.restored for guest in guests)
    assert [len(guest.notes) for guest in guests] == [0, 1, 1]
    assert machines.log.count("booted") == 3


def test_a_copy_that_does_not_wake_is_replaced_too(templates, machines, config, tmp_path):
    templates.guest(KERNEL, config, tmp_path)
    machines.deaf = 1
    guest = templates.guest(KERNEL, config, tmp_path)
    assert "did not report" in guest.notes[0]
    assert machines.log[-3:] == ["booted", "saved", "resumed"]
    assert templates.guest(KERNEL, config, tmp_path).restored


def test_the_unused_go_first_and_the_last_one_stays(machines, config, tmp_path):
    def saved(config):
        return (tmp_path / "templates" / template_key(KERNEL, config)).exists()

    templates = Templates(tmp_path / "templates", 3, print)  # MiB; a guest takes a little over one
    configs = [replace(config, model=name) for name in ("a", "b", "c")]
    for age, each in enumerate(configs[:2]):
        templates.guest(KERNEL, each, tmp_path)
        os.utime(tmp_path / "templates" / template_key(KERNEL, each), (age, age))
    templates.guest(KERNEL, configs[2], tmp_path)
    assert [saved(each) for each in configs] == [False, True, True]
    templates = Templates(tmp_path / "templates", 0, print)
    templates.guest(KERNEL, configs[0], tmp_path)
    assert [saved(each) for each in configs] == [True, False, False]

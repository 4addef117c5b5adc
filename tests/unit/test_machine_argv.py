# SPDX-License-Identifier: GPL-2.0-only
from dataclasses import replace
from pathlib import Path

from pytest_napi.machine.argv import (
    Descriptors,
    MachineConfig,
    Memory,
    kernel_command_line,
    qemu_argv,
)
from pytest_napi.machine.boards import BOARDS

CONFIG = MachineConfig(
    board=BOARDS["x86_64"],
    accelerator="tcg",
    cpus=2,
    memory_mib=512,
    kernel=Path("/k"),
    initramfs=Path("/i"),
    virtio_channel=True,
    boot_parameters=("preempt=full",),
)
DESCRIPTORS = Descriptors(console=7, channel=8, qmp=9)


def argv(**changes):
    return qemu_argv(Path("/q"), replace(CONFIG, **changes), DESCRIPTORS)


def value(line, flag):
    return line[line.index(flag) + 1]


def test_the_same_config_gives_the_same_command_line():
    assert argv() == argv()
    assert argv()[0] == "/q"


def test_what_was_asked_for_is_there():
    line = argv(cpus=3, memory_mib=256)
    assert (value(line, "-smp"), value(line, "-m")) == ("3", "256M")
    assert (value(line, "-kernel"), value(line, "-initrd")) == ("/k", "/i")
    assert "preempt=full" in value(line, "-append").split()


def test_accelerators_have_their_cpu():
    tcg, kvm = argv(), argv(accelerator="kvm")
    assert (value(tcg, "-accel"), value(tcg, "-cpu")) == ("tcg,thread=multi", "max,-erms,-fsrm")
    assert (value(kvm, "-accel"), value(kvm, "-cpu")) == ("kvm", "host")


def test_nothing_listens():
    assert not [word for word in argv() if "server" in word or "tcp" in word or "path=" in word]


def test_the_console_is_the_first_serial_port():
    line = argv(virtio_channel=False)
    ports = [line[i + 1] for i, word in enumerate(line) if word == "-serial"]
    assert ports == ["chardev:console", "chardev:channel"]
    assert "napi.channel=ttyS1" in value(line, "-append")


def test_a_virtio_channel_needs_no_second_port():
    assert argv().count("-serial") == 1
    assert "napi.channel" not in kernel_command_line(CONFIG)


def test_a_guest_to_be_saved_writes_to_its_file():
    line = qemu_argv(Path("/q"), CONFIG, DESCRIPTORS, Memory(Path("/m"), shared=True))
    assert value(line, "-object").endswith("size=512M,mem-path=/m,share=on")
    assert value(line, "-machine") == "q35,memory-backend=ram"
    assert "-incoming" not in line


def test_a_copy_leaves_the_file_as_it_is_and_waits_for_its_state():
    line = qemu_argv(Path("/q"), CONFIG, DESCRIPTORS, Memory(Path("/a,b"), shared=False))
    assert value(line, "-object").endswith("mem-path=/a,,b,share=off")
    assert value(line, "-incoming") == "defer"

# SPDX-License-Identifier: GPL-2.0-only
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_napi.machine.argv import Descriptors, MachineConfig, qemu_argv
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.nics import (
    BACKENDS,
    NIC_MODELS,
    NicConfig,
    descriptors_of,
    mac_address,
    matrix,
    parse_nic,
    unfit,
)

CONFIG = MachineConfig(
    board=BOARDS["x86_64"],
    accelerator="tcg",
    cpus=2,
    memory_mib=512,
    kernel=Path("/k"),
    initramfs=Path("/i"),
    virtio_channel=True,
)


def argv(*texts, fds=()):
    nics = tuple(map(parse_nic, texts))
    return qemu_argv(Path("/q"), replace(CONFIG, nics=nics), Descriptors(3, 4, 5, fds))


def options(line, flag):
    return [line[at + 1] for at, word in enumerate(line) if word == flag]


def nic_devices(line):
    return [text for text in options(line, "-device") if "netdev=" in text]


def test_a_nic_in_full_and_by_its_model_alone():
    assert parse_nic("igb,queues=2,backend=tap") == NicConfig("igb", 2, "tap")
    assert parse_nic("e1000e") == NicConfig("e1000e", 1, "stream")
    assert str(parse_nic("igb, queues=2")) == "igb,queues=2,backend=stream"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rtl8139", "unknown NIC model 'rtl8139': use virtio-net, igb, e1000e, vmxnet3"),
        ("igb,queues=0", "queues=0"),
        ("igb,queues=x", "queues=x"),
        ("igb,backend=vde", "unknown backend 'vde': use stream, dgram, tap, loop, user"),
        ("igb,speed=10", "'speed=10': a NIC is MODEL"),
        (
            "virtio-net,queues=4",
            "receives on 1 queue over stream, not 4: .* nearest that works is "
            "virtio-net,queues=4,backend=tap",
        ),
        ("vmxnet3,queues=2", "nearest that works is vmxnet3,queues=1,backend=stream"),
        ("igb,queues=9", "receives on 8 queues .* nearest that works is igb,queues=8"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(text, said):
    with pytest.raises(ValueError, match=said):
        parse_nic(text)


def test_what_this_host_cannot_have():
    igb = parse_nic("igb,queues=2")
    assert "needs QEMU 8.0, this is 7.2.5" in unfit(igb, (7, 2, 5), 2)
    assert unfit(igb, (8, 0, 0), 2) is None
    assert "--napi-cpus=4 or queues=2" in unfit(parse_nic("igb,queues=4"), (10, 0, 0), 2)


@pytest.mark.parametrize("model", NIC_MODELS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_combination_has_a_command_line(model, backend):
    nic = NicConfig(model, NIC_MODELS[model].queues[backend], backend)
    fds = tuple(range(10, 10 + descriptors_of(nic)))
    line = argv(str(nic), fds=(fds,))
    ends = 2 if backend == "loop" else 1
    assert len(options(line, "-netdev")) == len(nic_devices(line)) == ends
    assert all(f"{fd}" in options(line, "-netdev")[0] for fd in fds)
    assert mac_address(0) in nic_devices(line)[0]
    assert all("romfile=" in device for device in nic_devices(line))


def test_several_nics_share_neither_address_nor_port():
    line = argv("igb,backend=loop", "igb", "virtio-net", fds=((), (10,), (11,)))
    macs = [
        word for device in nic_devices(line) for word in device.split(",") if word.startswith("mac")
    ]
    assert len(set(macs)) == 4
    chassis = [text for text in options(line, "-device") if text.startswith("pcie-root-port")]
    assert len(set(chassis)) == 3


def test_a_tap_has_a_descriptor_a_queue():
    line = argv("virtio-net,queues=2,backend=tap", fds=((10, 11),))
    assert options(line, "-netdev") == ["tap,id=nic0,fds=10:11"]
    assert "mq=on,vectors=6" in nic_devices(line)[0]


def test_the_matrix_in_the_documentation_is_that_of_the_data():
    page = Path(__file__).resolve().parents[2] / "docs" / "nics.md"
    assert matrix() in page.read_text(), "docs/nics.md: put in what machine.nics.matrix() returns"

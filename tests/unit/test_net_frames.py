# SPDX-License-Identifier: GPL-2.0-only
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_napi.net.frames import FrameSpec, build

MAC = "52:54:00:6e:00:00"
ENDS = {
    "udp4": {"source": "10.0.0.1", "destination": "10.0.0.2"},
    "udp6": {"source": "fd00::1", "destination": "fd00::2"},
    "raw": {},
}


def spec(protocol="udp4", **changes):
    return FrameSpec(MAC, protocol=protocol, **ENDS[protocol], **changes)


def ones_complement(data):
    """Sum as RFC 1071 does: 0xffff over what holds its own checksum."""
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@given(st.integers(64, 1514), st.integers(1, 8))
def test_udp4_frames_are_what_a_stack_accepts(size, flows):
    frames = build(spec(size=size, flows=flows))
    assert [len(frame) for frame in frames] == [size] * flows
    for frame in frames:
        ip, udp = frame[14:34], frame[34:]
        assert frame[:6] == bytes.fromhex(MAC.replace(":", ""))
        assert frame[12:14] == b"\x08\x00"
        assert int.from_bytes(ip[2:4], "big") == size - 14
        assert int.from_bytes(udp[4:6], "big") == size - 34 == len(udp)
        assert ones_complement(ip) == 0xFFFF
        pseudo = ip[12:20] + b"\0\x11" + udp[4:6]
        assert ones_complement(pseudo + udp) == 0xFFFF


@given(st.integers(62, 1514))
def test_udp6_frames_are_what_a_stack_accepts(size):
    (frame,) = build(spec("udp6", size=size, flows=1))
    ip, udp = frame[14:54], frame[54:]
    assert len(frame) == size
    assert frame[12:14] == b"\x86\xdd"
    assert ip[24:40] == ipaddress.ip_address("fd00::2").packed
    assert int.from_bytes(ip[4:6], "big") == len(udp)
    pseudo = ip[8:40] + len(udp).to_bytes(4, "big") + b"\0\0\0\x11"
    assert ones_complement(pseudo + udp) == 0xFFFF


def test_flows_differ_in_what_a_nic_hashes():
    assert len({frame[34:36] for frame in build(spec(flows=64))}) == 64
    assert len({frame[6:12] for frame in build(spec("raw", flows=64))}) == 64


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"size": 59}, "59 bytes: udp4 takes 60 to 1514"),
        ({"size": 1515}, "1515 bytes"),
        ({"flows": 0}, "flows=0"),
        ({"flows": 60_000}, "flows=60000"),
    ],
)
def test_frames_that_cannot_be(wrong, said):
    with pytest.raises(ValueError, match=said):
        build(spec(**wrong))


def test_an_unknown_protocol_lists_the_known():
    with pytest.raises(ValueError, match="use udp4, udp6, raw"):
        build(FrameSpec(MAC, protocol="sctp"))

# SPDX-License-Identifier: GPL-2.0-only
from types import SimpleNamespace

import pytest

from pytest_napi.guest.ethtool import Ethtool, NicError

RINGS = """Ring parameters for eth0:
Pre-set maximums:
RX:		4096
RX Mini:	n/a
TX:		4096
Current hardware settings:
RX:		256
RX Mini:	n/a
TX:		256
"""
VMXNET3 = """NIC statistics:
     Tx Queue#: 0
       ucast pkts tx: 7
     Rx Queue#: 0
       ucast pkts rx: 5
       mcast pkts rx: 2
       pkts rx OOB: 3
     Rx Queue#: 1
       ucast pkts rx: 0
       pkts rx OOB: 4
     tx timeout count: 0
"""


class FakeGuest:
    """Answers ethtool by its flag."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def run(self, argv, text):
        assert text
        self.asked.append(argv[1:])
        answer = self.answers.get(argv[1].strip("-"), "")
        if isinstance(answer, Exception):
            return SimpleNamespace(returncode=1, stdout="", stderr=str(answer))
        return SimpleNamespace(returncode=0, stdout=answer, stderr="")


def test_what_is_and_what_could_be_are_told_apart():
    ethtool = Ethtool(FakeGuest(g=RINGS), "eth0")
    assert ethtool.rings() == {"rx": 256, "tx": 256}
    assert ethtool.largest_rings() == {"rx": 4096, "tx": 4096}


def test_a_change_that_changes_nothing_is_not_made():
    guest = FakeGuest(g=RINGS)
    Ethtool(guest, "eth0").set_rings(rx=256)
    assert ["-G", "eth0", "rx", "256"] not in guest.asked
    Ethtool(guest, "eth0").set_rings(rx=512)
    assert ["-G", "eth0", "rx", "512"] in guest.asked


@pytest.mark.parametrize(
    ("said", "queues"),
    [
        ("     rx_queue_0_packets: 3\n     rx_queue_1_packets: 4\n     rx_packets: 7\n", [3, 4]),
        ("     rx0_packets: 3\n     tx0_packets: 9\n", [3]),
        (VMXNET3, [7, 0]),
        ("     rx_packets: 7\n", []),
    ],
)
def test_frames_by_queue(said, queues):
    assert Ethtool(FakeGuest(S=said), "eth0").queue_packets() == dict(enumerate(queues))


def test_a_counter_of_each_queue_is_summed():
    assert Ethtool(FakeGuest(S=VMXNET3), "eth0").statistics()["pkts rx OOB"] == 7


def test_a_refusal_is_one_line():
    refusal = RuntimeError("netlink error:\nOperation not supported\n")
    with pytest.raises(NicError, match="ethtool -l eth0: netlink error: Operation not supported"):
        Ethtool(FakeGuest(l=refusal), "eth0").channels()

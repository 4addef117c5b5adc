# SPDX-License-Identifier: GPL-2.0-only
"""ethtool(8) in the guest: what a NIC's driver counts, and what can be set there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from pytest_napi.errors import NapiError
from pytest_napi.guest.guest import Guest
from pytest_napi.untrusted import printable

_ROW = re.compile(r"^\s*(.+?):\s*(-?\d+)\s*$", re.MULTILINE)
_CURRENT = "Current hardware settings:"

_QUEUE = re.compile(r"rx_?(?:queue_)?(\d+)_packets")
"""igb, and virtio-net up to 6.9, name it ``rx_queue_0_packets``; others ``rx0_packets``."""

_VMXNET3 = ("ucast pkts rx", "mcast pkts rx", "bcast pkts rx")
"""vmxnet3 heads each queue's counters with ``Rx Queue#: 0``, and names them alike."""


class NicError(NapiError):
    """A NIC does not do what was asked of it; the message says which, and what it answered."""


class Ethtool:
    """One device's settings and counters.

    Names are ethtool's own, in lower case with ``_`` for everything else: ``rx``, ``combined``,
    ``rx_usecs``.  Every method raises NicError when the driver refuses.
    """

    def __init__(self, guest: Guest, device: str) -> None:
        self._guest = guest
        self._device = device

    def statistics(self) -> dict[str, int]:
        """Return the driver's own counters (``ethtool -S``) under its own names.

        A name that every queue has is the sum over the queues.
        """
        found: Counter[str] = Counter()
        for name, value in _ROW.findall(self._say("-S")):
            found[name] += int(value)
        return found

    def queue_packets(self) -> dict[int, int]:
        """Return the frames each RX queue has received, as far as the driver counts them."""
        found: dict[int, int] = {}
        queue = None
        for name, value in _ROW.findall(self._say("-S")):
            match = _QUEUE.fullmatch(name)
            if match is not None:
                found[int(match[1])] = int(value)
            elif name == "Rx Queue#":
                queue = int(value)
                found[queue] = 0
            elif queue is not None and name in _VMXNET3:
                found[queue] += int(value)
        return found

    def channels(self) -> dict[str, int]:
        """Return the channels in use (``ethtool -l``): ``rx``, ``tx``, ``other``, ``combined``."""
        return self._settings("-l")

    def set_channels(self, **channels: int) -> None:
        """Set channels, e.g. ``combined=2``; nothing is done when they are so already."""
        self._change("-L", self.channels(), channels)

    def rings(self) -> dict[str, int]:
        """Return the descriptors of each ring (``ethtool -g``): ``rx``, ``tx``, …"""
        return self._settings("-g")

    def largest_rings(self) -> dict[str, int]:
        """Return what ``rings`` could be at most."""
        return _rows(self._say("-g").partition(_CURRENT)[0])

    def set_rings(self, **rings: int) -> None:
        """Set rings, e.g. ``rx=1024``; nothing is done when they are so already."""
        self._change("-G", self.rings(), rings)

    def coalescing(self) -> dict[str, int]:
        """Return the interrupt coalescing (``ethtool -c``): ``rx_usecs``, ``rx_frames``, …"""
        return self._settings("-c")

    def set_coalescing(self, **settings: int) -> None:
        """Set interrupt coalescing, e.g. ``rx_usecs=50``; nothing is done when it is so already."""
        self._change("-C", self.coalescing(), settings)

    def rx_hash(self, flow_type: str) -> str:
        """Return what RX queues are chosen by for ``flow_type`` (``udp4``), in ethtool's words."""
        return self._say("-n", "rx-flow-hash", flow_type).strip()

    def set_rx_hash(self, flow_type: str, fields: str) -> None:
        """Choose RX queues of ``flow_type`` by ``fields``: ``sdfn`` is addresses and ports."""
        self._say("-N", "rx-flow-hash", flow_type, fields)

    def _settings(self, flag: str) -> dict[str, int]:
        said = self._say(flag)
        # Two lists of the same names: what could be, and what is.
        return _rows(said.partition(_CURRENT)[2] or said)

    def _change(self, flag: str, now: Mapping[str, int], wanted: Mapping[str, int]) -> None:
        # ethtool calls a change that changes nothing a failure.
        if any(now.get(name) != value for name, value in wanted.items()):
            words = [(name.replace("_", "-"), str(value)) for name, value in wanted.items()]
            self._say(flag, *(word for pair in words for word in pair))

    def _say(self, flag: str, *words: str) -> str:
        done = self._guest.run(["ethtool", flag, self._device, *words], text=True)
        if done.returncode:
            told = " ".join(["ethtool", flag, self._device, *words])
            answer = printable(done.stderr).strip() or f"status {done.returncode}"
            raise NicError(f"{told}: {' '.join(answer.split())}")
        return done.stdout


def _rows(text: str) -> dict[str, int]:
    return {re.sub(r"\W+", "_", name.lower()): int(value) for name, value in _ROW.findall(text)}

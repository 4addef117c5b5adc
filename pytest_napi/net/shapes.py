# SPDX-License-Identifier: GPL-2.0-only
"""Shapes of traffic: when how many frames are due.

Pure functions of time, which the generator's process follows; it imports next to nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

Burst = tuple[float, int]
"""When it is due, in seconds from the start (0: at once), and its frames."""

BURST = 16
"""Frames sent at once: 1250 bursts a second at 20 000 frames/s, which Python's timers can hold."""


@dataclass(frozen=True)
class Flood:
    """As many frames as the guest takes."""

    batch: int = 64
    """Frames a system call."""

    @property
    def pps(self) -> float | None:
        """Frames a second that are asked for; None: as many as there can be."""
        return None

    def bursts(self) -> Iterator[Burst]:
        """Yield the bursts without end."""
        while True:
            yield 0.0, self.batch


@dataclass(frozen=True)
class Paced:
    """A constant rate."""

    pps: float
    """Frames a second."""
    burst: int = BURST
    jitter: float = 0.0
    """How far each burst is moved at random, as a share of the time between two (0 to 1): the mean
    rate is kept, and the same shape gives the same times."""

    def bursts(self) -> Iterator[Burst]:
        """Yield the bursts without end."""
        period = self.burst / self.pps
        moved = random.Random(0)
        number = 0
        while True:
            yield (number + self.jitter * moved.random()) * period, self.burst
            number += 1


@dataclass(frozen=True)
class Ramp:
    """A rate that grows, or falls, and then stays."""

    start_pps: float
    end_pps: float
    seconds: float
    """How long it takes from one to the other."""
    burst: int = BURST

    @property
    def pps(self) -> float | None:
        """None: no one rate is asked for."""
        return None

    def bursts(self) -> Iterator[Burst]:
        """Yield the bursts without end."""
        due = 0.0
        while True:
            yield due, self.burst
            share = min(due / self.seconds, 1.0)
            due += self.burst / (self.start_pps + share * (self.end_pps - self.start_pps))


@dataclass(frozen=True)
class OnOff:
    """A constant rate for ``on`` seconds, then silence for ``off`` seconds, over and over."""

    on_pps: float
    on: float
    off: float
    burst: int = BURST

    @property
    def pps(self) -> float | None:
        """Frames a second on average over whole periods."""
        return self.on_pps * self.on / (self.on + self.off)

    def bursts(self) -> Iterator[Burst]:
        """Yield the bursts without end."""
        period = self.burst / self.on_pps
        each = max(int(self.on / period), 1)
        number = 0
        while True:
            cycle, within = divmod(number, each)
            yield cycle * (self.on + self.off) + within * period, self.burst
            number += 1


Shape = Flood | Paced | Ramp | OnOff
_KINDS: Mapping[str, type[Shape]] = {kind.__name__: kind for kind in (Flood, Paced, Ramp, OnOff)}


def check(shape: Shape) -> None:
    """Raise ValueError for a shape whose figures make no sense."""
    for name, value in asdict(shape).items():
        if name in ("jitter", "off", "start_pps"):
            fits = value >= 0 and (name != "jitter" or value <= 1)
        else:
            fits = value > 0
        if not fits or (name == "burst" and value > 4096):
            raise ValueError(f"{type(shape).__name__}: {name}={value} makes no sense")
    if isinstance(shape, Ramp) and shape.start_pps == 0:
        raise ValueError("Ramp: start_pps=0 never begins: start above 0")


def to_plain(shape: Shape) -> dict[str, object]:
    """Return ``shape`` as JSON takes it."""
    return {"kind": type(shape).__name__, **asdict(shape)}


def from_plain(plain: dict[str, object]) -> Shape:
    """Return the shape ``to_plain`` made this of."""
    kind = _KINDS[str(plain.pop("kind"))]
    return kind(**plain)  # type: ignore[arg-type]  # what to_plain wrote

# SPDX-License-Identifier: GPL-2.0-only
"""``debian:VERSION``: the newest Debian kernel of a version, fetched with the host's apt.

The kernel is Debian's cloud flavour: all that a virtual machine needs, and it boots fastest.  The
answer to each version is remembered, so the second time no apt runs; it is asked again when a day
has passed, unless the version names one kernel (6.12.117).  What was fetched once is used whenever
apt cannot answer: offline, or after the mirror dropped it.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_napi.errors import HostUnfit, KernelUnusable
from pytest_napi.kernel import store, unpacked
from pytest_napi.kernel.apt import Apt
from pytest_napi.kernel.architecture import Architecture
from pytest_napi.kernel.naming import kernel_name, other_parts, pointed_to

_FLAVOUR = "cloud"
_ANSWERS = "answers"
_DAY = 24 * 3600.0
# A version that an index lacks may have come since, and a failure may be over: then ask again.
_SOON = 600.0

_VERSION = re.compile(r"\d+(?:\.\d+)*")
_FULL_VERSION = 3  # components: 6.12.117 is one kernel, 6.12 a series


@dataclass(frozen=True)
class Offer:
    """A kernel in Debian's indexes: the packages (name -> version) that together are one.

    ``missing`` names those of them that the mirror does not have: it drops linux-modules and
    linux-base of an old kernel, and keeps linux-image.
    """

    name: str
    version: str
    packages: Mapping[str, str]
    missing: tuple[str, ...] = ()

    @property
    def upstream(self) -> tuple[int, ...]:
        """The kernel's own version, e.g. (6, 12, 117)."""
        return components(self.version)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Fetched:
    """A fetched kernel: its image, and the package it is from."""

    image: Path
    package: str


@dataclass(frozen=True)
class _Answer:
    """What a version was resolved to: the package, the unpacked folder, and when (Unix time)."""

    package: str
    folder: str
    asked: float


def components(version: str) -> tuple[int, ...]:
    """Return the numbers a version starts with: "6.12.117-1~deb12u1" gives (6, 12, 117)."""
    match = _VERSION.match(version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def matches(offer: Offer, wanted: Sequence[int]) -> bool:
    """Tell whether the offer is of the wanted version: 6.1 is not 6.12."""
    return offer.upstream[: len(wanted)] == tuple(wanted)


def offers(stanzas: str, architecture: Architecture) -> list[Offer]:
    """Return the kernels in the output of ``apt-cache show``, newest first."""
    from pytest_napi.kernel import control  # noqa: PLC0415 - see there

    packages = list(control.stanzas(stanzas))
    present = {(package["Package"], package["Version"]) for package in packages}
    found: dict[tuple[str, str], Offer] = {}
    for package in packages:
        name, version = str(package["Package"]), str(package["Version"])
        kernel = kernel_name(name)
        if kernel is None or kernel.part != "image" or not name.endswith(_ending(architecture)):
            continue
        depends = control.depends(package)
        if pointed_to(name, depends) is not None:
            continue  # the meta package of one series
        parts = other_parts(name, depends) or [name]
        missing = tuple(part for part in parts if (part, version) not in present)
        found[name, version] = Offer(name, version, dict.fromkeys(parts, version), missing)
    return sorted(found.values(), key=lambda offer: control.Version(offer.version), reverse=True)


def _ending(architecture: Architecture) -> str:
    return f"-{_FLAVOUR}-{architecture.debian}"


def newest_of_each_series(found: Iterable[Offer]) -> list[str]:
    """Return "6.1.176", "6.12.118" … in order; ``found`` is newest first."""
    series: dict[tuple[int, ...], tuple[int, ...]] = {}
    for offer in found:
        if not offer.missing:
            series.setdefault(offer.upstream[:2], offer.upstream)
    return [".".join(map(str, version)) for _, version in sorted(series.items())]


def fetch(
    version: str, architecture: Architecture, cache: Path, progress: Callable[[str], None]
) -> Fetched:
    """Return the newest Debian kernel of ``version`` ("6.12"), fetching it if need be.

    Raises KernelUnusable if there is none, with those there are, and HostUnfit if it cannot be
    fetched and has not been before.
    """
    wanted = components(version)
    if not _VERSION.fullmatch(version):
        raise KernelUnusable(f"debian:{version}: not a version; give one like debian:6.12")
    folder = cache / "debian" / architecture.debian
    memo = folder / _ANSWERS / version
    answer = _remembered(memo)
    kept = _image(answer, cache)
    if answer and kept and (_is_recent(answer) or len(wanted) >= _FULL_VERSION):
        return kept
    with store.locked(folder, progress):
        answer = _remembered(memo)  # another run may have asked meanwhile
        kept = _image(answer, cache)
        if answer and kept and _is_recent(answer):
            return kept
        fresh = False
        try:
            fetcher = _Fetcher(folder, architecture, cache, progress)
            fetched = fetcher.fetch(version)
            fresh = fetcher.fresh
        except (HostUnfit, KernelUnusable) as error:
            if kept is None:
                raise
            progress(f"debian:{version}: using {kept.package}, fetched earlier: {error}")
            fetched = kept
        asked = time.time() if fresh else time.time() - _DAY + _SOON
        new = _Answer(fetched.package, fetched.image.parent.name, asked)
        store.remember(memo, json.dumps(asdict(new)))
        return fetched


def _remembered(memo: Path) -> _Answer | None:
    with suppress(ValueError, TypeError):
        return _Answer(**json.loads(store.read_text(memo) or ""))
    return None


def _image(answer: _Answer | None, cache: Path) -> Fetched | None:
    if answer is None:
        return None
    image = unpacked.image_of(unpacked.folder_of(cache, answer.folder))
    return Fetched(image, answer.package) if image else None


def _is_recent(answer: _Answer) -> bool:
    return 0 <= time.time() - answer.asked < _DAY


class _Fetcher:
    """Fetches with apt; the lock on its folder is held."""

    def __init__(
        self,
        folder: Path,
        architecture: Architecture,
        cache: Path,
        progress: Callable[[str], None],
    ) -> None:
        self._apt = Apt(folder / "apt", architecture)
        self._updated = folder / "updated"  # its time is that of the last update that worked
        self._answers = folder / _ANSWERS
        self._tried = False
        self._architecture = architecture
        self._cache = cache
        self._progress = progress

    def fetch(self, version: str) -> Fetched:
        try:
            return self._download(self._find(version))
        except HostUnfit:
            # The mirror may have replaced the package since the index was read.
            if not self._update_if_older(version, _SOON):
                raise
            return self._download(self._find(version))

    def _find(self, version: str) -> Offer:
        wanted = components(version)
        self._update_if_older(version, _DAY)
        for _ in range(2):
            found = self._offers()
            matching = [offer for offer in found if matches(offer, wanted)]
            for offer in matching:
                if not offer.missing:
                    return offer
            if not self._update_if_older(version, _SOON):
                break
        kind = f"{_FLAVOUR}-{self._architecture.debian} kernel"
        reason = f"no such {kind}"
        if matching:
            reason = f"the mirror has {matching[0].name} without {', '.join(matching[0].missing)}"
        there_are = ", ".join(newest_of_each_series(found)) or "none"
        raise KernelUnusable(f"debian:{version}: {reason}; there are: {there_are}")

    def _offers(self) -> list[Offer]:
        names = self._apt.package_names("linux-")
        wanted = [name for name in names if name.endswith(_ending(self._architecture))]
        return offers(self._apt.show(wanted), self._architecture)

    def _update_if_older(self, version: str, seconds: float) -> bool:
        """Read the indexes anew if they are older than that; tell whether they were read."""
        if self._tried or self._age() < seconds:
            return False
        self._tried = True
        self._progress(f"debian:{version}: reading Debian's package index")
        try:
            self._apt.update()
        except HostUnfit as error:
            if not self._offers():
                raise
            self._progress(f"debian:{version}: using the index read earlier: {error}")
            return False
        store.write_text(self._updated, "")
        return True

    def _age(self) -> float:
        """Return the age of the indexes in seconds."""
        with suppress(OSError):
            age = time.time() - self._updated.stat().st_mtime
            if age >= 0:  # else the clock was set back
                return age
        return math.inf

    @property
    def fresh(self) -> bool:
        """Whether the indexes are of the last day."""
        return self._age() < _DAY

    def _download(self, offer: Offer) -> Fetched:
        # Another version may have led to the same package: 7 and 7.3.
        for memo in self._answers.iterdir() if self._answers.is_dir() else ():
            answer = _remembered(memo)
            kept = _image(answer, self._cache)
            if answer and kept and answer.package == str(offer):
                return kept
        self._progress(f"fetching {', '.join(offer.packages)}")
        with self._apt.download(offer.packages) as debs:
            return Fetched(unpacked.unpack(debs, self._cache, self._progress), str(offer))

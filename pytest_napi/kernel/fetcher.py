# SPDX-License-Identifier: GPL-2.0-only
"""Fetch the newest package of a version with the host's apt, and remember which one it was.

The second time no apt runs; it is asked again when a day has passed, unless the version names one
kernel (6.12.117).  What was fetched once is used whenever apt cannot answer: offline, or after the
mirror dropped it.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_napi.errors import HostUnfit, KernelUnusable
from pytest_napi.kernel import store
from pytest_napi.kernel.apt import Apt
from pytest_napi.kernel.architecture import Architecture
from pytest_napi.kernel.offers import Offer, components, matches, newest_of_each_series

_ANSWERS = "answers"
_DAY = 24 * 3600.0
# A version that an index lacks may have come since, and a failure may be over: then ask again.
_SOON = 600.0

_FULL_VERSION = 3  # components: 6.12.117 is one kernel, 6.12 a series


@dataclass(frozen=True)
class Search:
    """What is looked for in the indexes of an architecture, and where it is kept.

    ``text`` is what the user wrote and ``what`` the kind of thing, for messages.  ``memo`` is the
    name of the remembered answer.
    """

    text: str
    version: str
    what: str
    architecture: Architecture
    memo: str
    is_wanted: Callable[[str], bool]
    """Tells by its name whether a package's stanza is needed."""
    offers: Callable[[str], list[Offer]]
    """Returns what these stanzas offer, newest first."""
    kept: Callable[[str], Path | None]
    """Returns the file that is kept under a name, None if it is lost."""
    unpack: Callable[[Offer, Sequence[Path]], Path]
    """Takes the file out of the .debs of an offer; the name it is kept under is its folder's."""


@dataclass(frozen=True)
class Found:
    """What a search led to: a file, and the package it is from (its name and version)."""

    file: Path
    package: str


@dataclass(frozen=True)
class _Answer:
    """What was found, as it is remembered: the name it is kept under, and when (Unix time)."""

    package: str
    folder: str
    asked: float


def fetch(search: Search, cache: Path, progress: Callable[[str], None]) -> Found:
    """Return what is searched for, fetching it if need be.

    Raises KernelUnusable if there is none, with those there are, and HostUnfit if it cannot be
    fetched and has not been before.
    """
    folder = cache / "debian" / search.architecture.debian
    memo = folder / _ANSWERS / search.memo
    answer = _remembered(memo)
    kept = _kept(answer, search)
    is_one = len(components(search.version)) >= _FULL_VERSION
    if answer and kept and (_is_recent(answer) or is_one):
        return kept
    with store.locked(folder, progress):
        answer = _remembered(memo)  # another run may have asked meanwhile
        kept = _kept(answer, search)
        if answer and kept and _is_recent(answer):
            return kept
        fresh = False
        try:
            fetcher = _Fetcher(search, folder, progress)
            found = fetcher.fetch()
            fresh = fetcher.fresh
        except (HostUnfit, KernelUnusable) as error:
            if kept is None:
                raise
            progress(f"{search.text}: using {kept.package}, fetched earlier: {error}")
            found = kept
        asked = time.time() if fresh else time.time() - _DAY + _SOON
        new = _Answer(found.package, found.file.parent.name, asked)
        store.remember(memo, json.dumps(asdict(new)))
        return found


def _remembered(memo: Path) -> _Answer | None:
    with suppress(ValueError, TypeError):
        return _Answer(**json.loads(store.read_text(memo) or ""))
    return None


def _kept(answer: _Answer | None, search: Search) -> Found | None:
    file = search.kept(answer.folder) if answer else None
    return Found(file, answer.package) if answer and file else None


def _is_recent(answer: _Answer) -> bool:
    return 0 <= time.time() - answer.asked < _DAY


class _Fetcher:
    """Fetches with apt; the lock on its folder is held."""

    def __init__(self, search: Search, folder: Path, progress: Callable[[str], None]) -> None:
        self._apt = Apt(folder / "apt", search.architecture)
        self._updated = folder / "updated"  # its time is that of the last update that worked
        self._answers = folder / _ANSWERS
        self._tried = False
        self._search = search
        self._progress = progress

    def fetch(self) -> Found:
        try:
            return self._download(self._find())
        except HostUnfit:
            # The mirror may have replaced the package since the index was read.
            if not self._update_if_older(_SOON):
                raise
            return self._download(self._find())

    def _find(self) -> Offer:
        wanted = components(self._search.version)
        self._update_if_older(_DAY)
        for _ in range(2):
            found = self._offers()
            matching = [offer for offer in found if matches(offer, wanted)]
            for offer in matching:
                if not offer.missing:
                    return offer
            if not self._update_if_older(_SOON):
                break
        reason = f"no such {self._search.what}"
        if matching:
            reason = f"the mirror has {matching[0].name} without {', '.join(matching[0].missing)}"
        there_are = ", ".join(newest_of_each_series(found)) or "none"
        raise KernelUnusable(f"{self._search.text}: {reason}; there are: {there_are}")

    def _offers(self) -> list[Offer]:
        names = self._apt.package_names("linux-")
        wanted = [name for name in names if self._search.is_wanted(name)]
        return self._search.offers(self._apt.show(wanted))

    def _update_if_older(self, seconds: float) -> bool:
        """Read the indexes anew if they are older than that; tell whether they were read."""
        if self._tried or self._age() < seconds:
            return False
        self._tried = True
        self._progress(f"{self._search.text}: reading Debian's package index")
        try:
            self._apt.update()
        except HostUnfit as error:
            if not self._offers():
                raise
            self._progress(f"{self._search.text}: using the index read earlier: {error}")
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

    def _download(self, offer: Offer) -> Found:
        # Another version may have led to the same package: 7 and 7.3.
        for memo in self._answers.iterdir() if self._answers.is_dir() else ():
            answer = _remembered(memo)
            kept = _kept(answer, self._search)
            if answer and kept and answer.package == str(offer):
                return kept
        self._progress(f"fetching {', '.join(offer.packages)}")
        with self._apt.download(offer.packages) as debs:
            return Found(self._search.unpack(offer, debs), str(offer))

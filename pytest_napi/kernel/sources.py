# SPDX-License-Identifier: GPL-2.0-only
"""Derive apt sources for every Debian suite that carries kernels from the host's own entries.

The host says which mirror to use and how it is trusted; only suites are added.  The host's files
are read, never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

RELEASES = ("bookworm", "trixie", "forky")
"""Debian releases whose kernels can be had; one that a mirror lacks is skipped."""

# Suites of a release in the main archive; "" is the release itself.
_MAIN_POCKETS = ("", "-updates", "-backports")
MAIN_SUITES = (*(f"{release}{pocket}" for release in RELEASES for pocket in _MAIN_POCKETS), "sid")
SECURITY_SUITES = tuple(f"{release}-security" for release in RELEASES)

# Names under which the suites of this and earlier releases go in a host's sources.
_ALIASES = (
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "sid",
    "buster",
    "bullseye",
)
_DEBIAN_SUITE = re.compile(
    rf"(?:{'|'.join((*RELEASES, *_ALIASES))})(?P<pocket>-updates|-backports|-security|/updates)?"
)
_COMPONENT = "main"  # kernels are there, and only there

# What we set ourselves, or what names other parts of an entry; everything else is about trust and
# transport, and is kept.
_SET_HERE = frozenset(
    {"types", "uris", "suites", "components", "enabled", "architectures", "arch"}
    | {"targets", "target", "languages", "lang"}
)
_SNAPSHOT = re.compile(r"\d{8}T\d{6}Z")


@dataclass(frozen=True)
class Entry:
    """One entry of the host's sources; ``options`` has lower-case names, e.g. "signed-by"."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: Mapping[str, str]


def parse_list(text: str) -> Iterator[Entry]:
    """Read the one-line format of a .list file; see sources.list(5)."""
    line = re.compile(
        r"deb\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<rest>.*)"
    )
    for raw in text.splitlines():
        match = line.fullmatch(raw.partition("#")[0].strip())
        if match is None:
            continue
        options = {}
        for option in (match["options"] or "").split():
            name, _, value = option.partition("=")
            options[name.lower()] = value.replace(",", " ")
        yield Entry((match["uri"],), (match["suite"],), tuple(match["rest"].split()), options)


def parse_deb822(text: str) -> Iterator[Entry]:
    """Read the stanzas of a .sources file; see sources.list(5)."""
    from pytest_napi.kernel import control  # noqa: PLC0415 - see there

    for stanza in control.stanzas(text):
        fields = {name.lower(): value for name, value in stanza.items()}
        if fields.get("enabled", "yes").lower() in (
            "no",
            "false",
            "0",
            "off",
            "without",
            "disable",
        ):
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        yield Entry(
            tuple(fields.get("uris", "").split()),
            tuple(fields.get("suites", "").split()),
            tuple(fields.get("components", "").split()),
            {name: value for name, value in fields.items() if name not in _SET_HERE},
        )


def read_entries(files: Iterable[Path]) -> Iterator[Entry]:
    """Read the entries of apt's source files, whichever format each has; skip unreadable ones."""
    for file in files:
        parse = {".list": parse_list, ".sources": parse_deb822}.get(file.suffix)
        if parse is None:
            continue
        try:
            text = file.read_text(errors="replace")
        except OSError:
            continue
        yield from parse(text)


def _archive(uri: str) -> str:
    """Return the telling part of a mirror's path: "debian" and "debian-security" are Debian's."""
    parts = PurePosixPath(urlsplit(uri).path).parts
    if parts and _SNAPSHOT.fullmatch(parts[-1]):
        parts = parts[:-1]
    # "mirror+file:/etc/apt/mirrors/debian.list" names a list of mirrors.
    return PurePosixPath(parts[-1]).stem if parts else ""


def _pocket(entry: Entry) -> str | None:
    """Return "main" or "security" for an entry of Debian itself, None for any other.

    Other vendors use Debian's suite names, and some "main" too; theirs have another path.
    """
    matches = [match for suite in entry.suites if (match := _DEBIAN_SUITE.fullmatch(suite))]
    if not matches or _COMPONENT not in entry.components:
        return None
    if any(uri.startswith("cdrom:") for uri in entry.uris):
        return None  # holds one release, and apt would ask for the disc
    archives = {_archive(uri) for uri in entry.uris}
    signed = entry.options.get("signed-by", "")
    if not archives & {"debian", "debian-security"} and "debian-archive" not in signed:
        return None
    pockets = {match["pocket"] for match in matches}
    return "security" if pockets & {"-security", "/updates"} else "main"


def derive(entries: Iterable[Entry], architecture: str) -> str | None:
    """Return the text of a .sources file with all suites for the host's Debian entries.

    ``architecture`` is Debian's name of it.  None if no entry is Debian's.
    """
    suites = {"main": MAIN_SUITES, "security": SECURITY_SUITES}
    stanzas: dict[str, None] = {}  # in order, without doubles: one entry a suite is common
    for entry in entries:
        pocket = _pocket(entry)
        if pocket is None:
            continue
        fields = {
            "Types": "deb",
            "URIs": " ".join(entry.uris),
            "Suites": " ".join(suites[pocket]),
            "Components": _COMPONENT,
            "Architectures": architecture,
            # Translations, icons and what else a host's configuration would add are not read.
            "Targets": "Packages",
        }
        kept = {name.title(): text for name, text in entry.options.items() if name not in _SET_HERE}
        lines = [f"{name}: {text}\n" for name, text in (fields | kept).items()]
        stanzas["".join(lines)] = None
    return "\n".join(stanzas) or None

# SPDX-License-Identifier: GPL-2.0-only
"""``debian:VERSION[:ARCH][@FLAVOUR]``: the newest Debian kernel of a version, or its source.

ARCH is Debian's name of an architecture (default: amd64).  FLAVOUR is what package names carry:
"cloud" (the default: all that a virtual machine needs, and it boots fastest), the name of the
architecture (the generic kernel, which has the drivers of real NICs), or "rt".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import fetcher, formats, offers, unpacked
from pytest_napi.kernel.architecture import ARCHITECTURES, X86_64, Architecture
from pytest_napi.kernel.naming import flavour_of, flavours
from pytest_napi.kernel.spec import DEBIAN, DEBIAN_FORM

_TARBALL = "linux-source-*.tar.*"


@dataclass(frozen=True)
class Fetched:
    """A fetched kernel: its image, and the package it is from (its name and version)."""

    image: Path
    package: str


@dataclass(frozen=True)
class FetchedSource:
    """A fetched source: the tarball with Debian's patches applied, and the package it is from."""

    tarball: Path
    package: str


@dataclass(frozen=True)
class Wanted:
    """A Debian kernel as the user names it."""

    version: str
    architecture: Architecture
    flavour: str


def parse(text: str) -> Wanted:
    """Read ``debian:VERSION[:ARCH][@FLAVOUR]``; KernelUnusable says what is wrong with it."""
    rest, at, flavour = text.removeprefix(DEBIAN).partition("@")
    version, colon, name = rest.partition(":")
    _check_version(text, version)
    architectures = {row.debian: row for row in ARCHITECTURES.values()}
    architecture = architectures.get(name if colon else X86_64.debian)
    if architecture is None:
        raise KernelUnusable(
            f"{text}: no architecture {name!r}; "
            f"give one of {', '.join(architectures)} ({DEBIAN_FORM})"
        )
    known = flavours(architecture)
    flavour = flavour if at else next(iter(known))
    if flavour not in known:
        raise KernelUnusable(
            f"{text}: no flavour {flavour!r} for {architecture.debian}; "
            f"give one of {', '.join(known)} ({DEBIAN_FORM})"
        )
    return Wanted(version, architecture, flavour)


def fetch_kernel(text: str, cache: Path, progress: Callable[[str], None]) -> Fetched:
    """Return the newest Debian kernel that ``text`` (``debian:6.12@rt``) names.

    It is fetched if need be, and not looked into: it may be of an architecture that this host
    cannot boot.  Raises KernelUnusable if there is none, with those there are, and HostUnfit if it
    cannot be fetched and has not been before.
    """
    wanted = parse(text)
    kind, default = wanted.flavour, next(iter(flavours(wanted.architecture)))
    name = kind if kind == wanted.architecture.debian else f"{kind}-{wanted.architecture.debian}"

    def unpack(_: offers.Offer, debs: Sequence[Path]) -> Path:
        return unpacked.unpack(debs, cache, progress)

    search = fetcher.Search(
        text=text,
        version=wanted.version,
        what=f"{name} kernel",
        architecture=wanted.architecture,
        memo=wanted.version if kind == default else f"{wanted.version}@{kind}",
        is_wanted=lambda package: flavour_of(package, wanted.architecture) == kind,
        offers=lambda stanzas: offers.kernels(stanzas, wanted.architecture, kind),
        kept=lambda name: unpacked.image_of(unpacked.folder_of(cache, name)),
        unpack=unpack,
    )
    found = fetcher.fetch(search, cache, progress)
    return Fetched(found.file, found.package)


def fetch_source(version: str, cache: Path, progress: Callable[[str], None]) -> FetchedSource:
    """Return the newest Debian source of ``version`` ("6.12", "6.12.118"), fetching it if need be.

    It is the same for every architecture, and kept in CACHE/sources/NAME_VERSION.  Raises what
    ``fetch_kernel`` raises.
    """
    text = f"{DEBIAN}{version}"
    _check_version(text, version)
    folder = cache / "sources"

    def kept(name: str) -> Path | None:
        return unpacked.file_in(folder / name, _TARBALL)

    def unpack(offer: offers.Offer, debs: Sequence[Path]) -> Path:
        def fill(new: Path) -> None:
            formats.extract_source(debs[0], new)
            if not any(new.glob(_TARBALL)):
                raise KernelUnusable(f"{text}: there is no source in {offer}")

        target = folder / f"{offer.name}_{offer.version}"
        unpacked.made(target, fill)
        return next(target.glob(_TARBALL))

    search = fetcher.Search(
        text=text,
        version=version,
        what="kernel source",
        architecture=X86_64,
        memo=f"source-{version}",
        is_wanted=offers.is_source,
        offers=offers.sources,
        kept=kept,
        unpack=unpack,
    )
    found = fetcher.fetch(search, cache, progress)
    return FetchedSource(found.file, found.package)


def _check_version(text: str, version: str) -> None:
    if not offers.VERSION.fullmatch(version):
        raise KernelUnusable(f"{text}: {version!r} is no version; give one like {DEBIAN}6.12")

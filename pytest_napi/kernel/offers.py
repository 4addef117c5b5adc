# SPDX-License-Identifier: GPL-2.0-only
"""The kernels and kernel sources in Debian's package indexes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_napi.kernel.architecture import Architecture
from pytest_napi.kernel.naming import flavour_of, kernel_name, other_parts, pointed_to

VERSION = re.compile(r"\d+(?:\.\d+)*")
"""A kernel version as a user gives it: 6.12, or 6.12.117."""

_SOURCE = re.compile(r"linux-source-\d+\.\d+")


@dataclass(frozen=True)
class Offer:
    """A kernel or a source in Debian's indexes: the packages (name -> version) that are one.

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


def components(version: str) -> tuple[int, ...]:
    """Return the numbers a version starts with: "6.12.117-1~deb12u1" gives (6, 12, 117)."""
    match = VERSION.match(version)
    return tuple(int(number) for number in match[0].split(".")) if match else ()


def matches(offer: Offer, wanted: Sequence[int]) -> bool:
    """Tell whether the offer is of the wanted version: 6.1 is not 6.12."""
    return offer.upstream[: len(wanted)] == tuple(wanted)


def kernels(stanzas: str, architecture: Architecture, flavour: str) -> list[Offer]:
    """Return the kernels in the output of ``apt-cache show``, newest first."""
    from pytest_napi.kernel import control  # noqa: PLC0415 - see there

    packages = list(control.stanzas(stanzas))
    present = {(package["Package"], package["Version"]) for package in packages}
    found: dict[tuple[str, str], Offer] = {}
    for package in packages:
        name, version = str(package["Package"]), str(package["Version"])
        kernel = kernel_name(name)
        if kernel is None or kernel.part != "image" or flavour_of(name, architecture) != flavour:
            continue
        depends = control.depends(package)
        if pointed_to(name, depends) is not None:
            continue  # the meta package of one series
        parts = other_parts(name, depends) or [name]
        missing = tuple(part for part in parts if (part, version) not in present)
        found[name, version] = Offer(name, version, dict.fromkeys(parts, version), missing)
    return _newest_first(found.values())


def is_source(package: str) -> bool:
    """Tell whether a package has a kernel's source; linux-source only points to one that has."""
    return _SOURCE.fullmatch(package) is not None


def sources(stanzas: str) -> list[Offer]:
    """Return the kernel sources in the output of ``apt-cache show``, newest first."""
    from pytest_napi.kernel import control  # noqa: PLC0415 - see there

    found = {(str(row["Package"]), str(row["Version"])) for row in control.stanzas(stanzas)}
    return _newest_first(
        Offer(name, version, {name: version}) for name, version in found if is_source(name)
    )


def _newest_first(found: Iterable[Offer]) -> list[Offer]:
    from pytest_napi.kernel import control  # noqa: PLC0415 - see there

    return sorted(found, key=lambda offer: control.Version(offer.version), reverse=True)


def newest_of_each_series(found: Iterable[Offer]) -> list[str]:
    """Return "6.1.176", "6.12.118" … in order; ``found`` is newest first."""
    series: dict[tuple[int, ...], tuple[int, ...]] = {}
    for offer in found:
        if not offer.missing:
            series.setdefault(offer.upstream[:2], offer.upstream)
    return [".".join(map(str, version)) for _, version in sorted(series.items())]

# SPDX-License-Identifier: GPL-2.0-only
"""What the name of a Debian kernel package says, and which packages together are one kernel.

Debian up to 6.18, and ``make bindeb-pkg``, have image, config and modules in linux-image; the
linux-base that 6.18 depends on holds documentation only.  From 6.19 on a kernel is split in
linux-binary (image), linux-modules and linux-base (config), and linux-image only depends on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_napi.kernel.architecture import Architecture

# linux-image-6.12.117+deb13-cloud-amd64, linux-binary-unsigned-7.3.4+deb13-cloud-amd64.  A release
# starts with a digit, which tells "linux-image-cloud-amd64", a meta package, apart.
_NAME = re.compile(
    r"linux-(?P<part>image|binary|modules|base)(?:-unsigned)?"
    r"-(?P<release>\d\S*?)(?:-unsigned|(?P<debug>-dbg))?"
)


@dataclass(frozen=True)
class KernelName:
    """The name of a package that holds a kernel or a part of one: "image" of a release."""

    part: str
    release: str


def kernel_name(package: str) -> KernelName | None:
    """Read a package's name; None for one that holds no part of a kernel to boot."""
    match = _NAME.fullmatch(package)
    return KernelName(match["part"], match["release"]) if match and not match["debug"] else None


def other_parts(package: str, depends: Iterable[str]) -> list[str]:
    """Return the packages without which this one is no whole kernel, given what it depends on."""
    own = kernel_name(package)
    if own is None:
        return []
    siblings = {
        name: other.part
        for name in depends
        if (other := kernel_name(name)) and other.release == own.release
    }
    if own.part == "image" and "binary" not in siblings.values():
        return []
    if own.part == "binary":
        siblings[f"linux-modules-{own.release}"] = "modules"  # it does not depend on them
    return list(siblings)


def pointed_to(package: str, depends: Iterable[str]) -> str | None:
    """Return the kernel package that a meta package stands for; None if it is no meta package."""
    own = kernel_name(package)
    for name in depends:
        other = kernel_name(name)
        if other and other.part == "image" and (own is None or other.release != own.release):
            return name
    return None


def flavours(architecture: Architecture) -> Mapping[str, str]:
    """Return the flavours Debian builds for an architecture, and how a release of each ends.

    The first is the default: all that a virtual machine needs, and it boots fastest.
    """
    name = architecture.debian
    return {"cloud": f"-cloud-{name}", name: f"-{name}", "rt": f"-rt-{name}"}


def flavour_of(package: str, architecture: Architecture) -> str | None:
    """Return the flavour of a package that holds (a part of) a kernel, None for any other."""
    if kernel_name(package) is None:
        return None
    endings = flavours(architecture)
    fitting = [flavour for flavour, ending in endings.items() if package.endswith(ending)]
    # "-cloud-amd64" is an "-amd64" too: the longest one is meant.
    return max(fitting, key=lambda flavour: len(endings[flavour]), default=None)

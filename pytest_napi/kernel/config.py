# SPDX-License-Identifier: GPL-2.0-only
"""A kernel's configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_PREFIX = "CONFIG_"
_SET = re.compile(r"^CONFIG_(\w+)=(.*)$", re.MULTILINE)
_UNSET = re.compile(r"^# CONFIG_(\w+) is not set$", re.MULTILINE)
# "# Linux/x86 6.12.117 Kernel Configuration", which make writes on top
_HEADER = re.compile(r"^# Linux/\S+ (\d+\.\d+)\S* Kernel Configuration$", re.MULTILINE)


@dataclass(frozen=True)
class KernelConfig:
    """The options of one kernel; ``source`` says where they were read.

    Options are named with or without ``CONFIG_``.  ``name in config`` is true for each option the
    config mentions, be it set or not: make leaves out those whose dependencies are not met, so one
    that is mentioned could have been chosen.
    """

    options: Mapping[str, str] = field(repr=False)
    source: str
    series: str | None = None
    """The series of the source tree the config was made in ("6.12"), where it says so."""

    def value(self, name: str) -> str:
        """Return "y", "m", a number, a string without its quotes, or "n" for what is not set."""
        return self.options.get(name.removeprefix(_PREFIX), "n")

    def enabled(self, name: str) -> bool:
        """Tell whether the option is built in or a module."""
        return self.value(name) in ("y", "m")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.removeprefix(_PREFIX) in self.options

    def belongs_to(self, release: str) -> bool:
        """Tell whether the config may be that of a kernel with this release.

        Only the series is compared: Debian's 6.1.0-57 is made from 6.1.192.  A config that names no
        series is believed.
        """
        if self.series is None:
            return True
        return self.series == ".".join(re.split(r"[.+-]", release)[:2])


def parse_config(text: str, source: str) -> KernelConfig:
    """Read the text of a .config; ``source`` is for messages, e.g. its path.

    What is no option line is left out: a text with none gives a config without options.
    """
    options = dict.fromkeys(_UNSET.findall(text), "n")
    for name, value in _SET.findall(text):
        options[name] = value[1:-1] if value[:1] == value[-1:] == '"' else value.rstrip()
    header = _HEADER.search(text)
    return KernelConfig(MappingProxyType(options), source, header[1] if header else None)

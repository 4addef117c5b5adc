# SPDX-License-Identifier: GPL-2.0-only
"""What a host needs to build a kernel, as rows of data."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, replace

from pytest_napi.errors import HostUnfit
from pytest_napi.kernel.config import KernelConfig


@dataclass(frozen=True)
class Tool:
    """A program on PATH, or a C header if ``name`` ends in ".h", and the Debian package it is in.

    It is needed if one of ``options`` is on, always where there are none, and for patches only
    where ``patches`` is set.  ``target`` marks what CROSS_COMPILE is put before.
    """

    name: str
    package: str
    options: tuple[str, ...] = ()
    patches: bool = False
    target: bool = False

    def needed(self, config: KernelConfig, *, patches: bool) -> bool:
        """Tell whether a build with this config, and with or without patches, needs the tool."""
        if self.patches:
            return patches
        return not self.options or any(config.enabled(option) for option in self.options)

    def present(self) -> bool:
        """Tell whether this host has the tool; True for a header while there is no compiler."""
        if not self.name.endswith(".h"):
            return shutil.which(self.name) is not None
        compiler = shutil.which("gcc")
        if compiler is None:
            return True
        argv = [compiler, "-E", "-include", self.name, "-x", "c", os.devnull]
        return subprocess.run(argv, check=False, capture_output=True).returncode == 0


# Documentation/process/changes.rst of Linux, and the Makefiles that call them.
TOOLS: tuple[Tool, ...] = (
    Tool("make", "make"),
    Tool("gcc", "gcc"),
    Tool("gcc", "gcc", target=True),
    Tool("ld", "binutils", target=True),
    Tool("stdlib.h", "libc6-dev"),
    Tool("flex", "flex"),
    Tool("bison", "bison"),
    Tool("bc", "bc"),
    Tool("perl", "perl"),
    Tool("setpriv", "util-linux"),
    Tool("git", "git", patches=True),
    Tool("libelf.h", "libelf-dev", ("OBJTOOL", "STACK_VALIDATION", "DEBUG_INFO_BTF")),
    Tool(
        "openssl/opensslv.h",
        "libssl-dev",
        ("SYSTEM_TRUSTED_KEYRING", "MODULE_SIG", "MODULE_SIG_FORMAT"),
    ),
    Tool("pahole", "dwarves", ("DEBUG_INFO_BTF",)),
    Tool("cpio", "cpio", ("IKHEADERS",)),
    Tool("xz", "xz-utils", ("KERNEL_XZ", "KERNEL_LZMA", "IKHEADERS")),
    Tool("zstd", "zstd", ("KERNEL_ZSTD",)),
    Tool("lz4", "lz4", ("KERNEL_LZ4",)),
    Tool("lzop", "lzop", ("KERNEL_LZO",)),
    Tool("bzip2", "bzip2", ("KERNEL_BZIP2",)),
)
"""Every tool a build may need."""


def cross_compile() -> str:
    """Return the prefix of the compiler's name: $CROSS_COMPILE, or ""."""
    return os.environ.get("CROSS_COMPILE", "")


def _crossed(tool: Tool) -> Tool:
    prefix = cross_compile()
    if not prefix or not tool.target:
        return tool
    triplet = prefix.rpartition("/")[2].rstrip("-").replace("_", "-")
    return replace(tool, name=prefix + tool.name, package=f"{tool.package}-{triplet}")


def missing(config: KernelConfig, *, patches: bool) -> list[Tool]:
    """Return what a build with this config needs and this host lacks."""
    needed = (_crossed(tool) for tool in TOOLS if tool.needed(config, patches=patches))
    return [tool for tool in dict.fromkeys(needed) if not tool.present()]


def require(config: KernelConfig, *, patches: bool) -> None:
    """Raise HostUnfit that names all that is missing and the command that installs it."""
    lacking = missing(config, patches=patches)
    if lacking:
        names = ", ".join(dict.fromkeys(tool.name for tool in lacking))
        packages = " ".join(dict.fromkeys(tool.package for tool in lacking))
        raise HostUnfit(f"a kernel build needs {names}: apt-get install {packages}")


def compiler_identity() -> str:
    """Return what tells this host's compiler and linker from others: their first version lines."""
    lines = []
    for name in ("gcc", "ld"):
        argv = [cross_compile() + name, "--version"]
        said = subprocess.run(argv, check=False, capture_output=True, text=True, errors="replace")
        lines.append(said.stdout.partition("\n")[0])
    return "\n".join(lines)

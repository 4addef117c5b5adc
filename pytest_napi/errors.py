# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of error pytest-napi raises.

The message of each is for a person: one line that says what is wrong, where, and what to do.
Longer evidence (console lines, stderr) goes into ``detail``, which reports print below the line.
"""

from __future__ import annotations

import subprocess


class NapiError(Exception):
    """Base of everything pytest-napi raises on purpose.

    ``detail`` holds the evidence: text of any length, already safe to print, or "".
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class GuestLost(NapiError):
    """The guest is gone: QEMU died, the guest's kernel panicked, or it stopped answering.

    An error of the one test that used the guest, never a failed bound.  ``emulator_defect`` is true
    where the guest's log proves that it was not its kernel that broke it, but a defect of QEMU.
    """

    def __init__(self, message: str, detail: str = "", *, emulator_defect: bool = False) -> None:
        super().__init__(message, detail)
        self.emulator_defect = emulator_defect


class KernelUnusable(NapiError):
    """The given kernel cannot be tested: not a kernel, or it lacks what a guest needs."""


class HostUnfit(NapiError):
    """This host lacks something (QEMU, a compiler, disk space); the message has the remedy."""


class ImageError(NapiError):
    """A boot image cannot be made: a bad manifest, a missing file, a compiler's error."""


class BoundsError(NapiError):
    """A bounds file is wrong; the message has the file, the line and the key."""


class GuestCommandError(subprocess.CalledProcessError, NapiError):
    """A guest command failed and ``check`` was set: what ``subprocess.run`` would have raised."""

    detail = ""

    def __str__(self) -> str:
        return f"in the guest: {super().__str__()}"


class GuestCommandTimeout(subprocess.TimeoutExpired, NapiError):
    """A guest command outlived its ``timeout``: what ``subprocess.run`` would have raised."""

    detail = ""

    def __str__(self) -> str:
        return f"in the guest: {super().__str__()}"

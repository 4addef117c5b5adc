# SPDX-License-Identifier: GPL-2.0-only
"""The error of the control channel, apart from qemu.qmp, which takes long to load."""

from __future__ import annotations

from pytest_napi.errors import NapiError


class ControlError(NapiError):
    """A QMP command could not be carried out; the message says which and why."""

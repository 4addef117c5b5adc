# SPDX-License-Identifier: GPL-2.0-only
"""Inside the guest: the command channel, programs and files.

The other end is the agent in ``images/``, the guest's PID 1.
"""

from pytest_napi.guest.guest import Guest
from pytest_napi.guest.process import GuestProcess
from pytest_napi.guest.wire import Hello, Ping

__all__ = ["Guest", "GuestProcess", "Hello", "Ping"]

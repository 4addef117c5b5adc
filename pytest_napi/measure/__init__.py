# SPDX-License-Identifier: GPL-2.0-only
"""The measurements: each operation's samples, gathered in the guest."""

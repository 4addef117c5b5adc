# SPDX-License-Identifier: GPL-2.0-only
"""The NIC as the guest sees it, and the loads put on it."""

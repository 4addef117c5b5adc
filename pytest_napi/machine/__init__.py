# SPDX-License-Identifier: GPL-2.0-only
"""QEMU: its command line, accelerators, console, kernel log and control channel."""

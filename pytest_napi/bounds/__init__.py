# SPDX-License-Identifier: GPL-2.0-only
"""Bounds from YAML, checked against a measurement."""

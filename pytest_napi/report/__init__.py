# SPDX-License-Identifier: GPL-2.0-only
"""Records of measurements, and the tables and files made of them."""

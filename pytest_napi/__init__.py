# SPDX-License-Identifier: GPL-2.0-only
"""pytest-napi: does this kernel keep its promises while NAPI is busy?"""

# SPDX-License-Identifier: GPL-2.0-only
pytest_plugins = ["pytester"]

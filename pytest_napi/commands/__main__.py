# SPDX-License-Identifier: GPL-2.0-only
"""``python -m pytest_napi.commands``."""

import sys

from pytest_napi.commands import main

sys.exit(main())

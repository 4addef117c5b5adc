# SPDX-License-Identifier: GPL-2.0-only
"""What a step of a bisection tells git."""

import pytest

from pytest_napi.commands.bisect import ABORT, BAD, CANNOT_TELL, GOOD, verdict
from pytest_napi.report.record import TestRecord


@pytest.mark.parametrize(
    ("status", "outcomes", "told"),
    [
        (0, ["passed"], GOOD),
        (0, ["passed", "skipped"], GOOD),
        (0, ["skipped"], CANNOT_TELL),
        (0, [], CANNOT_TELL),
        (1, ["failed"], BAD),
        (1, ["failed", "lost"], BAD),
        (1, ["failed", "inconclusive", "passed"], BAD),
        (1, ["lost"], CANNOT_TELL),
        (1, ["passed", "lost"], CANNOT_TELL),
        (6, ["inconclusive", "passed"], CANNOT_TELL),
        (1, ["passed"], CANNOT_TELL),  # a fixture's error, a plugin's
        (5, [], CANNOT_TELL),
        (2, ["passed", "interrupted"], 130),
        (3, ["failed"], ABORT),
        (4, [], ABORT),
    ],
)
def test_verdict(status, outcomes, told):
    records = [TestRecord(f"test_{i}", outcome=outcome) for i, outcome in enumerate(outcomes)]
    assert verdict(status, records)[0] == told

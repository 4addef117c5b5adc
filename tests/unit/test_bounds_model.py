# SPDX-License-Identifier: GPL-2.0-only
import re

import pytest

from pytest_napi.bounds.model import load_bounds, parse_duration
from pytest_napi.errors import BoundsError
from pytest_napi.run import OPERATIONS
from pytest_napi.shipped import shipped

KNOWN = ("netdev_deletion", "rcu_barrier")


@pytest.mark.parametrize(
    ("text", "ns"),
    [("1 s", 10**9), ("500 ms", 5 * 10**8), ("2.5us", 2500), ("7 ns", 7)],
)
def test_durations(text, ns):
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["1", "1 h", "-1 s", "0 s", "s", "1..2 s", "nan s", "inf s", ""])
def test_no_durations(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        parse_duration(text)


def test_the_shipped_bounds_cover_every_operation():
    bounds = load_bounds(shipped("configs/bounds.yaml"), OPERATIONS)
    assert set(bounds) == set(OPERATIONS)
    assert bounds["netdev_deletion"].max.limit == 10**9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("netdev_deletion:\n  max: {limit: 1 s, idel: 3}\n", ":2: netdev_deletion.max.idel: unkn"),
        ("netdev_deletion:\n  max:\n    limit: 1 h\n", ":3: netdev_deletion.max.limit: '1 h' has"),
        ("rcu_barrier:\n\n  mean: {limit: -5 ms}\n", ":3: rcu_barrier.mean.limit: '-5 ms' is not"),
        ("rcu_barrier:\n  mean: {limit: 5}\n", ":2: rcu_barrier.mean.limit: 5 has no unit"),
        ("rcu_barrier:\n  mean: {limit: 5 s, idle: -1}\n", ":2: rcu_barrier.mean.idle: "),
        ("# one\nveth_deletion: {}\n", ":2: veth_deletion: no such measurement: netdev_d"),
        ("netdev_deletion:\n  median: {limit: 1 s}\n", ":2: netdev_deletion.median: unknown key"),
        ("rcu_barrier:\n  max: {idle: 3}\n", ":2: rcu_barrier.max: "),
        ("rcu_barrier: [\n", ":2: not YAML: "),
        ("", ":1: a mapping of measurements"),
    ],
)
def test_a_bad_file_is_named_with_line_and_key(tmp_path, text, said):
    path = tmp_path / "bounds.yaml"
    path.write_text(text)
    with pytest.raises(BoundsError) as caught:
        load_bounds(path, KNOWN)
    assert str(caught.value).startswith(f"{path}{said}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BoundsError, match="No such file"):
        load_bounds(tmp_path / "none.yaml", KNOWN)

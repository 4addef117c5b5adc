# SPDX-License-Identifier: GPL-2.0-only
import json
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_napi.net.shapes import Flood, OnOff, Paced, Ramp, check, from_plain, to_plain

RATES = st.floats(10, 1e6)
BURSTS = st.integers(1, 64)


def first(shape, count):
    return list(islice(shape.bursts(), count))


@given(RATES, BURSTS, st.floats(0, 1))
def test_a_paced_shape_keeps_its_rate_whatever_the_jitter(pps, burst, jitter):
    bursts = first(Paced(pps, burst, jitter), 200)
    period = burst / pps
    for number, (due, frames) in enumerate(bursts):
        assert frames == burst
        assert number * period <= due <= (number + 1) * period * (1 + 1e-9)


def test_jitter_moves_bursts_and_the_same_shape_gives_the_same_times():
    plain, moved = Paced(1000, 10), Paced(1000, 10, jitter=0.5)
    assert first(plain, 50) != first(moved, 50)
    assert first(moved, 50) == first(moved, 50)


@given(st.floats(100, 1e3), st.floats(100, 1e3), st.floats(0.1, 3))
def test_a_ramp_goes_from_one_rate_to_the_other(start, end, seconds):
    enough = int(seconds * max(start, end) / 10) + 10
    bursts = [due for due, _ in first(Ramp(start, end, seconds, burst=10), enough)]
    gaps = [after - before for before, after in pairwise(bursts)]
    assert gaps[0] == pytest.approx(10 / start)
    after = [gap for due, gap in zip(bursts, gaps, strict=False) if due >= seconds]
    assert all(gap == pytest.approx(10 / end) for gap in after)


def test_on_and_off():
    dues = [due for due, _ in first(OnOff(1000, on=0.1, off=0.9, burst=10), 25)]
    assert max(dues[:10]) < 0.1
    assert 1.0 <= dues[10] < 1.1
    assert dues[20] == pytest.approx(2.0)
    assert OnOff(1000, on=0.1, off=0.9).pps == pytest.approx(100)


@pytest.mark.parametrize(
    "shape", [Flood(), Paced(20_000, 8, 0.2), Ramp(10, 100, 3), OnOff(10, 1, 2)], ids=str
)
def test_a_shape_survives_json(shape):
    assert from_plain(json.loads(json.dumps(to_plain(shape)))) == shape


@pytest.mark.parametrize(
    "shape",
    [Paced(0), Paced(-1), Paced(10, 0), Paced(10, jitter=2), Ramp(0, 1, 1), OnOff(10, 0, 1)],
    ids=str,
)
def test_senseless_figures_are_refused(shape):
    with pytest.raises(ValueError, match=r"sense|never begins"):
        check(shape)

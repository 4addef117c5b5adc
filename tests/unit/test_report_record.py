# SPDX-License-Identifier: GPL-2.0-only
import json
from pathlib import Path

import pytest

from pytest_napi.errors import NapiError
from pytest_napi.report.record import (
    FORMAT,
    LOGGED,
    TestRecord,
    check_writable,
    from_plain,
    read_results,
    to_plain,
    write_results,
)
from records import OVER, STALL, after, before, record, result, seed_pair


@pytest.mark.parametrize(
    ("nodeid", "test"),
    [
        ("t.py::test_it[before-none]", "t.py::test_it"),
        ("t.py::test_it[before-default]", "t.py::test_it"),
        ("t.py::test_it[before-none-x]", "t.py::test_it[x]"),
        ("t.py::test_it[x-before-lazy]", "t.py::test_it[x]"),
        ("t.py::test_it[x-before-full-y]", "t.py::test_it[x-y]"),
        ("t.py::test_it[not_before-none]", "t.py::test_it[not_before-none]"),
        ("t.py::test_it[after-none]", "t.py::test_it[after-none]"),
        ("t.py::test_it", "t.py::test_it"),
    ],
)
def test_the_test_without_its_kernel(nodeid, test):
    assert TestRecord(nodeid, kernel="before").test == test


def test_a_label_is_no_pattern():
    assert TestRecord("t.py::test_it[6x12+1-none]", kernel="6.12+1").test.endswith("[6x12+1-none]")
    assert TestRecord("t.py::test_it[6.12+1-none]", kernel="6.12+1").test == "t.py::test_it"


def test_the_model_is_the_one_asked_for():
    assert record("before", model="full").preemption == "full"
    assert TestRecord("t", kernel="before", model="lazy").preemption == "lazy"
    assert TestRecord("t", kernel="before").preemption == "?"


@pytest.mark.parametrize(
    ("given", "shows", "verdict"),
    [
        (before(), True, "FAILED (bound)"),
        (before(STALL), True, "FAILED (bound, rcu_stall)"),
        (after(), False, "passed"),
        (
            after(outcome="failed", reason=f"{LOGGED}rcu_stall\nx", splats=[STALL]),
            True,
            "FAILED (r",
        ),
        (after(outcome="failed", reason="assert 1 == 2"), False, "FAILED"),
        (before(STALL, reason="assert 1 == 2"), False, "FAILED (bound, rcu_stall)"),
        (after(outcome="failed", reason=f"{LOGGED}made up"), False, "FAILED"),
        (before(outcome="lost"), False, "lost"),
        (record("x", outcome="failed", reason=f"{LOGGED}warning", splats=[STALL]), False, "FAILED"),
    ],
    ids=range(9),
)
def test_a_fault_is_the_kernels_own(given, shows, verdict):
    assert given.shows_fault is shows
    assert given.verdict.startswith(verdict)


def test_the_table_says_what_was_expected():
    assert before(expected="fail").verdict == "FAILED (bound), expected"
    assert before(expected="either").verdict == "FAILED (bound), not counted"
    assert before(expected="pass").verdict == "FAILED (bound)"
    assert before(expected="fail", reason="assert 0").verdict == "FAILED (bound)"
    assert after(expected="fail").verdict == "passed, not expected"
    assert after(expected="pass").verdict == "passed"
    assert record("after", expected="fail").verdict == "passed", "it measured nothing"


def test_results_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "results.json"
    write_results(path, seed_pair(), ["after", "before"])
    read = read_results(path)
    assert read.tests == list(seed_pair())
    assert read.labels == ["after", "before"]
    assert from_plain(to_plain(before(STALL))) == before(STALL)


def test_a_run_that_never_comes_to_its_results_leaves_none(tmp_path):
    path = tmp_path / "folder" / "r.json"
    check_writable(path)
    assert not path.exists()
    write_results(path, seed_pair(), [])
    before = path.read_bytes()
    check_writable(path)
    assert path.read_bytes() == before


def test_results_of_an_earlier_version_are_read(tmp_path):
    path = tmp_path / "results.json"
    write_results(path, seed_pair(), [])
    content = json.loads(path.read_text())
    del content["kernels"]
    for test in content["tests"]:
        for name in ("kernel", "model", "expected"):
            del test[name]
    path.write_text(json.dumps(content))
    read = read_results(path)
    assert read.labels == ["before", "after"]
    assert {test.test for test in read.tests} == {"test_deletion.py::test_it"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        ('{"tool": "\xff"', "not JSON"),
        ("[]", "not a results file"),
        ('{"tests": []}', "not a results file"),
        ('{"format": 1, "tool": "t", "host": "h", "tests": [{"nodeid": 1}]}', "not a results file"),
        (
            f'{{"format": {FORMAT + 1}, "tool": "pytest-napi 9\\u001b[2J"}}',
            rf"is in format {FORMAT + 1}, of pytest-napi 9\x1b[2J; this is pytest-napi 0",
        ),
    ],
)
def test_what_is_no_results_file(tmp_path, content, said):
    path = Path(tmp_path / "results.json")
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode("latin-1"))
    with pytest.raises(NapiError) as caught:
        read_results(path)
    assert str(caught.value).startswith(f"{path}: {said}")
    assert "\n" not in str(caught.value)


def test_a_failed_bound_is_recognised_by_its_message():
    mended = result(outcome="failed", message="other")
    assert not record("k", mended, outcome="failed", reason=OVER).shows_fault

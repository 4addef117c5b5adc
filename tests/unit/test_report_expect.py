# SPDX-License-Identifier: GPL-2.0-only
import pytest

from pytest_napi.report import expect
from pytest_napi.report.expect import Standing
from pytest_napi.report.record import LOGGED, TestRecord
from records import STALL, TEST, after, before, record, result

EXPECTED = {"before": "fail", "after": "pass"}
WHERE = f" (preempt=none, {TEST})"
AFTER_PASSED = "expected after:pass — passed: as expected"
BEFORE_FAILED = "expected before:fail — failed (bound, rcu_stall): as expected"


def judged(*records, expected=EXPECTED):
    for one in records:
        one.expected = expect.expected_of(one, expected)
    return expect.judge(records, expected)


def test_both_halves():
    judgement = judged(before(STALL), after())
    assert judgement.standing is Standing.MET
    assert judgement.lines == (BEFORE_FAILED, AFTER_PASSED)


def test_a_splat_alone_is_a_fault():
    said = {"outcome": "failed", "reason": f"{LOGGED}rcu_stall\nx", "splats": [STALL]}
    judgement = judged(record("before", result(), **said), after())
    assert judgement.lines[0] == "expected before:fail — failed (rcu_stall): as expected"


@pytest.mark.parametrize(
    ("records", "standing", "line"),
    [
        (
            (record("before", result()), after()),
            Standing.CONTRADICTED,
            "expected before:fail — passed: this load does not reproduce the fault on this kernel "
            f"(before): the pass of the others proves nothing{WHERE}",
        ),
        (
            (before(reason="assert 1 == 2\nmore"), after()),
            Standing.CONTRADICTED,
            "expected before:fail — before failed by an error of the test, not a fault: "
            f"assert 1 == 2{WHERE}",
        ),
        (
            (before(STALL), after(outcome="failed", reason="assert 0")),
            Standing.CONTRADICTED,
            f"expected after:pass — after was to pass and failed{WHERE}",
        ),
        *(
            (
                (before(STALL), after(outcome=word)),
                Standing.UNDECIDED,
                f"expected after:pass — after was {word}{WHERE}",
            )
            for word in ("inconclusive", "lost", "skipped", "interrupted")
        ),
        (
            (before(outcome="inconclusive"), after()),
            Standing.UNDECIDED,
            f"expected before:fail — before was inconclusive{WHERE}",
        ),
        (
            (before(STALL),),
            Standing.UNDECIDED,
            f"expected after:pass — after was not run{WHERE}",
        ),
        (
            (after(),),
            Standing.UNDECIDED,
            f"expected before:fail — before was not run{WHERE}",
        ),
    ],
    ids=range(10),
)
def test_what_is_not_as_expected(records, standing, line):
    judgement = judged(*records)
    assert judgement.standing is standing
    assert line in judgement.lines
    assert len(judgement.lines) == 2


def test_a_bound_that_the_fixed_kernel_breaks():
    broken = before()
    judgement = judged(broken, expected={"before": "pass"})
    assert judgement.lines == (
        f"expected before:pass — before was to pass and failed (bound){WHERE}",
    )


def test_every_model_and_test_counts_by_itself():
    records = [
        before(STALL),
        after(),
        record("before", result(), model="full"),
        record("after", result(), model="full"),
    ]
    judgement = judged(*records)
    assert judgement.standing is Standing.CONTRADICTED
    assert judgement.lines == (
        "expected before:fail — passed: this load does not reproduce the fault on this kernel "
        f"(before): the pass of the others proves nothing (preempt=full, {TEST})",
        AFTER_PASSED,
    )


def test_a_model_that_was_skipped_on_all_kernels_is_no_success():
    skipped = [
        TestRecord(f"{TEST}[{x}-lazy]", kernel=x, model="lazy", outcome="skipped")
        for x in ("before", "after")
    ]
    judgement = judged(before(STALL), after(), *skipped)
    assert judgement.standing is Standing.UNDECIDED
    assert judgement.lines == tuple(
        f"expected {x}:{what} — {x} was skipped (preempt=lazy, {TEST})"
        for x, what in EXPECTED.items()
    )
    assert judgement.undecided == {f"{TEST}[before-lazy]", f"{TEST}[after-lazy]"}


def test_what_contradicts_outranks_what_is_undecided():
    judgement = judged(before(outcome="lost"), after(outcome="failed", reason="assert 0"))
    assert judgement.standing is Standing.CONTRADICTED


def test_tests_that_measure_nothing_do_not_count():
    idle = record("before", test="t.py::test_other")
    assert judged(before(STALL), after(), idle).lines == (BEFORE_FAILED, AFTER_PASSED)


def test_an_expectation_about_nothing():
    judgement = judged(record("before"), record("after"))
    assert judgement.standing is Standing.UNDECIDED
    assert judgement.lines[0] == (
        "expected before:fail — nothing was measured: an expectation about nothing"
    )


def test_kernels_that_are_not_mentioned_do_not_count():
    other = before(STALL)
    judgement = judged(other, after(), expected={"after": "pass"})
    assert judgement.lines == (AFTER_PASSED,)
    assert judgement.standing is Standing.MET
    assert other.expected == "either"
    assert expect.excuse(other) == "not counted: no expectation of before"


def test_without_expectations():
    judgement = judged(before(), after(), expected={})
    assert (judgement.standing, judgement.lines) == (Standing.MET, ())
    assert before().expected == ""


def test_labels():
    expect.check_labels(EXPECTED, ["after", "before", "other"])
    expect.check_labels({}, [])
    with pytest.raises(
        ValueError, match="no kernel is labelled 'after': the kernels are a, before"
    ):
        expect.check_labels(EXPECTED, ["a", "before"])
    with pytest.raises(ValueError, match="no kernel is labelled 'before': there is no --kernel"):
        expect.check_labels(EXPECTED, [])

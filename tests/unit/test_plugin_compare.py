# SPDX-License-Identifier: GPL-2.0-only
"""Runs on several kernels: the comparison in the summary, and --napi-expect."""

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_napi.report.record import read_results
from pytest_napi.run import Run
from samples import kernel

# What a test on each kernel and model does, without the guest it takes to do it.
PLAYED = """
import pytest

from pytest_napi.errors import GuestLost
from pytest_napi.experiments import Inconclusive
from pytest_napi.fixtures import RUN
from pytest_napi.repeat import TEST
from pytest_napi.report.record import LOGGED
from pytest_napi.run import GuestTest
from records import BEFORE, OVER, STALL, record, result

PLOT = {plot}


def splats(test):
    test.record.splats.append(STALL)
    return [STALL]


@pytest.fixture
def plot(napi_target):
    return PLOT.get(napi_target.id, PLOT.get(napi_target.kernel.label, "pass"))


@pytest.fixture
def played(request, napi_target, plot):
    if "skip" in plot:
        pytest.skip("cannot be had")
    test = GuestTest(request.config.stash[RUN], request.node.nodeid)
    like = record(napi_target.kernel.label, model=napi_target.model)
    test.record.guest = like.guest
    request.node.stash[TEST] = test
    yield test
    if "late stall" in plot:
        test.record.splats.append(STALL)
        pytest.fail(LOGGED + STALL.line, pytrace=False)
    if "bad end" in plot:
        assert False, "bad end"


def test_it(played, plot):
    if "nothing" in plot:
        return
    rate = 10000.0 if "weak" in plot else None if "idle" in plot else 20000.0
    one = result(rate=rate, outcome="passed")
    played.record.results.append(one)
    if "stall" in plot.split(", "):
        played.new_splats = lambda: splats(played)
    if "bound" in plot:
        one.measurement, one.outcome, one.message = result(BEFORE).measurement, "failed", OVER
        pytest.fail(OVER, pytrace=False)
    if "undecided" in plot:
        raise Inconclusive("the host was busy")
    if "lost" in plot:
        raise GuestLost("guest lost: QEMU died")
    assert "error" not in plot, "an error of the test"
"""
EXPECT = "--napi-expect=before:fail,after:pass"
NO_REPRODUCTION = "this load does not reproduce the fault on this kernel (before)"


@pytest.fixture
def play(pytester, monkeypatch):
    """Run a test that plays what each kernel, or KERNEL-MODEL, does: a table of words."""

    def prepare(run):
        labels = [text.partition("=")[0] for text in run.settings.kernels]
        run.kernels = tuple(replace(kernel(), label=label) for label in labels)

    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the other plugins take their time
    monkeypatch.setattr(Run, "prepare", prepare)
    monkeypatch.setattr(Run, "header", lambda run: [])

    def run(*arguments, source="", models="none", **plot):
        pytester.makepyfile(PLAYED.replace("{plot}", repr(plot)) + source)
        kernels = [f"--kernel={label}=x" for label in ("before", "after", "other")]
        if "other" not in plot:
            kernels.pop()
        options = (f"--napi-preempt={models}", "--napi-results=r.json")
        return pytester.runpytest_inprocess(
            "-p", "pytest_napi.plugin", *kernels, *options, *arguments
        )

    return run


def test_the_summary_compares_the_kernels(play):
    result = play(before="bound", after="pass")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*= napi =*",
            "netdev_deletion, seconds",
            "before *FAILED (bound)",
            "",
            "netdev_deletion, preempt=none, test_the_summary_compares_the_kernels.py::test_it",
            " * before * after",
            "mean * 1.22 s * 0.10 s",
            "load: 20000/s and 20000/s, 0.0 % apart",
        ]
    )
    result.stdout.no_fnmatch_line("*not a success*")


def test_an_invalid_comparison_is_no_success(play):
    result = play(after="weak")
    assert result.ret == 1
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "invalid: the loads differ by 50 %: the figures cannot be compared",
            "not a success: *",
        ]
    )


@pytest.mark.parametrize(
    ("plot", "status", "outcomes"),
    [
        ({"before": "bound"}, 0, {"xfailed": 1, "passed": 1}),
        ({"before": "bound, stall"}, 0, {"xfailed": 1, "passed": 1}),
        ({"before": "stall"}, 0, {"xfailed": 1, "passed": 1}),
        ({"before": "bound, late stall"}, 0, {"xfailed": 1, "passed": 1}),
        ({"before": "stall, late stall"}, 0, {"xfailed": 1, "passed": 1}),
        ({"before": "bound, bad end"}, 1, {"xfailed": 1, "errors": 1, "passed": 1}),
        ({"before": "pass"}, 1, {"failed": 1, "passed": 1}),
        ({"before": "late stall"}, 1, {"failed": 1, "errors": 1, "passed": 1}),
        ({"before": "error"}, 1, {"failed": 1, "passed": 1}),
        ({"before": "error, stall"}, 1, {"failed": 1, "passed": 1}),
        ({"before": "error, late stall"}, 1, {"failed": 1, "errors": 1, "passed": 1}),
        ({"before": "bound", "after": "bound"}, 1, {"xfailed": 1, "failed": 1}),
        ({"before": "bound", "after": "stall"}, 1, {"xfailed": 1, "failed": 1}),
        ({"before": "pass", "after": "bound"}, 1, {"failed": 2}),
        ({"before": "undecided"}, 6, {"inconclusive": 1, "passed": 1}),
        ({"before": "bound", "after": "undecided"}, 6, {"xfailed": 1, "inconclusive": 1}),
        ({"before": "bound", "after": "lost"}, 6, {"xfailed": 1, "errors": 1}),
        ({"before": "lost", "after": "bound"}, 1, {"failed": 1, "errors": 1}),
        ({"before": "lost", "after": "pass"}, 6, {"passed": 1, "errors": 1}),
        ({"before": "bound", "after": "skip"}, 6, {"xfailed": 1, "skipped": 1}),
        ({"before": "skip", "after": "pass"}, 6, {"passed": 1, "skipped": 1}),
        ({"before": "nothing", "after": "nothing"}, 6, {"passed": 2}),
        ({"before": "bound", "after": "weak"}, 1, {"xfailed": 1, "passed": 1}),
        ({"before": "bound", "after": "idle"}, 1, {"xfailed": 1, "passed": 1}),
    ],
    ids=str,
)
def test_expectations(play, plot, status, outcomes):
    result = play(EXPECT, **plot)
    counted = result.parseoutcomes()
    counted.pop("warnings", None)
    assert (result.ret, counted) == (status, outcomes)
    said = [line for line in result.outlines if line.startswith("expected ")]
    assert len(said) == 2
    if status == 0:
        assert all(line.endswith(": as expected") for line in said)
    elif plot.get("after") not in ("weak", "idle") and plot != {"before": "bound, bad end"}:
        assert not all(line.endswith(": as expected") for line in said)


def test_an_expected_fault_is_shown_as_one(play, pytester):
    result = play(EXPECT, "-rx", "--junitxml=j.xml", before="bound", after="pass")
    result.stdout.fnmatch_lines(
        [
            "before *FAILED (bound), expected",
            "after *passed",
            "expected before:fail — failed (bound): as expected",
            "expected after:pass — passed: as expected",
            "XFAIL *test_it[[]before-none[]] - expected: before:fail",
            "*1 passed, 1 xfailed*",
        ]
    )
    assert 'type="pytest.xfail" message="expected: before:fail"' in Path("j.xml").read_text()
    record, _ = read_results(Path("r.json")).tests
    assert (record.outcome, record.expected) == ("failed", "fail")


def test_a_base_that_passes_says_so(play):
    result = play(EXPECT, before="pass")
    result.stdout.fnmatch_lines(
        [
            f"*{NO_REPRODUCTION}: the pass of the others proves nothing",
            "before *passed, not expected",
            f"expected before:fail — passed: {NO_REPRODUCTION}: the pass *",
            "FAILED *test_it[[]before-none[]]*",
        ]
    )


def test_each_model_counts_by_itself(play):
    result = play(EXPECT, models="none,full", **{"before-none": "bound", "before-full": "pass"})
    assert result.ret == 1
    result.assert_outcomes(xfailed=1, failed=1, passed=2)
    result.stdout.fnmatch_lines([f"expected before:fail — *{NO_REPRODUCTION}*(preempt=full, *"])
    assert play(EXPECT, models="none,full", before="bound").ret == 0
    skipped = dict.fromkeys(("before-full", "after-full"), "skip")
    assert play(EXPECT, models="none,full", **{"before": "bound", **skipped}).ret == 6


def test_a_test_that_measures_nothing_counts_as_usual(play):
    good = "\ndef test_other(guest_free): pass\n"
    free = "\n@pytest.fixture\ndef guest_free(napi_target): pass\n"
    assert play(EXPECT, source=free + good, before="bound").ret == 0
    bad = "\ndef test_other(): assert False\n"
    result = play(EXPECT, source=bad, before="bound")
    assert result.ret == 1
    result.assert_outcomes(xfailed=1, passed=1, failed=1)


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("def test_other(): assert False\n", "lost"),
        ("def test_other(napi_target): raise GuestLost('guest lost')\n", "skip"),
    ],
)
def test_only_a_guest_that_was_to_measure_may_be_lost(play, source, after):
    assert play(EXPECT, source="\n" + source, before="bound", after=after).ret == 1


@pytest.mark.parametrize(
    ("other", "status"),
    [("bound", 0), ("pass", 0), ("stall", 0), ("late stall", 0), ("weak", 0), ("undecided", 0),
     ("skip", 0), ("error", 1), ("lost", 1)],
)  # fmt: skip
def test_a_kernel_that_is_not_mentioned(play, other, status):
    result = play(EXPECT, before="bound", after="pass", other=other)
    assert result.ret == status
    if other == "bound":
        result.assert_outcomes(xfailed=2, passed=1)
        result.stdout.fnmatch_lines(["other *FAILED (bound), not counted"])


def test_an_expectation_of_a_kernel_that_is_not_there(play):
    result = play("--napi-expect=befroe:fail")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: --napi-expect: no kernel is labelled 'befroe': the kernels are before, after"
    ]


def test_expectations_from_an_ini_file(play, pytester):
    pytester.makeini("[pytest]\nnapi_expect = before:fail, after:pass\n")
    assert play(before="bound").ret == 0
    assert play("--napi-expect=before:pass", before="bound").ret == 1


def test_nothing_is_judged_when_nothing_is_run(play):
    result = play(EXPECT, "--collect-only", before="bound")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("expected *")
    assert play(EXPECT, "-k", "no_such_test").ret == pytest.ExitCode.NO_TESTS_COLLECTED

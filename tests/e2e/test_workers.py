# SPDX-License-Identifier: GPL-2.0-only
"""pytest-xdist's workers: the verdicts of one process, and nobody disturbs a measurement."""

import json
import os

import pytest

from runs import qemus

MIXED = """
import json, os, time
import pytest

@pytest.fixture
def span(request):
    begun = time.monotonic()
    yield
    with open("spans", "a") as file:
        line = {"begun": begun, "ended": time.monotonic(), "pid": os.getpid()}
        line["measuring"] = "deletion" in request.node.name
        file.write(json.dumps(line) + "\\n")

@pytest.mark.parametrize("n", range(2))
def test_deletion(reentry_load, netdev_deletion, bounds, span, n):
    with reentry_load(cpu=0) as load:
        deletion = netdev_deletion(seconds=3)
    bounds.check(deletion, control=load.rate)

@pytest.mark.parametrize("n", range(4))
def test_command(guest, span, n):
    assert guest.run(["sleep", "1"]).returncode == 0

def test_broken(guest, span):
    assert guest.run(["false"]).returncode == 0
"""


def spans(folder):
    path = folder / "spans"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("-n2",),
        pytest.param(
            ("-n4", "--dist=loadgroup"),
            marks=pytest.mark.skipif(
                not os.environ.get("NAPI_TEST_FULL"),
                reason="a minute more of the same: NAPI_TEST_FULL is not set",
            ),
        ),
    ],
)
def test_workers_give_the_verdicts_of_one_process(napi, kernel_6_12, tmp_path, options):
    run = napi(
        *("--kernel=k=debian:6.12", "--napi-preempt=none,full", "--napi-memory=497M"),
        *options,
        source=MIXED,
    )
    assert run.status == 1
    assert len(run.tests) == 14
    for test in run.tests:
        model, name = test["guest"]["preemption"], test["nodeid"]
        bad = "broken" in name or ("deletion" in name and model == "none")
        assert test["outcome"] == ("failed" if bad else "passed"), name
    assert run.out.count("netdev_deletion, seconds") == 1
    assert qemus("497M") == []
    found = spans(tmp_path)
    assert len({span["pid"] for span in found}) > 1
    for measuring in (span for span in found if span["measuring"]):
        for other in found:
            apart = other["ended"] < measuring["begun"] or measuring["ended"] < other["begun"]
            assert other is measuring or apart

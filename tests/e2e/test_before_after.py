# SPDX-License-Identifier: GPL-2.0-only
"""A kernel with the fault and its twin with the fix: built, compared, bisected."""

import subprocess
import sys

import pytest

from cli import PATCH, PROJECT, pytest_napi
from runs import SELFTESTS

EXPECT = "--napi-expect=before:fail,after:pass"
DELETION = str(SELFTESTS / "test_netdev_deletion.py")


def kernels(**labelled):
    return [f"--kernel={label}={image}" for label, image in labelled.items()]


def loaded(test):
    return test["results"][0]["measurement"]["loaded"]["samples"]


def test_a_fix_is_shown(napi, images, tmp_path):
    run = napi(*kernels(**images), EXPECT, DELETION)
    assert run.status == 0
    before, after = run.tests
    assert "rcu_stall" in {splat["kind"] for splat in before["splats"]}
    assert after["splats"] == []
    rates = [test["results"][0]["load"]["reentries_per_second"] for test in run.tests]
    assert max(rates) < 1.1 * min(rates)
    worst = [max(sample["duration_ns"] for sample in loaded(test)) for test in run.tests]
    assert worst[0] > 2e9
    assert worst[1] < 0.5e9

    said = pytest_napi("compare", "--mail", str(tmp_path / "results.json"))
    assert said.returncode == 0
    print(said.stdout)
    assert max(map(len, said.stdout.splitlines())) <= 72
    for word in ("before", "after", "worst", "over 1 s", "RCU stalls"):
        assert word in said.stdout


def test_swapped_kernels_are_red(napi, images):
    run = napi(*kernels(before=images["after"], after=images["before"]), EXPECT, DELETION)
    assert run.status == 1
    assert "does not reproduce the fault" in run.out


def test_a_base_without_the_fault_is_an_error(napi, images):
    run = napi(*kernels(before=images["after"], after=images["after"]), EXPECT, DELETION)
    assert run.status == 1
    assert "does not reproduce the fault" in run.out


def git(repository, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=repository, capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    return done.stdout


@pytest.fixture
def history(tmp_path, images):
    """Make five commits that are mended in the third; "building" one is copying a built kernel."""
    repository = tmp_path / "linux"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / ".gitignore").write_text("bzImage\n")
    for number in range(1, 6):
        (repository / "kernel").write_text(str(images["after" if number >= 3 else "before"]))
        (repository / "other").write_text(str(number))
        git(repository, "add", ".")
        git(repository, "commit", "-q", "-m", f"commit {number}")
    return repository


def test_a_fix_is_bisected(history):
    git(history, "bisect", "start", "--term-old=broken", "--term-new=fixed", "HEAD", "HEAD~4")
    step = ["bisect-step", "--find-fix", "--build-command=cp $(cat kernel) bzImage"]
    said = git(
        history,
        *("bisect", "run", sys.executable, "-m", "pytest_napi.commands", *step),
        *("--kernel=bzImage", "--", f"--rootdir={history}", "-p", "no:cacheprovider", DELETION),
    )
    assert "is the first fixed commit" in said
    assert "commit 3" in said.partition("is the first fixed commit")[2]


def test_a_step_that_really_builds(images, tmp_path):
    step = ("bisect-step", "--source=debian:6.12")
    step += (f"--config={PROJECT / 'configs/preempt-none.config'}", f"--patch={PATCH}")
    arguments = ("--", f"--rootdir={tmp_path}", "-p", "no:cacheprovider", DELETION)
    done = pytest_napi(*step, *arguments, cwd=tmp_path)
    assert (done.returncode, "the tests pass" in done.stdout) == (0, True)
    twice = pytest_napi(*step, f"--patch={PATCH}", *arguments, cwd=tmp_path)
    assert (twice.returncode, "given twice" in twice.stdout) == (125, True)

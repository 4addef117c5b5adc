# SPDX-License-Identifier: GPL-2.0-only
"""Copies of saved guests: fresh, right about the time, and replaced by a boot where they fail."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pytest_napi.cache import cache_folder
from runs import command, qemus

COPIES = """
import json, time
import pytest

@pytest.mark.parametrize("n", range(3))
def test_it(guest, n, request):
    clock = float(guest.run(["date", "+%s"], text=True).stdout) - time.time()
    left = guest.run(["test", "-e", "/tmp/left"]).returncode == 0
    guest.write_text("/tmp/left", "")
    random = guest.run(["head", "-c", "16", "/dev/urandom"]).stdout.hex()
    with open("copies", "a") as file:
        file.write(json.dumps({"clock": clock, "left": left, "random": random}) + "\\n")
"""

ONE = """
def test_it(guest):
    assert guest.run(["true"]).returncode == 0
"""


@pytest.fixture
def own_cache(tmp_path_factory, kernel_6_12):
    """Make a cache that has everything but saved guests, and name it for runs of pytest."""
    cache = tmp_path_factory.mktemp("cache")  # not where pytest looks for tests
    for entry in cache_folder().iterdir():
        if entry.name != "templates":
            (cache / entry.name).symlink_to(entry)
    return {"PYTEST_NAPI_CACHE": str(cache)}


@pytest.fixture
def templates(own_cache):
    """Return the saved guests there are, as folders."""
    return lambda: [
        path.parent for path in Path(own_cache["PYTEST_NAPI_CACHE"]).glob("templates/*/state")
    ]


def notes(run):
    """Return what was noted of saved guests: QEMU 7.2 loses a boot now and then, noted too."""
    said = [note for test in run.tests for note in test["notes"]]
    return [note for note in said if not note.startswith(("booted again: ", "run again: "))]


def test_copies_are_fresh_and_have_their_own_time_and_random_numbers(
    napi, own_cache, templates, tmp_path
):
    run = napi("--kernel=k=debian:6.12", source=COPIES, env=own_cache)
    assert run.status == 0
    assert [test["guest"]["restored"] for test in run.tests] == [False, True, True]
    copies = [json.loads(line) for line in (tmp_path / "copies").read_text().splitlines()]
    assert not any(copy["left"] for copy in copies)
    assert len({copy["random"] for copy in copies}) == 3
    assert max(abs(copy["clock"]) for copy in copies) < 2
    assert len(templates()) == 1


def test_what_can_be_wrong_with_a_saved_guest(napi, own_cache, templates):
    assert napi("--kernel=k=debian:6.12", source=ONE, env=own_cache).status == 0
    for name in ("state", "memory"):
        (saved,) = templates()
        os.truncate(saved / name, (saved / name).stat().st_size // 2)
        run = napi("--kernel=k=debian:6.12", source=ONE, env=own_cache)
        assert run.status == 0
        (note,) = notes(run)
        assert "could not be restored" in note
        assert note in run.out
    run = napi("--kernel=k=debian:6.12", source=ONE, env=own_cache)
    assert (run.status, notes(run)) == (0, [])


def test_a_machine_that_cannot_be_saved_is_booted(napi, own_cache, templates, tmp_path):
    wrapped = tmp_path / "bin" / "qemu-system-x86_64"
    wrapped.parent.mkdir()
    qemu = shutil.which("qemu-system-x86_64")
    disk = "-blockdev null-co,node-name=d -device nvme,serial=s,drive=d"
    wrapped.write_text(
        f'#!/bin/sh\ncase "$*" in *-kernel*) set -- "$@" {disk};; esac\nexec {qemu} "$@"\n'
    )
    wrapped.chmod(0o755)
    path = f"{wrapped.parent}:{os.environ['PATH']}"
    source = "import pytest\n" + ONE.replace("def", '@pytest.mark.parametrize("n", [1, 2])\ndef')
    run = napi(
        "--kernel=k=debian:6.12",
        source=source.replace("(guest)", "(guest, n)"),
        env={**own_cache, "PATH": path},
    )
    assert run.status == 0
    assert [test["guest"]["restored"] for test in run.tests] == [False, False]
    assert all("cannot be saved" in note and "nvme" in note for note in notes(run))
    assert len(notes(run)) == 2
    assert templates() == []


def start(folder, env):
    folder.mkdir()
    (folder / "test_it.py").write_text(ONE)
    return subprocess.Popen(
        command(folder, "--kernel=k=debian:6.12", "--napi-memory=498M"),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **env},
    )


def test_two_runs_at_once_save_one_guest(own_cache, templates, tmp_path):
    runs = [start(tmp_path / name, own_cache) for name in ("first", "second")]
    for run in runs:
        print(run.communicate(timeout=120)[0])
        assert run.returncode == 0
    assert len(templates()) == 1
    results = [tmp_path / name / "results.json" for name in ("first", "second")]
    tests = [json.loads(path.read_text())["tests"][0] for path in results]
    assert sorted(test["guest"]["restored"] for test in tests) == [False, True]


def test_a_killed_maker_is_in_nobodys_way(own_cache, templates, tmp_path):
    killed = start(tmp_path / "killed", own_cache)
    deadline = time.monotonic() + 60
    while not qemus("498M"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    run = start(tmp_path / "next", own_cache)
    out, _ = run.communicate(timeout=120)
    print(out)
    assert run.returncode == 0
    assert len(templates()) == 1
    assert not list(Path(own_cache["PYTEST_NAPI_CACHE"]).glob("templates/.new-*"))
    assert qemus("498M") == []

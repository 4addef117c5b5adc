# SPDX-License-Identifier: GPL-2.0-only
"""Who has the host, among processes."""

import fcntl
import multiprocessing
import os
import signal
import threading

import pytest

from pytest_napi import quiet as module
from pytest_napi.errors import HostUnfit
from pytest_napi.quiet import Quiet

SPAWN = multiprocessing.get_context("fork")
LONG = 20  # seconds: what is waited for takes milliseconds


def hold(folder, how, pipe):
    quiet = Quiet(folder)
    getattr(quiet, how)(lambda: pipe.send("waits"))
    pipe.send("holds")
    pipe.recv()
    quiet.release()


class Process:
    """Another process that holds, or waits for, the host."""

    def __init__(self, folder, how):
        self.pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=hold, args=(folder, how, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def says(self):
        assert self.pipe.poll(LONG)
        return self.pipe.recv()

    def release(self):
        self.pipe.send("release")
        self.process.join(LONG)


@pytest.fixture
def start(tmp_path):
    started = []

    def make(how):
        started.append(Process(tmp_path, how))
        return started[-1]

    yield make
    for each in started:
        each.process.kill()
        each.process.join()


def test_sharers_hold_it_together(start):
    assert [start("share").says() for _ in range(3)] == ["holds"] * 3


def test_those_that_share_do_not_wait_for_each_other_in_the_gate(tmp_path):
    with (tmp_path / "quiet.gate").open("w") as gate:  # where one that shares is for a moment
        fcntl.flock(gate, fcntl.LOCK_SH)
        quiet = Quiet(tmp_path)
        quiet.share(pytest.fail)
        quiet.release()


@pytest.mark.parametrize(
    ("first", "second"), [("measure", "share"), ("share", "measure"), ("measure", "measure")]
)
def test_a_measurement_has_it_alone(start, first, second):
    holder = start(first)
    assert holder.says() == "holds"
    other = start(second)
    assert other.says() == "waits"
    assert not other.pipe.poll(0.05)
    holder.release()
    assert other.says() == "holds"


def test_the_killed_one_holds_nothing(start):
    holder = start("measure")
    assert holder.says() == "holds"
    other = start("measure")
    assert other.says() == "waits"
    os.kill(holder.process.pid, signal.SIGKILL)
    assert other.says() == "holds"


def test_those_that_share_do_not_overtake_a_measurement_that_waits(start):
    sharer = start("share")
    assert sharer.says() == "holds"
    measurement = start("measure")
    assert measurement.says() == "waits"
    late = start("share")
    assert late.says() == "waits"
    sharer.release()
    assert measurement.says() == "holds"
    assert not late.pipe.poll(0.05)
    measurement.release()
    assert late.says() == "holds"


def share_then_measure(folder, barrier, pipe):
    quiet = Quiet(folder)
    quiet.share()
    barrier.wait(LONG)  # both share now
    quiet.measure()
    pipe.send(quiet.measuring)
    quiet.release()


def test_two_that_share_may_both_come_to_measure(tmp_path):
    barrier = SPAWN.Barrier(2)
    ours, theirs = zip(*(SPAWN.Pipe() for _ in range(2)), strict=True)
    processes = [
        SPAWN.Process(target=share_then_measure, args=(tmp_path, barrier, pipe), daemon=True)
        for pipe in theirs
    ]
    try:
        for process in processes:
            process.start()
        assert [pipe.poll(LONG) and pipe.recv() for pipe in ours] == [True] * 2
    finally:
        for process in processes:
            process.kill()
            process.join()


def test_who_measures_may_share_again(tmp_path):
    one, other = Quiet(tmp_path), Quiet(tmp_path)
    one.measure()
    one.measure()
    one.share()
    assert not one.measuring
    other.share()
    one.release()
    one.release()


def test_an_interrupted_wait_holds_nothing(tmp_path, start):
    holder = start("measure")
    assert holder.says() == "holds"
    quiet = Quiet(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            quiet.measure(
                lambda: threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            )
    finally:
        signal.signal(signal.SIGINT, before)
    holder.release()
    other = Quiet(tmp_path)
    other.measure(pytest.fail)
    other.release()
    quiet.release()


def interrupt_the_next_close(monkeypatch):
    """As a signal does whose handler runs when the call ends."""
    close = os.close

    def interrupted(descriptor):
        monkeypatch.setattr(module.os, "close", close)
        close(descriptor)
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "close", interrupted)


@pytest.mark.parametrize("how", ["share", "measure"])
def test_an_interrupt_just_as_it_is_had_leaves_nothing_held(tmp_path, monkeypatch, how):
    quiet = Quiet(tmp_path)
    interrupt_the_next_close(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        getattr(quiet, how)()
    assert not quiet.measuring
    Quiet(tmp_path).measure(pytest.fail)


def test_an_interrupted_release_closes_no_descriptor_twice(tmp_path, monkeypatch):
    quiet = Quiet(tmp_path)
    quiet.share()
    interrupt_the_next_close(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        quiet.release()
    quiet.release()  # EBADF, or another's descriptor, if it were closed again


def test_the_files_are_private_and_not_inherited(tmp_path):
    quiet = Quiet(tmp_path)
    quiet.share()
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
        "quiet.gate": 0o600,
        "quiet.lock": 0o600,
    }
    assert not os.get_inheritable(quiet._held)
    quiet.release()


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(HostUnfit, match="PYTEST_NAPI_CACHE"):
        Quiet(tmp_path / "file").share()


def test_that_a_measurement_waits_can_be_told(tmp_path, start):
    quiet = Quiet(tmp_path)
    sharer = start("share")
    assert sharer.says() == "holds"
    assert not quiet.wanted
    other = start("measure")
    assert other.says() == "waits"
    assert quiet.wanted
    sharer.release()
    assert other.says() == "holds"
    assert not quiet.wanted
    assert not quiet.sharing

# SPDX-License-Identifier: GPL-2.0-only
"""Which prepared guests are taken, and what becomes of the others."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_napi.errors import GuestLost
from pytest_napi.guest import pool as module
from pytest_napi.guest.boot import BootConfig
from pytest_napi.guest.pool import DEPTH, Pool, Request, available_mib
from pytest_napi.machine.emulator import Accelerator, Emulator

CONFIG = BootConfig(Emulator(Path("/q"), (7, 2, 22)), Accelerator("tcg", ""), Path("/c"))
REQUEST = Request("kernel", CONFIG, Path("/f"))
OTHER = replace(REQUEST, folder=Path("/g"))


class Guest:
    def __init__(self):
        self.thread = threading.current_thread()
        self.closed = False

    def close(self):
        self.closed = True


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(module.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(module, "available_mib", lambda: 4096)
    return []


@pytest.fixture
def pool(made):
    def copy(kernel, config, folder):
        if config.model == "broken":
            raise GuestLost("guest lost: QEMU died")
        made.append(Guest())
        return made[-1]

    with Pool(copy) as pool:
        yield pool


def test_who_asked_for_it_gets_it_once(pool, made):
    pool.prepare([REQUEST])
    assert pool.take(REQUEST) is made[0]
    assert pool.take(REQUEST) is None
    assert not made[0].closed


def test_one_nobody_asks_for_is_ended(pool, made):
    pool.prepare([REQUEST])
    assert pool.take(OTHER) is None
    pool.prepare([OTHER])
    assert [guest.closed for guest in made[:1]] == [True]
    pool.close()
    assert [guest.closed for guest in made] == [True, True]


def test_as_many_as_are_worth_it_and_none_twice(pool, made):
    requests = [replace(REQUEST, folder=Path(name)) for name in "abc"]
    pool.prepare(requests)
    pool.settle()
    assert len(made) == DEPTH == 2
    assert pool.take(requests[0]) in made
    pool.prepare(requests[1:])
    pool.settle()
    assert len(made) == 3
    assert not any(guest.closed for guest in made)


def test_they_are_made_by_threads_that_live_on(pool, made):
    for _ in range(3):
        pool.prepare([REQUEST, OTHER])
        pool.take(REQUEST)
        pool.take(OTHER)
    assert all(guest.thread.is_alive() for guest in made)


def test_one_that_cannot_be_restored_is_none(pool):
    broken = replace(REQUEST, config=replace(CONFIG, model="broken"))
    pool.prepare([broken])
    pool.settle()
    assert pool.take(broken) is None
    pool.prepare([broken])


def test_a_host_without_cpu_or_memory_to_spare_prepares_none(made, monkeypatch):
    with Pool(lambda *_: made.append(Guest()), workers=2) as pool:
        pool.prepare([REQUEST])
    monkeypatch.setattr(module, "available_mib", lambda: CONFIG.memory_mib + 100)
    with Pool(lambda *_: made.append(Guest())) as pool:
        pool.prepare([REQUEST])
    assert made == []


def test_available_memory_is_known():
    assert available_mib() > 0

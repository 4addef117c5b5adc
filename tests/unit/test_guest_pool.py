# SPDX-License-Identifier: GPL-2.0-only
"""Which prepared guests are taken, and what becomes of the others."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_napi.errors import GuestLost
from pytest_napi.guest import pool as module
from pytest_napi.guest.boot import BootConfig
from pytest_napi.guest.pool import Pool, Request, available_mib
from pytest_napi.machine.emulator import Accelerator, Emulator

CONFIG = BootConfig(Emulator(Path("/q"), (7, 2, 22)), Accelerator("tcg", ""), Path("/c"))
REQUEST = Request("kernel", CONFIG, Path("/f"))


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
    pool.prepare(REQUEST)
    assert pool.take(REQUEST) is made[0]
    assert pool.take(REQUEST) is None
    assert not made[0].closed


def test_one_nobody_asks_for_is_ended(pool, made):
    pool.prepare(REQUEST)
    assert pool.take(replace(REQUEST, folder=Path("/g"))) is None
    pool.prepare(REQUEST)
    pool.prepare(replace(REQUEST, config=replace(CONFIG, cpus=1)))
    pool.close()
    assert [guest.closed for guest in made] == [True, True, True]


def test_all_are_made_by_one_thread_that_lives_on(pool, made):
    for _ in range(3):
        pool.prepare(REQUEST)
        pool.take(REQUEST)
    (thread,) = {guest.thread for guest in made}
    assert thread.is_alive()


def test_one_that_cannot_be_restored_is_none(pool):
    broken = replace(REQUEST, config=replace(CONFIG, model="broken"))
    pool.prepare(broken)
    pool.settle()
    assert pool.take(broken) is None
    pool.prepare(broken)


def test_a_host_without_cpu_or_memory_to_spare_prepares_none(made, monkeypatch):
    with Pool(lambda *_: made.append(Guest()), workers=2) as pool:
        pool.prepare(REQUEST)
    monkeypatch.setattr(module, "available_mib", lambda: CONFIG.memory_mib + 100)
    with Pool(lambda *_: made.append(Guest())) as pool:
        pool.prepare(REQUEST)
    assert made == []


def test_available_memory_is_known():
    assert available_mib() > 0

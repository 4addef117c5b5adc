# SPDX-License-Identifier: GPL-2.0-only
"""The real agent, compiled and run on this host with ``--fd``: fixtures of the guest tests.

PYTEST_DONT_REWRITE: the tests import it before pytest loads it as a plugin.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_napi.cache import cache_folder
from pytest_napi.errors import HostUnfit
from pytest_napi.guest import Guest
from pytest_napi.image.programs import built
from pytest_napi.shipped import shipped

MB = 1000 * 1000


@pytest.fixture(scope="session")
def agent() -> Path:
    """The program every guest has; kept in the user's cache, since compiling takes seconds."""
    try:
        return built(shipped("images"), cache_folder()) / "init"
    except HostUnfit as error:
        pytest.skip(str(error))


class Served:
    """A guest whose agent is a child of the test."""

    def __init__(self, agent: Path, silence: float = 30.0) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.agent = subprocess.Popen(
                [agent, "--fd", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stderr=subprocess.PIPE,
                text=True,
            )
        self.silence = silence

    def guest(self) -> Guest:
        guest = Guest(self.socket, silence=self.silence)
        guest.wait_ready(5)
        return guest

    def end(self) -> str:
        """Hang up and return what the agent complained of; it has to end by itself."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        try:
            _, complaints = self.agent.communicate(timeout=5)
        finally:
            self.agent.kill()
        return complaints


@pytest.fixture
def served(agent: Path) -> Iterator[Served]:
    served = Served(agent)
    yield served
    assert served.end() == ""
    assert served.agent.returncode == 0


@pytest.fixture
def guest(served: Served) -> Iterator[Guest]:
    guest = served.guest()
    yield guest
    guest.close()


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", code]

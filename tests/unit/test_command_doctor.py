# SPDX-License-Identifier: GPL-2.0-only
"""What doctor says of a host."""

import shutil

import pytest

from pytest_napi.commands import doctor, main
from pytest_napi.errors import HostUnfit


def test_each_check_is_heard_and_a_remedy_said_once():
    def lacks():
        raise HostUnfit("busybox is not installed: apt-get install busybox-static")

    found = list(doctor.examine((lambda: "QEMU 10", lacks, lacks)))
    assert found == [
        (True, "QEMU 10"),
        (False, "busybox is not installed: apt-get install busybox-static"),
    ]


@pytest.fixture
def only(monkeypatch):
    """Leave these uses, with these checks."""

    def leave(**uses):
        monkeypatch.setattr(doctor, "CHECKS", {name.replace("_", " "): uses[name] for name in uses})

    return leave


def test_a_host_that_cannot_run_tests_is_unfit(only, capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    only(run_tests=(doctor._qemu,), build_kernels=())
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "LACKS  qemu-system-x86_64 is not installed: apt-get install qemu-system-x86" in out


def test_a_host_that_cannot_build_kernels_can_run_tests(only, capsys, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "flex" else f"/bin/{name}")
    only(run_tests=(doctor._python,), build_kernels=(doctor._build_tools,))
    assert main(["doctor"]) == 0
    assert "LACKS  a kernel build needs flex: apt-get install flex" in capsys.readouterr().out


def test_too_little_space(only, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTEST_NAPI_CACHE", str(tmp_path))
    monkeypatch.setitem(doctor._ROOM, "run tests", 10**9)
    only(run_tests=(doctor._room("run tests"),))
    assert main(["doctor"]) == 1
    assert f"GiB free in the cache {tmp_path}, 1000000000 are needed" in capsys.readouterr().out

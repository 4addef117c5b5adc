# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_napi.errors import HostUnfit
from pytest_napi.kernel import host

RELEASE = "6.8.0-45-generic"


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_image_in_boot_is_first(tmp_path: Path) -> None:
    beside_modules = touch(tmp_path / f"lib/modules/{RELEASE}/vmlinuz")
    assert host.find(tmp_path, RELEASE).image == beside_modules
    in_boot = touch(tmp_path / f"boot/vmlinuz-{RELEASE}")
    found = host.find(tmp_path, RELEASE)
    assert found.image == in_boot
    assert found.configs == (
        tmp_path / f"boot/config-{RELEASE}",
        tmp_path / f"lib/modules/{RELEASE}/config",
        tmp_path / "proc/config.gz",
    )


def test_no_image_names_the_places(tmp_path: Path) -> None:
    touch(tmp_path / "boot/vmlinuz-6.8.0-44-generic")
    with pytest.raises(HostUnfit) as caught:
        host.find(tmp_path, RELEASE)
    assert str(caught.value) == (
        f"host: no image of the running kernel {RELEASE}: "
        f"neither {tmp_path}/boot/vmlinuz-{RELEASE} "
        f"nor {tmp_path}/lib/modules/{RELEASE}/vmlinuz is there; "
        "give a bzImage instead"
    )


def test_unreadable_image_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = touch(tmp_path / f"boot/vmlinuz-{RELEASE}")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may read every file
    with pytest.raises(HostUnfit) as caught:
        host.find(tmp_path, RELEASE)
    assert str(caught.value) == (
        f"host: {image} cannot be read by this user: sudo chmod a+r {image}"
    )


def test_running_release_is_the_default(tmp_path: Path) -> None:
    with pytest.raises(HostUnfit, match=f"running kernel {os.uname().release}: "):
        host.find(tmp_path)

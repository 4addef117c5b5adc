# SPDX-License-Identifier: GPL-2.0-only
"""A QEMU newer than the host's, of the host's backports: in the cache, nothing is installed."""

import os
import platform
import subprocess

import pytest

from pytest_napi.cache import cache_folder, published
from pytest_napi.errors import NapiError
from pytest_napi.kernel.apt import Apt
from pytest_napi.kernel.architecture import ARCHITECTURES
from pytest_napi.kernel.control import Version, stanzas
from pytest_napi.kernel.store import locked
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.emulator import find_emulator

PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data")
WRAPPER = """#!/bin/sh
exec {root}/usr/bin/qemu-system-x86_64 -L {root}/usr/share/qemu -L /usr/share/seabios "$@"
"""


def environment(least):
    """Return the environment in which QEMU is ``least`` or later, or skip with the reason."""
    try:
        if find_emulator(BOARDS["x86_64"]).version >= least:
            return {}
        folder = _fetched()
    except NapiError as error:
        pytest.skip(str(error))
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def _fetched():
    cache = cache_folder() / "newer-qemu"
    with locked(cache, print):
        apt = Apt(cache / "apt", ARCHITECTURES["x86_64"])
        version = _version(apt)
        if version is None:
            apt.update()
            version = _version(apt)
        if version is None:
            pytest.skip("this host's backports have no QEMU")

        def make(folder):
            with apt.download(dict.fromkeys(PACKAGES, version)) as debs:
                for deb in debs:
                    subprocess.run(["dpkg-deb", "-x", deb, folder / "root"], check=True)

        folder = published(cache / version.replace(":", "_"), make)
        wrapper = folder / "qemu-system-x86_64"
        wrapper.write_text(WRAPPER.format(root=folder / "root"))
        wrapper.chmod(0o755)
    done = subprocess.run([wrapper, "--version"], capture_output=True, text=True, check=False)
    if done.returncode:  # a library of the newer release that this host lacks
        pytest.skip(done.stderr.strip())
    return folder


def _version(apt):
    """Return the newest version that is built for this release of the distribution."""
    here = "~bpo" + platform.freedesktop_os_release().get("VERSION_ID", "")
    found = [
        stanza["Version"]
        for stanza in stanzas(apt.show([PACKAGES[0]]))
        if here in stanza["Version"]
    ]
    return max(found, key=Version, default=None)

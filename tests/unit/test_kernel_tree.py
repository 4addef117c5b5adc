# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import lzma
import os
from pathlib import Path

import pytest
from test_kernel_deb import Log

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import Kernel, parse_spec
from pytest_napi.kernel import resolve as resolve_spec
from samples import CONFIG, bzimage, ikconfig, module

RELEASE = "6.12.117-g1234"
X86 = CONFIG + "CONFIG_X86=y\n"
OTHER = "# Linux/x86 7.3.4 Kernel Configuration\nCONFIG_X86=y\n"
IMAGE = "arch/x86/boot/bzImage"


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        "Makefile": "include ../Makefile\n",
        ".config": X86,
        "include/config/auto.conf": "CONFIG_X86=y\n",
        "include/config/kernel.release": f"{RELEASE}\n",
        "drivers/net/veth.ko": module(depends=""),
        "modules.order": "drivers/net/veth.o\n",
        IMAGE: bzimage(RELEASE),
    }
    return write(tmp_path / "linux", files)


def resolve(path: Path, tmp_path: Path, log: Log) -> Kernel:
    return resolve_spec(parse_spec(str(path)), tmp_path / "cache", log)


def refused(path: Path, tmp_path: Path) -> str:
    with pytest.raises(KernelUnusable) as caught:
        resolve(path, tmp_path, Log())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_image_config_and_modules(tree: Path, tmp_path: Path) -> None:
    log = Log()
    kernel = resolve(tree, tmp_path, log)
    assert (kernel.label, kernel.source) == (RELEASE, str(tree))
    assert kernel.image == tree / IMAGE
    assert kernel.config is not None
    assert kernel.config.source == str(tree / ".config")
    assert kernel.modules is not None
    assert kernel.modules.path_of("veth") == tree / "drivers/net/veth.ko"
    assert log == []


def test_image_by_the_name_of_its_link(tree: Path, tmp_path: Path) -> None:
    (tree / "arch/x86_64/boot").mkdir(parents=True)
    link = tree / "arch/x86_64/boot/bzImage"
    link.symlink_to("../../x86/boot/bzImage")
    kernel = resolve(link, tmp_path, Log())
    assert kernel.config is not None
    assert kernel.modules is not None
    assert "veth" in kernel.modules


def test_not_built(tree: Path, tmp_path: Path) -> None:
    (tree / IMAGE).unlink()
    assert refused(tree, tmp_path) == f"{tree}: build tree without an image: make bzImage"
    (tree / ".config").write_text("CONFIG_ARM64=y\n")
    assert refused(tree, tmp_path) == f"{tree}: build tree without an image: make Image"


def test_image_is_that_of_the_config(tree: Path, tmp_path: Path) -> None:
    write(tree, {"arch/arm64/boot/Image": b"of an earlier build"})
    assert resolve(tree, tmp_path, Log()).image == tree / IMAGE
    (tree / ".config").write_text("CONFIG_RISCV=y\n")
    message = "configured for another architecture; only x86_64, aarch64 kernels can be tested"
    assert refused(tree, tmp_path) == f"{tree}: {message}"


def test_image_alone_is_enough(tmp_path: Path) -> None:
    copied = write(tmp_path / "copied", {IMAGE: bzimage(RELEASE)})
    assert resolve(copied, tmp_path, Log()).config is None


@pytest.mark.parametrize("config", [None, ""])
def test_not_configured(tmp_path: Path, config: str | None) -> None:
    source = write(tmp_path / "linux", {"Makefile": "", "Kconfig": ""})
    if config is not None:
        write(source, {".config": config})
    message = "source tree that is not configured: make defconfig, then make"
    assert refused(source, tmp_path) == f"{source}: {message}"


def test_config_of_another_series(tree: Path, tmp_path: Path) -> None:
    (tree / ".config").write_text(OTHER)
    log = Log()
    assert resolve(tree, tmp_path, log).config is None
    assert log == [
        f"{tree}: .config is of 7.3 and not of the image, {RELEASE}: "
        "make bzImage to have one kernel"
    ]


def test_other_release(tree: Path, tmp_path: Path) -> None:
    (tree / "include/config/kernel.release").write_text("6.12.117-g5678\n")
    log = Log()
    assert resolve(tree, tmp_path, log).release == RELEASE
    assert log == [
        f"{tree}: the image is {RELEASE}, the tree is at 6.12.117-g5678: "
        "make bzImage to have one kernel"
    ]


@pytest.mark.parametrize("has_own", [True, False])
def test_config_changed_after_the_build(tree: Path, tmp_path: Path, has_own: bool) -> None:
    payload = lzma.compress(ikconfig() if has_own else b"code") + b"size"
    (tree / IMAGE).write_bytes(bzimage(RELEASE, payload=payload))
    os.utime(tree / "include/config/auto.conf", (1, 1))
    log = Log()
    config = resolve(tree, tmp_path, log).config
    assert config is not None
    assert config.source == (f"{tree / IMAGE} (IKCONFIG)" if has_own else str(tree / ".config"))
    assert log == [
        f"{tree}: .config was changed after the image was built: make bzImage to have one kernel"
    ]

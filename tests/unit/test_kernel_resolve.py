# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import gzip
import lzma
import sys
from pathlib import Path

import pytest
from test_kernel_deb import IMAGE, OLD, Log

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import Kernel, debian, host, parse_spec
from pytest_napi.kernel import resolve as resolve_spec
from samples import BANNER, CONFIG, RELEASE, bzimage, deb, ikconfig


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "kernels" / "boot" / "bzImage"
    path.parent.mkdir(parents=True)
    path.write_bytes(bzimage())
    return path


def resolve(value: object, tmp_path: Path) -> Kernel:
    return resolve_spec(parse_spec(str(value)), tmp_path / "cache", Log())


def test_bare_image(image: Path, tmp_path: Path) -> None:
    kernel = resolve(image, tmp_path)
    assert (kernel.label, kernel.release, kernel.banner) == (RELEASE, RELEASE, BANNER)
    assert (kernel.image, kernel.source) == (image, str(image))
    assert (kernel.config, kernel.modules) == (None, None)
    assert {kernel}  # hashable: kernels are parameters of tests


def test_gzipped_config_is_read(image: Path, tmp_path: Path) -> None:
    image.rename(image.with_name(f"vmlinuz-{RELEASE}"))
    config = tmp_path / "kernels/proc/config.gz"
    config.parent.mkdir()
    running = host.HostKernel(image.with_name(f"vmlinuz-{RELEASE}"), (config,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "find", lambda: running)
        config.write_bytes(b"no gzip file")
        assert resolve("host", tmp_path).config is None
        config.write_bytes(gzip.compress(CONFIG.encode()))
        kernel = resolve("host", tmp_path)
    assert (kernel.label, kernel.source) == (RELEASE, "host")
    assert kernel.config is not None
    assert kernel.config.source == str(config)


def test_label(image: Path, tmp_path: Path) -> None:
    assert resolve(f"new={image}", tmp_path).label == "new"


def test_home_is_expanded_behind_a_label(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(image.parent))
    assert resolve("new=~/bzImage", tmp_path).image == image


def test_relative_path(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(image.parent)
    assert resolve("bzImage", tmp_path).image == image


@pytest.mark.parametrize("name", [f"config-{RELEASE}", "bzImage.config", ".config", "config"])
def test_config_beside_the_image(image: Path, tmp_path: Path, name: str) -> None:
    image.with_name(name).write_text(CONFIG)
    kernel = resolve(image, tmp_path)
    assert kernel.config is not None
    assert kernel.config.value("VETH") == "m"
    assert kernel.config.source == str(image.with_name(name))


def test_config_of_another_kernel_is_passed_over(image: Path, tmp_path: Path) -> None:
    image.with_name("config").write_text("# Linux/x86 7.3.4 Kernel Configuration\nCONFIG_A=y\n")
    image.with_name(".config").write_text("no config at all")
    assert resolve(image, tmp_path).config is None


def test_image_in_a_build_tree(tmp_path: Path) -> None:
    image = tmp_path / "linux/arch/x86/boot/bzImage"
    image.parent.mkdir(parents=True)
    image.write_bytes(bzimage())
    (tmp_path / "linux/.config").write_text(CONFIG)
    kernel = resolve(image, tmp_path)
    assert kernel.config is not None
    assert kernel.config.source == str(tmp_path / "linux/.config")


def test_embedded_config_is_read_once(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image.write_bytes(bzimage(payload=lzma.compress(ikconfig()) + b"size"))
    first = resolve(image, tmp_path).config
    assert first is not None
    assert first.source == f"{image} (IKCONFIG)"
    # By its name: the package has a function of the same name as the module.
    monkeypatch.setattr(sys.modules["pytest_napi.kernel.resolve"], "embedded_config", None)
    assert resolve(image, tmp_path).config == first


def test_replaced_image_is_read_anew(image: Path, tmp_path: Path) -> None:
    assert resolve(image, tmp_path).config is None
    image.write_bytes(bzimage(payload=lzma.compress(ikconfig()) + b"size"))
    assert resolve(image, tmp_path).config is not None


@pytest.mark.parametrize(
    "place", [f"boot/lib/modules/{RELEASE}", f"lib/modules/{RELEASE}", f"usr/lib/modules/{RELEASE}"]
)
def test_modules_near_the_image(image: Path, tmp_path: Path, place: str) -> None:
    tree = image.parent.parent / place
    tree.mkdir(parents=True)
    kernel = resolve(image, tmp_path)
    assert kernel.modules is not None
    assert kernel.modules.root == tree


def test_image_among_its_modules(tmp_path: Path) -> None:
    image = tmp_path / "modules" / RELEASE / "vmlinuz"
    image.parent.mkdir(parents=True)
    image.write_bytes(bzimage())
    kernel = resolve(image, tmp_path)
    assert kernel.modules is not None
    assert kernel.modules.root == image.parent


@pytest.mark.parametrize("suffix", [".deb", ".package"])
def test_deb_is_known_by_its_content(tmp_path: Path, suffix: str) -> None:
    path = deb(tmp_path, IMAGE, OLD)
    renamed = path.rename(tmp_path / f"kernel{suffix}")
    kernel = resolve(renamed, tmp_path)
    assert (kernel.label, kernel.source) == (RELEASE, str(renamed))
    assert kernel.config is not None
    assert kernel.modules is not None
    assert "veth" in kernel.modules


def test_folder(tmp_path: Path) -> None:
    deb(tmp_path / "debs", IMAGE, OLD)
    assert resolve(tmp_path / "debs", tmp_path).release == RELEASE


def test_debian(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = debian.Fetched(image, "linux-image-x 1-1")
    monkeypatch.setattr(debian, "fetch_kernel", lambda *_: fetched)
    kernel = resolve("debian:6.12", tmp_path)
    assert (kernel.image, kernel.source) == (image, "debian:6.12 (linux-image-x 1-1)")


@pytest.mark.parametrize(
    "value", ["/absent/bzImage", "Host", "fedora:40", "x" * 5000, "~nobody9/k"]
)
def test_unknown_form_lists_the_forms(tmp_path: Path, value: str) -> None:
    with pytest.raises(KernelUnusable) as caught:
        resolve(value, tmp_path)
    forms = (
        "a bzImage, a build tree, a .deb or .rpm, a folder of one kernel's packages, "
        "debian:VERSION[:ARCH][@FLAVOUR], or host"
    )
    assert str(caught.value) == f"{value}: does not exist; give {forms}"


def test_link_to_nowhere(tmp_path: Path) -> None:
    (tmp_path / "vmlinuz").symlink_to("absent")
    with pytest.raises(KernelUnusable, match="vmlinuz: does not exist"):
        resolve(tmp_path / "vmlinuz", tmp_path)

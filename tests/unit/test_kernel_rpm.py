# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from test_kernel_deb import Log, refused, unpacked_files
from test_kernel_image import raw

from pytest_napi.kernel import archives, parse_spec, resolve
from pytest_napi.kernel.packages import image_from
from samples import CONFIG, bzimage, deb, module, rpm

FEDORA = "6.12.7-200.fc41.x86_64"
TREE = f"./lib/modules/{FEDORA}"
CORE = {
    f"{TREE}/vmlinuz": bzimage(FEDORA),
    f"{TREE}/config": CONFIG.encode(),
    f"{TREE}/modules.builtin": b"kernel/fs/ext4/ext4.ko\n",
    f"{TREE}/System.map": b"not needed",
    f"./usr/lib/debug{TREE[1:]}/vmlinux": b"not needed",
}
MODULES = {f"{TREE}/kernel/drivers/net/veth.ko.xz": lzma.compress(module())}
SUSE = "6.12.7-1-default"


def fedora(folder: Path) -> Path:
    rpm(folder, "kernel-core-6.12.7-200.fc41", CORE, links={f"{TREE}/build": "/usr/src"})
    rpm(folder, "kernel-modules-core-6.12.7-200.fc41", MODULES)
    rpm(folder, "kernel-6.12.7-200.fc41", {})  # the meta package
    return folder


def test_folder_of_fedora_packages(tmp_path: Path) -> None:
    kernel = resolve(parse_spec(str(fedora(tmp_path / "rpms"))), tmp_path / "cache", Log())
    assert (kernel.release, kernel.source) == (FEDORA, str(tmp_path / "rpms"))
    assert kernel.config is not None
    assert kernel.modules is not None
    assert [found.name for found in kernel.modules.closure(["veth"])] == ["veth"]
    assert unpacked_files(kernel.image) == [
        f"config-{FEDORA}",
        "contents",
        f"lib/modules/{FEDORA}/kernel/drivers/net/veth.ko.xz",
        f"lib/modules/{FEDORA}/modules.builtin",
        f"vmlinuz-{FEDORA}",
    ]


@pytest.mark.parametrize(
    ("image", "config"),
    [
        (f"./boot/vmlinuz-{SUSE}", f"./boot/config-{SUSE}"),
        (f"./usr/lib/modules/{SUSE}/vmlinuz", f"./usr/lib/modules/{SUSE}/config"),
    ],
)
def test_single_package_of_opensuse(tmp_path: Path, image: str, config: str) -> None:
    files = {
        image: bzimage(SUSE),
        config: CONFIG.encode(),
        f"./usr/lib/modules/{SUSE}/kernel/drivers/net/veth.ko.zst": raw("zstd")(module()),
    }
    path = rpm(tmp_path, "kernel-default-6.12.7", files, links={"./boot/vmlinuz": "vmlinuz-x"})
    assert unpacked_files(image_from(path, tmp_path / "cache", Log())) == [
        f"config-{SUSE}",
        "contents",
        f"lib/modules/{SUSE}/kernel/drivers/net/veth.ko.zst",
        f"vmlinuz-{SUSE}",
    ]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, raw("zstd"), bytes])
def test_every_compression(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    path = rpm(tmp_path, "kernel-core", CORE, compress=compress)
    assert image_from(path, tmp_path / "cache", Log()).read_bytes() == bzimage(FEDORA)


def test_known_by_its_content_and_opened_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rpm(tmp_path, "kernel-core", CORE).rename(tmp_path / "kernel.download")
    first = resolve(parse_spec(str(path)), tmp_path / "cache", Log())
    monkeypatch.setattr(archives, "libarchive", None)
    assert resolve(parse_spec(str(path)), tmp_path / "cache", Log()) == first


def test_package_without_a_kernel(tmp_path: Path) -> None:
    message = refused(rpm(tmp_path, "kernel-modules-core", MODULES), tmp_path)
    assert "no kernel package: there is no vmlinuz in it; give the one that has it" in message


def test_folder_of_several_kernels(tmp_path: Path) -> None:
    folder = fedora(tmp_path / "rpms")
    rpm(folder, "kernel-default", {f"./boot/vmlinuz-{SUSE}": bzimage(SUSE)})
    assert f"holds several kernels ({SUSE}, {FEDORA})" in refused(folder, tmp_path)


def test_folder_of_both_formats(tmp_path: Path) -> None:
    folder = fedora(tmp_path / "packages")
    deb(folder, "linux-image-6.12", {})
    assert "holds .deb and .rpm packages; give a folder with" in refused(folder, tmp_path)


def test_path_that_leads_out_is_refused(tmp_path: Path) -> None:
    path = rpm(tmp_path, "kernel-core", CORE | {"./lib/modules/../../../x.ko": b"x"})
    assert "refused: it holds the path" in refused(path, tmp_path)


@pytest.mark.parametrize("keep", [4, 50, 96, 110, 150, -300, -30, -1])
@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, raw("zstd"), bytes])
def test_cut_off_package(
    tmp_path: Path,
    keep: int,
    compress: Callable[[bytes], bytes],
    capfd: pytest.CaptureFixture[str],
) -> None:
    path = rpm(tmp_path, "kernel-core", CORE, compress=compress)
    path.write_bytes(path.read_bytes()[:keep])
    message = refused(path, tmp_path)
    assert "a damaged .rpm: " in message
    assert "None" not in message
    assert message.endswith("; fetch or build it again")
    assert capfd.readouterr().err == ""

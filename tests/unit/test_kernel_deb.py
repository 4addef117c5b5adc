# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pytest_napi.errors import HostUnfit, KernelUnusable
from pytest_napi.kernel import archives, formats
from pytest_napi.kernel.architecture import AARCH64, X86_64, Architecture
from pytest_napi.kernel.naming import flavour_of, kernel_name, other_parts, pointed_to
from pytest_napi.kernel.packages import image_from
from samples import CONFIG, RELEASE, bzimage, deb, module

IMAGE = f"linux-image-{RELEASE}"
OLD = {
    f"./boot/vmlinuz-{RELEASE}": bzimage(),
    f"./boot/config-{RELEASE}": CONFIG.encode(),
    f"./boot/System.map-{RELEASE}": b"not needed",
    f"./lib/modules/{RELEASE}/kernel/drivers/net/veth.ko": module(),
    f"./lib/modules/{RELEASE}/modules.builtin": b"kernel/fs/ext4/ext4.ko\n",
    f"./lib/modules/{RELEASE}/modules.order": b"not needed",
    "./usr/share/doc/x/copyright": b"not needed",
}


def split(folder: Path, *parts: str) -> Path:
    """Write some packages of a split kernel."""
    modules = f"./usr/lib/modules/{RELEASE}"
    files = {
        "image": {},
        "binary": {f"{modules}/vmlinuz": bzimage()},
        "modules": {f"{modules}/kernel/veth.ko.xz": b"xz"},
        "base": {f"{modules}/config": CONFIG.encode(), f"{modules}/modules.builtin": b""},
    }
    base = f"linux-base-{RELEASE}"
    depends = {
        "image": [f"{base} (= 1-1)", f"linux-binary-{RELEASE}", f"linux-modules-{RELEASE}", "kmod"],
        "binary": [base],
        "modules": ["kmod", base],
        "base": [],
    }
    for part in parts:
        deb(folder, f"linux-{part}-{RELEASE}", files[part], depends[part])
    return folder


class Log(list[str]):
    """A progress function that keeps what it is told."""

    def __call__(self, line: str) -> None:
        self.append(line)


def unpacked_files(image: Path) -> list[str]:
    folder = image.parent
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_single_package(tmp_path: Path) -> None:
    path = deb(tmp_path, IMAGE, OLD, ["kmod", "linux-base (>= 4.3~)"], links={"./x/build": "/usr"})
    image = image_from(path, tmp_path / "cache", Log())
    assert image.name == f"vmlinuz-{RELEASE}"
    assert unpacked_files(image) == [
        f"config-{RELEASE}",
        "contents",
        f"lib/modules/{RELEASE}/kernel/drivers/net/veth.ko",
        f"lib/modules/{RELEASE}/modules.builtin",
        f"vmlinuz-{RELEASE}",
    ]


def test_second_time_opens_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, log = deb(tmp_path, IMAGE, OLD), Log()
    first = image_from(path, tmp_path / "cache", log)
    assert len(log) == 1
    monkeypatch.setattr(archives, "libarchive", None)
    assert image_from(path, tmp_path / "cache", log) == first
    assert len(log) == 1


def test_changed_package_is_unpacked_anew(tmp_path: Path) -> None:
    first = image_from(deb(tmp_path, IMAGE, OLD), tmp_path / "cache", Log())
    changed = OLD | {f"./boot/config-{RELEASE}": b"CONFIG_NEW=y\n"}
    second = image_from(deb(tmp_path, IMAGE, changed), tmp_path / "cache", Log())
    assert (second.parent / f"config-{RELEASE}").read_text() == "CONFIG_NEW=y\n"
    assert first.parent != second.parent


@pytest.mark.parametrize("lost", [f"vmlinuz-{RELEASE}", f"config-{RELEASE}", "contents"])
def test_folder_that_lost_a_file_is_mended(tmp_path: Path, lost: str) -> None:
    path = deb(tmp_path, IMAGE, OLD)
    image = image_from(path, tmp_path / "cache", Log())
    (image.parent / lost).unlink()
    assert image_from(path, tmp_path / "cache", Log()) == image
    assert (image.parent / lost).exists()


def test_file_that_was_cut_is_mended(tmp_path: Path) -> None:
    path = deb(tmp_path, IMAGE, OLD)
    image = image_from(path, tmp_path / "cache", Log())
    os.truncate(image, 0)
    assert image_from(path, tmp_path / "cache", Log()).read_bytes() == bzimage()


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "cache/unpacked/.new-x"
    left.mkdir(parents=True)
    image_from(deb(tmp_path, IMAGE, OLD), tmp_path / "cache", Log())
    assert not left.exists()


@pytest.mark.parametrize(
    "parts", [("image", "binary", "modules", "base"), ("binary", "modules", "base")]
)
def test_split_packages(tmp_path: Path, parts: tuple[str, ...]) -> None:
    folder = split(tmp_path / "debs", *parts)
    deb(folder, f"linux-image-{RELEASE}-dbg", {}, [])
    deb(folder, f"linux-headers-{RELEASE}", {}, [])
    image = image_from(folder, tmp_path / "cache", Log())
    assert unpacked_files(image) == [
        f"config-{RELEASE}",
        "contents",
        f"lib/modules/{RELEASE}/kernel/veth.ko.xz",
        f"lib/modules/{RELEASE}/modules.builtin",
        f"vmlinuz-{RELEASE}",
    ]


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        (("image",), f"linux-base-{RELEASE}, linux-binary-{RELEASE}, linux-modules-{RELEASE}"),
        (("binary",), f"linux-base-{RELEASE}, linux-modules-{RELEASE}"),
        (("binary", "base"), f"linux-modules-{RELEASE}"),
        (("image", "binary", "modules"), f"linux-base-{RELEASE}"),
    ],
)
def test_missing_parts_are_named(tmp_path: Path, parts: tuple[str, ...], missing: str) -> None:
    folder = split(tmp_path / "debs", *parts)
    with pytest.raises(KernelUnusable, match="only a part of a kernel") as caught:
        image_from(folder, tmp_path / "cache", Log())
    assert f"without {missing};" in str(caught.value)


def refused(path: Path, tmp_path: Path) -> str:
    with pytest.raises(KernelUnusable) as caught:
        image_from(path, tmp_path / "cache", Log())
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    left = tmp_path / "cache/unpacked"
    assert not left.exists() or [entry.name for entry in left.iterdir()] == ["lock"]
    return message


def test_package_without_a_kernel(tmp_path: Path) -> None:
    path = deb(tmp_path, "bash", {"./bin/bash": b"x"}, ["libc6"])
    assert "no kernel package" in refused(path, tmp_path)


def test_meta_packages(tmp_path: Path) -> None:
    for name in ("linux-image-cloud-amd64", "linux-image-6.12-cloud-amd64"):
        path = deb(tmp_path / name, name, {}, [f"{IMAGE} (= 1-1)"])
        message = refused(path, tmp_path)
        assert f"{name} is a meta package" in message
        assert f"give {IMAGE}" in message
    with pytest.raises(KernelUnusable, match="is a meta package"):
        image_from(path.parent, tmp_path / "cache", Log())


def test_folder_of_several_kernels(tmp_path: Path) -> None:
    deb(tmp_path / "debs", IMAGE, OLD)
    deb(tmp_path / "debs", "linux-image-6.1.0-57-amd64", OLD)
    message = refused(tmp_path / "debs", tmp_path)
    assert f"several kernels (6.1.0-57-amd64, {RELEASE})" in message


def test_folder_without_a_kernel(tmp_path: Path) -> None:
    folder = tmp_path / "debs"
    folder.mkdir()
    assert "a folder without a .deb or .rpm, and no build tree" in refused(folder, tmp_path)
    deb(folder, "bash", {}, [])
    assert "no kernel package among its .debs (bash)" in refused(folder, tmp_path)


def test_package_with_two_kernels(tmp_path: Path) -> None:
    path = deb(tmp_path, IMAGE, OLD | {"./boot/vmlinuz-6.1": bzimage()})
    assert f"several kernels (6.1, {RELEASE})" in refused(path, tmp_path)


def test_other_architecture(tmp_path: Path) -> None:
    path = deb(tmp_path, IMAGE, OLD, architecture="riscv64")
    assert "a package for riscv64; only amd64, arm64 kernels" in refused(path, tmp_path)


@pytest.mark.parametrize(
    "name", ["../boot/vmlinuz-x", f"./lib/modules/{RELEASE}/../../../x.ko", "/x"]
)
def test_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = deb(tmp_path, IMAGE, OLD | {name: b"x"})
    assert "refused: it holds the path" in refused(path, tmp_path)


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    tree = f"./lib/modules/{RELEASE}"
    path = deb(tmp_path, IMAGE, OLD, links={f"{tree}/updates": str(outside), f"{tree}/a.ko": "/x"})
    image = image_from(path, tmp_path / "cache", Log())
    assert not any(found.is_symlink() for found in image.parent.rglob("*"))


@pytest.mark.parametrize("keep", [100, 300, -300, -30])
def test_damaged_package(tmp_path: Path, keep: int, capfd: pytest.CaptureFixture[str]) -> None:
    path = deb(tmp_path, IMAGE, OLD)
    path.write_bytes(path.read_bytes()[:keep])
    assert "fetch or build it again" in refused(path, tmp_path)
    assert capfd.readouterr().err == ""


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(formats, "extract_kernel", fail)
    with pytest.raises(HostUnfit, match=f"no space left.*{tmp_path}/cache/unpacked"):
        image_from(deb(tmp_path, IMAGE, OLD), tmp_path / "cache", Log())


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        (IMAGE, ("image", RELEASE)),
        (f"{IMAGE}-unsigned", ("image", RELEASE)),
        (f"linux-binary-unsigned-{RELEASE}", ("binary", RELEASE)),
        (f"{IMAGE}-dbg", None),
        ("linux-image-cloud-amd64", None),
        ("linux-base", None),
        ("linux-headers-6.12", None),
        ("bash", None),
    ],
)
def test_names(package: str, expected: tuple[str, str] | None) -> None:
    name = kernel_name(package)
    assert (name and (name.part, name.release)) == expected


def test_documentation_package_is_no_part() -> None:
    # Debian 6.18: all in linux-image, and a linux-base that the mirror may have dropped.
    assert other_parts(IMAGE, ["kmod", f"linux-base-{RELEASE}"]) == []
    assert pointed_to(IMAGE, ["kmod", f"linux-base-{RELEASE}"]) is None


@pytest.mark.parametrize(
    ("package", "architecture", "flavour"),
    [
        (IMAGE, X86_64, "cloud"),
        ("linux-image-6.12.118+deb13-amd64", X86_64, "amd64"),
        ("linux-binary-7.3.4+deb13-amd64", X86_64, "amd64"),
        ("linux-image-6.1.0-57-rt-amd64", X86_64, "rt"),
        ("linux-image-6.12.118+deb13-arm64", AARCH64, "arm64"),
        ("linux-image-6.12.118+deb13-cloud-arm64", AARCH64, "cloud"),
        ("linux-image-6.12.118+deb13-arm64-16k", AARCH64, None),
        ("linux-image-6.12.118+deb13-arm64", X86_64, None),
        ("linux-image-6.12.118+deb13-amd64-unsigned", X86_64, None),
        ("linux-image-6.12.118+deb13-amd64-dbg", X86_64, None),
        ("linux-image-amd64", X86_64, None),
        ("linux-image-rt-amd64", X86_64, None),
        ("linux-headers-6.12.118+deb13-amd64", X86_64, None),
    ],
)
def test_flavours(package: str, architecture: Architecture, flavour: str | None) -> None:
    assert flavour_of(package, architecture) == flavour

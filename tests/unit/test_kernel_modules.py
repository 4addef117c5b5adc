# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
from pathlib import Path

import pytest
from test_kernel_image import raw

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.modules import ModuleTree, built
from samples import module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    net, virtio = tmp_path / "kernel/drivers/net", tmp_path / "kernel/drivers/virtio"
    net.mkdir(parents=True)
    virtio.mkdir(parents=True)
    (net / "virtio_net.ko.xz").write_bytes(lzma.compress(module(depends="net_failover,virtio")))
    (net / "net_failover.ko.gz").write_bytes(gzip.compress(module(depends="failover")))
    (net / "failover.ko.zst").write_bytes(raw("zstd")(module(depends="")))
    (virtio / "virtio-ring.ko").write_bytes(module(depends=""))
    (virtio / "virtio.ko").write_bytes(module(depends="virtio_ring"))
    (tmp_path / "kernel/README.ko.txt").write_text("no module")
    return tmp_path


def names(tree: Path, *wanted: str) -> list[str]:
    return [found.name for found in ModuleTree(tree).closure(wanted)]


def test_closure_is_in_load_order_without_doubles(tree: Path) -> None:
    expected = ["failover", "net_failover", "virtio_ring", "virtio", "virtio_net"]
    assert names(tree, "virtio_net", "virtio-ring", "virtio_net") == expected


def test_what_is_not_in_the_tree_is_left_out(tree: Path) -> None:
    assert names(tree, "veth", "virtio_pci", "virtio") == ["virtio_ring", "virtio"]


def test_in(tree: Path) -> None:
    modules = ModuleTree(tree)
    assert "virtio_ring" in modules
    assert "virtio-ring" in modules
    assert "virtio_pci" not in modules
    assert "README" not in modules


def test_read_decompresses(tree: Path) -> None:
    for found in ModuleTree(tree).closure(["virtio_net"]):
        assert found.read().startswith(b"\x7fELF")


def test_softdep_before_is_loaded_before(tree: Path) -> None:
    softdep = module(softdep="pre: failover absent post: virtio", depends="")
    (tree / "soft.ko").write_bytes(softdep)
    assert names(tree, "soft") == ["failover", "soft"]


def test_circle_ends(tree: Path) -> None:
    (tree / "a.ko").write_bytes(module(depends="b"))
    (tree / "b.ko").write_bytes(module(depends="a"))
    assert names(tree, "a") == ["b", "a"]


def test_update_goes_before_the_kernels_own(tree: Path) -> None:
    (tree / "updates").mkdir()
    (tree / "updates/virtio.ko").write_bytes(module(depends="failover"))
    assert names(tree, "virtio") == ["failover", "virtio"]


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("bad.ko", b"no ELF file"),
        ("bad.ko", b""),
        ("bad.ko.xz", b"no xz file"),
        ("bad.ko.gz", b"no gzip file"),
        ("bad.ko.zst", b"no zstd file"),
        ("bad.ko.xz", lzma.compress(module())[:-20]),
        ("bad.ko.gz", gzip.compress(module(), mtime=0)[:-20]),
    ],
)
def test_damaged_module_is_named(tree: Path, file: str, data: bytes) -> None:
    (tree / file).write_bytes(data)
    with pytest.raises(KernelUnusable, match=f"{file}: "):
        names(tree, "bad")


def test_absent_tree_is_empty(tmp_path: Path) -> None:
    assert names(tmp_path / "absent", "veth") == []


@pytest.mark.parametrize(
    ("prefix", "suffix"), [("", ".o"), ("", ".ko"), ("kernel/", ".ko")], ids=["6.3", "5.3", "5.2"]
)
def test_build_tree(tmp_path: Path, prefix: str, suffix: str) -> None:
    modules = {
        "drivers/net/virtio_net": "net_failover",
        "net/core/failover": "",
        "drivers/net/net_failover": "failover",
        "kernel/torture": "",
    }
    for place, depends in modules.items():
        path = tmp_path / f"{place}.ko"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(module(depends=depends))
    (tmp_path / "net/core/stale.ko").write_bytes(module())
    listed = "".join(f"{prefix}{place}{suffix}\n" for place in [*modules, "net/unbuilt"])
    (tmp_path / "modules.order").write_text(listed)
    tree = ModuleTree(tmp_path, built)
    order = [found.name for found in tree.closure(["virtio_net", "torture"])]
    assert order == ["failover", "net_failover", "virtio_net", "torture"]
    assert tree.path_of("torture") == tmp_path / "kernel/torture.ko"
    assert "unbuilt" not in tree
    assert "stale" not in tree  # of an earlier build


def test_tree_built_without_modules_is_empty(tmp_path: Path) -> None:
    assert "veth" not in ModuleTree(tmp_path, built)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to compile a module-like object")
def test_compiled_object(tmp_path: Path) -> None:
    source = tmp_path / "real.c"
    source.write_text(
        'static const char info[] __attribute__((section(".modinfo"), used)) ='
        ' "license=GPL\\0depends=other";\n'
    )
    subprocess.run(["gcc", "-c", "-o", str(tmp_path / "real.ko"), str(source)], check=True)
    (tmp_path / "other.ko").write_bytes(module())
    assert names(tmp_path, "real") == ["other", "real"]

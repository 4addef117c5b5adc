# SPDX-License-Identifier: GPL-2.0-only
"""Where a kernel's source comes from."""

import os
import subprocess
import tarfile

import pytest

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.build.source import find


class Bench:
    """A source tree, and a cache."""

    def __init__(self, folder):
        self.folder = folder
        self.tree = folder / "linux"
        self.cache = folder / "cache"
        for name in ("Makefile", "Kconfig", "net/dev.c"):
            self.write(name, name)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def tarball(self, suffix="gz"):
        path = self.folder / f"linux.tar.{suffix}"
        with tarfile.open(path, f"w:{suffix}") as archive:
            archive.add(self.tree, "linux-6.12")
        return path

    def find(self, source):
        return find(str(source), self.cache, lambda line: None)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.mark.parametrize("suffix", ["", "gz", "xz", "bz2"])
def test_a_tarball_is_extracted_once(bench, suffix):
    (bench.tree / "link").symlink_to("net/dev.c")
    tarball = bench.tarball(suffix)
    found = bench.find(tarball)
    assert (found.root / "net/dev.c").read_text() == "net/dev.c"
    assert (found.root / "link").readlink().name == "dev.c"
    (found.root / "mark").touch()
    tarball.touch()  # not made anew: gzip writes the time into it
    assert (bench.find(tarball).root / "mark").exists()


@pytest.mark.parametrize("suffix", ["gz", "xz"])
def test_a_cut_off_tarball_is_named_and_leaves_nothing(bench, suffix):
    bench.write("data", os.urandom(4096).hex())
    tarball = bench.tarball(suffix)
    tarball.write_bytes(tarball.read_bytes()[:-200])
    with pytest.raises(
        KernelUnusable, match=r"linux\.tar\.\w+: no tar archive, or one that is cut"
    ):
        bench.find(tarball)
    assert [path.name for path in bench.cache.glob("sources/trees/*")] == ["lock"]


def test_what_is_no_source_says_so(bench):
    empty = bench.folder / "empty"
    empty.mkdir()
    for source, message in [
        (empty, "no kernel source: it lacks Makefile and Kconfig"),
        (bench.tree / "Makefile", "no tar archive"),
        (bench.folder / "gone", "does not exist; give a kernel source tree, a tarball"),
        ("", "does not exist"),
        ("/dev/null", "neither a file nor a folder"),
    ]:
        with pytest.raises(KernelUnusable, match=message) as raised:
            bench.find(source)
        assert "\n" not in str(raised.value)


def test_a_tarball_of_something_else_says_so(bench):
    (bench.tree / "Kconfig").unlink()
    with pytest.raises(KernelUnusable, match=r"linux\.tar\.gz: no kernel source"):
        bench.find(bench.tarball())


def test_a_tarball_that_leads_out_is_refused(bench):
    path = bench.folder / "evil.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, str(bench.folder)
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("out/escaped"))
    with pytest.raises(KernelUnusable, match=r"evil\.tar: no tar archive, .*symlink"):
        bench.find(path)
    assert not (bench.folder / "escaped").exists()
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("../escaped"))
    with pytest.raises(KernelUnusable, match=r"refused: it holds the path '\.\./escaped'"):
        bench.find(path)


def test_an_edit_changes_the_content_and_not_the_place(bench):
    before = bench.find(bench.tree)
    file = bench.write("net/dev.c", "NET/dev.c")
    os.utime(file, (1, 1))
    after = bench.find(bench.tree)
    assert after.place == before.place
    assert after.content != before.content


def test_of_a_checkout_new_files_are_taken_and_ignored_ones_not(bench, monkeypatch):
    subprocess.run(["git", "init", "-q", bench.tree], check=True)
    bench.write(".gitignore", "*.o\n/.config\n")
    bench.write("net/a.o", "a product")
    bench.write(".config", "a product")
    bench.write("net/deleted.h", "still tracked")
    subprocess.run(["git", "-C", bench.tree, "add", "."], check=True)
    (bench.tree / "net/deleted.h").unlink()
    bench.write("net/new.h", "untracked")
    monkeypatch.setenv("GIT_DIR", str(bench.folder))  # as git's hooks have it
    found = bench.find(bench.tree)
    assert set(found.files) == {".gitignore", "Kconfig", "Makefile", "net/dev.c", "net/new.h"}
    assert not found.built_in


def test_of_a_folder_the_products_of_a_build_are_left_out(bench):
    for name in ("net/a.o", "vmlinux", ".config", "include/generated/x.h", "net/.a.o.cmd"):
        bench.write(name, "a product")
    bench.write("tools/vmlinux/a.h", "a source: perf has a folder of this name")
    (bench.tree / "link").symlink_to("net")
    found = bench.find(bench.tree)
    assert set(found.files) == {"Kconfig", "Makefile", "net/dev.c", "tools/vmlinux/a.h", "link"}
    assert found.built_in

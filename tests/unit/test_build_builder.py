# SPDX-License-Identifier: GPL-2.0-only
"""Builds of a tree that is like a kernel's in all that matters here, and takes milliseconds."""

import json
import os
import re
import shutil
import tarfile
import time
from pathlib import Path

import pytest
from filelock import FileLock

from pytest_napi.commands import main
from pytest_napi.errors import HostUnfit, KernelUnusable
from pytest_napi.kernel.build import BuildFailed, build, builder, tools, work

MAKEFILE = r"""
OBJS := $(O)/net/a.o $(O)/net/b.o
.DELETE_ON_ERROR:
.PHONY: allnoconfig defconfig olddefconfig mrproper modules bzImage
clean = @test -n "$(O)" && test ! -e .config || { echo "*** not clean"; exit 1; }
allnoconfig: ; $(clean); sh scripts/conf $(KCONFIG_ALLCONFIG) > $(O)/.config
defconfig: ; $(clean); echo CONFIG_DEFAULT=y > $(O)/.config
olddefconfig: ; cp $(O)/.config $(O)/old; sh scripts/conf $(O)/old > $(O)/.config
mrproper: ; rm -rf .config include/config fixdep
$(O)/net/%.o: net/%.c include/shared.h
	@mkdir -p $(@D) && echo "  CC      net/$*.o" && sh scripts/cc $< > $@
modules: ; @mkdir -p $(O)/net && echo net/m.o > $(O)/modules.order && echo M > $(O)/net/m.ko
bzImage: $(OBJS)
	@mkdir -p $(O)/arch/x86/boot $(O)/include/config
	@cat include/shared.h $(OBJS) > $(O)/arch/x86/boot/bzImage
	@echo 6.12.0$(LOCALVERSION) > $(O)/include/config/kernel.release
"""
CONF = r"""
while read -r line; do
	name=$(expr "$line" : '[# ]*CONFIG_\([A-Z]*\)')
	grep -q "^config $name on" Kconfig && echo "$line"
done < "$1"
exit 0
"""
CC = r"""
if grep -n BROKEN "$1" | sed "s,^\([0-9]*\):.*,$PWD/$1:\1:1: error: BROKEN undeclared," | grep .
then exit 1; fi >&2
case $(cat "$1") in
*SLOW*) echo $$ > pid; exec sleep 60 ;;
*FULL*) echo "$1: No space left on device" >&2; exit 1 ;;
*KILLED*) echo "gcc: fatal error: Killed signal terminated program cc1" >&2; exit 1 ;;
esac
cat "$1"
"""
TREE = {
    "Makefile": MAKEFILE,
    "Kconfig": "config NAPI on\nconfig DEFAULT on\nconfig MODULES on\nconfig VETH on\nconfig OFF\n",
    "scripts/conf": CONF,
    "scripts/cc": CC,
    "net/a.c": "a one\na two\n",
    "net/b.c": "b one\nb two\n",
    "include/shared.h": "shared\n",
}


def patch(path, old, new, more=""):
    return f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n-{old}\n+{new}\n {path[4]} two\n{more}"


A = patch("net/a.c", "a one", "A")
B = patch("net/b.c", "b one", "B")
CREATE = "--- /dev/null\n+++ b/net/new/c.c\n@@ -0,0 +1 @@\n+c\n"
DELETE = "--- a/net/b.c\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-b one\n-b two\n"


class Bench:
    """A source tree and what to build of it."""

    def __init__(self, folder):
        self.folder = folder
        self.tree = folder / "linux"
        self.cache = folder / "cache"
        self.said = []
        for name, text in TREE.items():
            self.write(f"linux/{name}", text)
        self.config = self.write("napi.config", "CONFIG_NAPI=y\n")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def tarball(self):
        path = self.folder / "linux.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(self.tree, "linux-6.12")
        return path

    def build(self, *diffs, source=None, **other):
        files = [self.write(f"{number}.patch", diff) for number, diff in enumerate(diffs)]
        source = str(source or self.tree)
        other.setdefault("progress", self.said.append)
        return build(source, other.pop("configs", [self.config]), files, cache=self.cache, **other)

    @property
    def works(self):
        return sorted(path.parent for path in self.cache.glob("builds/*/source"))


def compiled(built):
    return sorted(re.findall(r"CC +net/(\w)\.o", built.log.read_text()))


def content(built):
    return built.image.read_text()


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "TOOLS", ())
    monkeypatch.setattr(tools, "compiler_identity", lambda: "cc 1")
    guest = tmp_path / "guest.config"
    guest.write_text("# CONFIG_OFF is not set\n")
    monkeypatch.setattr(builder, "GUEST_CONFIG", guest)
    return Bench(tmp_path)


def test_a_build_gives_image_config_release_and_log(bench):
    built = bench.build()
    assert content(built) == "shared\na one\na two\nb one\nb two\n"
    assert built.config.read_text() == "CONFIG_NAPI=y\n"
    assert (built.release, built.modules, built.cached) == ("6.12.0", None, False)
    assert compiled(built) == ["a", "b"]
    assert sorted(path.name for path in bench.tree.rglob("*") if path.is_file()) == sorted(
        name.rpartition("/")[2] for name in TREE
    )  # nothing was written to the source


def test_the_same_build_again_is_found(bench):
    first = bench.build(A)
    shutil.rmtree(bench.cache / "builds")
    second = bench.build(f"Subject: another mail\n\n{A}-- \nbye\n")
    assert (second.image, second.cached) == (first.image, True)
    second.config.unlink()  # lost by a cleaner of old files
    assert bench.build(A).cached is False


@pytest.fixture(params=["folder", "tarball"])
def source(request, bench):
    return bench.tarball() if request.param == "tarball" else bench.tree


def test_between_patch_sets_only_what_differs_is_compiled(bench, source):
    plain = bench.build(source=source)
    results = [(bench.build(*diffs, source=source), want) for diffs, want in SWITCHES]
    assert [(compiled(built), content(built)) for built, _ in results] == [
        (files, f"shared\n{text}") for _, (files, text) in results
    ]
    assert len(bench.works) == 1
    assert content(plain) == "shared\na one\na two\nb one\nb two\n"
    for path in bench.cache.glob("sources/trees/*/linux-6.12/net/a.c"):
        assert path.read_text() == TREE["net/a.c"]  # not written to through a link


SWITCHES = [
    ((A,), (["a"], "A\na two\nb one\nb two\n")),
    ((A, B), (["b"], "A\na two\nB\nb two\n")),
    ((B, CREATE), (["a"], "a one\na two\nB\nb two\n")),
    ((A, patch("net/a.c", "A", "AA")), (["a", "b"], "AA\na two\nb one\nb two\n")),
]


def test_what_a_patch_created_or_deleted_is_undone(bench):
    bench.build(CREATE)
    (work_tree,) = bench.works
    assert (work_tree / "source/net/new/c.c").read_text() == "c\n"
    with pytest.raises(BuildFailed, match="No rule to make target"):  # nor the object left of it
        bench.build(DELETE, CREATE.replace("c.c", "d.c"))
    assert sorted(path.name for path in (work_tree / "source/net").rglob("*")) == [
        "a.c",
        "d.c",
        "new",
    ]
    assert content(bench.build(A)) == "shared\nA\na two\nb one\nb two\n"
    assert sorted(path.name for path in (work_tree / "source/net").rglob("*")) == ["a.c", "b.c"]


def test_an_edit_of_the_folder_compiles_that_file_only(bench):
    bench.build(A)
    (bench.tree / "net/b.c").write_text("b edited\n")
    os.utime(bench.tree / "net/b.c", (1, 1))  # as cp -p may leave it
    built = bench.build(A)
    assert (compiled(built), content(built)) == (["b"], "shared\nA\na two\nb edited\n")
    (bench.tree / "net/a.c").write_text("a one\na two\na three\n")  # what the patch touches
    assert content(bench.build(A)) == "shared\nA\na two\na three\nb edited\n"
    assert len(bench.works) == 1


def test_a_touched_file_is_not_compiled_and_a_deleted_one_is_gone(bench):
    extra = bench.write("linux/net/extra.h", "x")
    bench.build()
    (bench.tree / "net/a.c").touch()
    extra.unlink()
    assert compiled(bench.build()) == []
    assert not (bench.works[0] / "source/net/extra.h").exists()


def test_a_tree_that_was_built_in_is_copied_without_its_products(bench):
    products = (".config", "vmlinux", "net/a.o", "include/config/auto.conf", "fixdep")
    for name in products:
        bench.write(f"linux/{name}", "product")
    bench.write("linux/tools/vmlinux/a.h", "a source: perf has a folder of this name")
    # With a patch to what cleans the copy.
    bench.build(
        f"--- a/Makefile\n+++ b/Makefile\n@@ -1,2 +1,2 @@\n-\n+# 1\n {MAKEFILE.splitlines()[1]}\n"
    )
    copy = bench.works[0] / "source"
    assert [name for name in (*products, "tools/vmlinux/a.h") if (copy / name).exists()] == [
        "tools/vmlinux/a.h"
    ]
    (bench.tree / "net/b.c").write_text("b\n")
    bench.write("linux/fixdep", "another")
    assert compiled(bench.build()) == ["b"]


@pytest.mark.parametrize("kill_at", ["first", "second", "last"])
def test_a_run_that_is_killed_while_patching_leaves_no_wrong_tree(bench, monkeypatch, kill_at):
    bench.build(A)
    settle = work._settle
    seen = []

    def killed(origin, target):
        if "scratch" not in target.parts:
            seen.append(target)
            if len(seen) == ("first", "second").index(kill_at) + 1 if kill_at != "last" else False:
                raise KeyboardInterrupt
        settle(origin, target)

    remember = work.Work._remember

    def killed_at_the_end(self, name, value):
        if kill_at == "last" and seen and name == "touched":
            raise KeyboardInterrupt
        remember(self, name, value)

    with monkeypatch.context() as patched:
        patched.setattr(work, "_settle", killed)
        patched.setattr(work.Work, "_remember", killed_at_the_end)
        with pytest.raises(KeyboardInterrupt):
            bench.build(B, CREATE)
    built = bench.build(patch("net/a.c", "a one", "again"))
    assert content(built) == "shared\nagain\na two\nb one\nb two\n"
    assert not (bench.works[0] / "source/net/new").exists()


def test_a_copy_that_was_cut_off_is_made_anew(bench):
    tarball = bench.tarball()
    bench.build(source=tarball)
    (work_tree,) = bench.works
    (work_tree / "synced").unlink()
    (work_tree / "source/net/b.c").unlink()
    assert compiled(bench.build(A, source=tarball)) == ["a", "b"]


def test_a_patch_that_does_not_apply_changes_nothing(bench):
    bench.build(A)
    with pytest.raises(KernelUnusable, match=r"1\.patch: hunk 1 of net/b\.c .* does not apply"):
        bench.build(A, patch("net/b.c", "other", "B"))
    assert json.loads((bench.works[0] / "touched").read_text()) == ["net/a.c"]
    with pytest.raises(KernelUnusable, match=r"1\.patch: was given twice"):
        bench.build(A, A)


def test_a_patch_behind_a_symbolic_link_is_refused(bench):
    outside = bench.write("outside/a.c", "a one\na two\n")
    (bench.tree / "lnk").symlink_to(outside.parent)
    with pytest.raises(KernelUnusable, match=r"refused: lnk/a\.c is behind the symbolic link lnk"):
        bench.build(A.replace("net/a.c", "lnk/a.c"))
    assert outside.read_text() == "a one\na two\n"


def test_an_option_that_did_not_stick_is_told_before_anything_is_compiled(bench):
    more = bench.write("more.config", "\nCONFIG_OFF=y\nCONFIG_NONE=y\nCONFIG_NAPI=m\n")
    with pytest.raises(KernelUnusable, match=r"more\.config:2: CONFIG_OFF=y asked, not set") as no:
        bench.build(configs=[bench.config, more])
    assert "(and 1 more options" in str(no.value)
    assert no.value.detail.endswith("CONFIG_NONE=y asked, not set got: the tree has no such symbol")
    assert not isinstance(no.value, BuildFailed)


def test_another_base(bench):
    assert bench.build(base="defconfig").config.read_text() == "CONFIG_DEFAULT=y\nCONFIG_NAPI=y\n"
    with pytest.raises(KernelUnusable, match=r"--base=x_defconfig: .* has no such configuration"):
        bench.build(base="x_defconfig")
    with pytest.raises(KernelUnusable, match="--base=menuconfig: not a configuration"):
        bench.build(base="menuconfig")


def test_modules_are_kept(bench):
    config = bench.write("m.config", "CONFIG_MODULES=y\nCONFIG_VETH=m\n")
    built = bench.build(configs=[config])
    assert (built.modules / "kernel/net/m.ko").read_text() == "M\n"
    assert built.modules.name == built.release


def test_what_does_not_compile_is_told_with_the_compilers_words(bench):
    with pytest.raises(BuildFailed, match=r"does not build: net/a\.c:1:1: error: BROKEN") as failed:
        bench.build(patch("net/a.c", "a one", "BROKEN"))
    assert str(bench.works[0] / "log") in str(failed.value)
    assert content(bench.build(A)).startswith("shared\nA\n")


@pytest.mark.parametrize(("word", "message"), [("FULL", "no space left"), ("KILLED", "fewer jobs")])
def test_a_host_that_cannot_is_no_failed_build(bench, word, message):
    with pytest.raises(HostUnfit, match=message):
        bench.build(patch("net/a.c", "a one", word))


def test_an_interrupted_build_leaves_no_process(bench):
    def interrupt(text):
        while not bench.works or not (bench.works[0] / "source/pid").read_text().strip():
            time.sleep(0.01)
        raise KeyboardInterrupt

    bench.write("linux/pid", "")
    with pytest.raises(KeyboardInterrupt):
        bench.build(patch("net/a.c", "a one", "SLOW"), live=interrupt, jobs=1)
    status = Path("/proc", (bench.works[0] / "source/pid").read_text().strip(), "status")
    assert not status.exists() or "State:\tZ" in status.read_text()
    assert compiled(bench.build(A)) == ["a", "b"]


def test_progress_counts_steps_and_knows_how_many_there_were(bench):
    shown = []
    bench.build(live=shown.append)
    assert re.fullmatch(r"building \S+/linux: 2 steps, 0\.\d s, net/\w\.o", shown[-1])
    more = bench.write("more.config", "CONFIG_DEFAULT=y\n")
    bench.build(live=shown.append, configs=[more])
    assert ": 2 of about 2 steps," in shown[-1]


def test_another_run_in_the_work_tree_is_waited_for(bench):
    bench.build()
    (work_tree,) = bench.works
    other = FileLock(work_tree / "lock")
    other.acquire()

    def said(text):
        bench.said.append(text)
        other.release()

    bench.build(A, progress=said)
    assert bench.said[-2] == f"waiting for another run that fills {work_tree}"


@pytest.fixture
def run(bench, monkeypatch, capfd):
    monkeypatch.setenv("PYTEST_NAPI_CACHE", str(bench.cache))

    def command(*arguments):
        argv = ["build", bench.tree, "--config", bench.config, *arguments]
        status = main([str(argument) for argument in argv])
        return (status, *capfd.readouterr())

    return command


def test_the_command_prints_where_the_kernel_is(bench, run):
    status, out, _ = run()
    assert status == 0
    line = rf"6\.12\.0: {bench.cache}/kernels/\w+/vmlinuz \(%s in 0\.\d s\)\n"
    assert re.fullmatch(line % "built", out)
    assert re.fullmatch(line % "from the cache", run()[1])


def test_the_output_may_be_a_file_or_a_folder(bench, run):
    assert run("-o", bench.folder / "out/a.img")[0] == 0
    assert (bench.folder / "out/a.img").read_text().startswith("shared")
    assert (bench.folder / "out/a.img.config").read_text() == "CONFIG_NAPI=y\n"
    modules = bench.write("m.config", "CONFIG_MODULES=y\nCONFIG_VETH=m\n")
    assert "modules, which need a folder" in run("--config", modules, "-o", bench.folder / "b")[2]
    for _ in range(2):
        assert run("--config", modules, "-o", f"{bench.folder}/dir/")[0] == 0
    found = {str(p.relative_to(bench.folder / "dir")) for p in (bench.folder / "dir").rglob("*")}
    assert {"vmlinuz", "config", "lib/modules/6.12.0/kernel/net/m.ko"} <= found
    assert not [name for name in found if "/." in f"/{name}"]
    run("-o", f"{bench.folder}/dir/")
    assert not (bench.folder / "dir/lib/modules/6.12.0").exists()  # of a kernel without modules


def test_an_output_that_cannot_be_written_is_told_before_the_build(bench, run):
    for out in (f"{bench.config}/x", "/dev/null"):
        status, _, err = run("-o", out)
        assert (status, err.count("\n")) == (1, 1)
        assert err.startswith(f"pytest-napi: -o {out}: ")
    assert bench.works == []


def test_a_failure_is_the_line_its_detail_and_status_1(bench, run):
    broken = bench.write("x.patch", patch("net/a.c", "a one", "BROKEN"))
    status, _, err = run("--patch", broken)
    assert status == 1
    assert "does not build: net/a.c:1:1: error: BROKEN undeclared; all of make's output" in err
    assert "Traceback" not in err
    with pytest.raises(SystemExit, match="2"):
        run("-j", "0")

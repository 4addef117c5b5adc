# SPDX-License-Identifier: GPL-2.0-only
"""The plugin's own behaviour that needs no guest, and every bad input that is found before one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_napi.cache import cache_folder
from samples import bzimage

WANTS_GUEST = "def test_it(guest): pass\n"


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """One cache for all tests here; programs are the user's, since compiling takes seconds."""
    cache = tmp_path_factory.mktemp("cache")
    programs = cache_folder() / "programs"
    programs.mkdir(exist_ok=True)
    (cache / "programs").symlink_to(programs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_NAPI_CACHE", str(cache))
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the other plugins take their time
        yield


def run_pytest(pytester, *arguments):
    return pytester.runpytest_inprocess("-p", "pytest_napi.plugin", *arguments)


@pytest.fixture
def refuse(pytester):
    """Run pytest with bad input: one line, exit status 4, no traceback; return the line."""

    def run(*arguments, source=WANTS_GUEST):
        pytester.makepyfile(source)
        result = run_pytest(pytester, *arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        said = [line for line in result.errlines if line.strip()]
        assert len(said) == 1, said
        assert "Traceback" not in "\n".join(result.outlines)
        return said[0]

    return run


def test_without_a_kernel_other_tests_run(pytester):
    pytester.makepyfile("def test_it(): pass\n")
    result = run_pytest(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*napi:*")


def test_no_kernel(refuse):
    said = refuse()
    assert said.startswith("ERROR: no --kernel, but test_no_kernel.py::test_it boots one: give --k")


def test_deselected_tests_want_no_kernel(pytester):
    pytester.makepyfile("def test_it(guest): pass\ndef test_other(): pass\n")
    run_pytest(pytester, "-k", "other").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kernel=none/bzImage"], "none/bzImage: does not exist"),
        (["--kernel="], "--kernel"),
        (["--kernel=x", "--napi-preempt=fast"], "unknown preemption model 'fast': use none, volun"),
        (["--kernel=x", "--napi-accel=fast"], "--napi-accel: unknown accelerator 'fast': use auto"),
        (["--kernel=x", "--napi-cpus=0"], "--napi-cpus: '0' is no number of CPUs"),
        (["--kernel=x", "--napi-memory=lots"], "--napi-memory: 'lots' is no size of memory"),
        (["--kernel=x", "--napi-bounds=none.yaml"], "--napi-bounds: none.yaml: no such file"),
        (["--kernel=x", "--napi-boot-timeout=-1"], "--napi-boot-timeout: '-1' is no time"),
        (["--kernel=x", "-o", "napi_cpus=many"], "napi_cpus: 'many' is no number of CPUs"),
        (["--kernel=x", "--napi-expect=x"], "--napi-expect: 'x' is no expectation: write LABEL:fa"),
        (["--kernel=x", "--napi-expect=x:good"], "'x:good' is no expectation: write LABEL:fail or"),
        (["--kernel=x", "--napi-expect=:fail"], "':fail' is no expectation"),
        (["--kernel=x", "--napi-expect=x:fail,x:pass"], "--napi-expect: 'x' is given twice"),
        (["--kernel=x", "-o", "napi_expect=x:bad"], "napi_expect: 'x:bad' is no expectation"),
        (
            ["--napi-expect=x:fail"],
            "--napi-expect: no kernel is labelled 'x': there is no --kernel",
        ),
    ],
)
def test_bad_options(refuse, arguments, said):
    assert said in refuse(*arguments)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"hello, this is a text file\n" * 99, "text"),
        (bzimage(payload=bytes(9999))[:4096], "cut off"),
        (b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xb7\0" + bytes(4096), "arm64"),
        (bytes(0x38) + b"ARMd" + bytes(4096), "arm64"),
    ],
)
def test_no_kernels(refuse, pytester, content, said):
    Path("image").write_bytes(content)
    assert said in refuse("--kernel=image").lower()


def test_a_package_without_a_kernel(refuse, pytester):
    root = pytester.path / "root"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        "Package: hello\nVersion: 1\nArchitecture: all\nMaintainer: me <m@e>\nDescription: x\n"
    )
    if subprocess.run(["dpkg-deb", "-b", root, "hello.deb"], check=False).returncode != 0:
        pytest.skip("no dpkg-deb to make a package with")
    said = refuse("--kernel=hello.deb")
    assert "hello.deb" in said
    assert "kernel" in said


@pytest.mark.parametrize("missing", ["VIRTIO_PCI", "BLK_DEV_INITRD"])
def test_a_kernel_that_lacks_what_a_guest_needs(refuse, missing):
    Path("image").write_bytes(bzimage())
    Path("image.config").write_text(f"CONFIG_SMP=y\n# CONFIG_{missing} is not set\n")
    said = refuse("--kernel=image")
    assert f"CONFIG_{missing}" in said
    assert "CONFIG_SERIAL_8250_CONSOLE" in said, "all that is missing is named at once"


def test_bad_bounds(refuse):
    Path("bounds.yaml").write_text("netdev_deletion:\n  max: {limit: 1 parsec}\n")
    Path("image").write_bytes(bzimage())
    said = refuse("--kernel=image", "--napi-bounds=bounds.yaml")
    assert "bounds.yaml:2: netdev_deletion.max.limit: '1 parsec' has the unit 'parsec'" in said


def test_two_kernels_with_one_label(refuse):
    Path("image").write_bytes(bzimage())
    assert "LABEL=SPEC" in refuse("--kernel=a=image", "--kernel=a=image")


def test_too_little_memory(refuse):
    Path("image").write_bytes(bzimage())
    assert "--napi-memory" in refuse("--kernel=image", "--napi-memory=32M")


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        ("qemu-system-x86_64", "qemu-system-x86_64 is not installed: apt-get install qemu-system"),
        ("cc", "no C compiler for the guest programs: apt-get install gcc"),
        ("make", "no make for the guest programs: apt-get install"),
        ("busybox", "busybox is not installed: apt-get install busybox-static"),
        ("setpriv", "setpriv is not installed: apt-get install util-linux"),
    ],
)
def test_a_host_that_lacks_a_program(refuse, pytester, monkeypatch, hidden, said):
    Path("image").write_bytes(bzimage())
    which = shutil.which

    def without(name, path=None):
        return None if name == hidden else which(name, path=path)

    monkeypatch.setattr(shutil, "which", without)
    assert said in refuse("--kernel=image", "--napi-accel=tcg")


def test_a_full_disk(refuse, pytester, monkeypatch):
    small = pytester.path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system takes root")
    try:
        monkeypatch.setenv("PYTEST_NAPI_CACHE", str(small / "cache"))
        Path("image").write_bytes(bzimage())
        said = refuse("--kernel=image")
    finally:
        subprocess.run(["umount", small], check=True)
    assert f"no space left for the cache folder {small}" in said


@pytest.mark.parametrize("option", ["--napi-results=image/r.json", "--napi-artifacts=image/a"])
def test_output_that_cannot_be_written(refuse, option):
    Path("image").write_bytes(bzimage())
    assert "image/" in refuse("--kernel=image", option)


def test_a_bad_marker(refuse):
    Path("image").write_bytes(bzimage())
    source = "import pytest\n\n@pytest.mark.napi(cpu=2)\ndef test_it(guest): pass\n"
    assert "@pytest.mark.napi(cpu=…): unknown, use preempt, cpus, memory" in refuse(
        "--kernel=image", source=source
    )


def test_ids_carry_label_and_model(pytester):
    Path("image").write_bytes(bzimage())
    pytester.makepyfile(
        "import pytest\n\ndef test_it(guest): pass\n\n"
        '@pytest.mark.napi(preempt="none")\ndef test_other(guest): pass\n'
    )
    result = run_pytest(
        pytester,
        "--collect-only",
        "-q",
        "--kernel=my=image",
        "--kernel=image",
        "--napi-preempt=full,lazy",
    )
    assert sorted(line for line in result.outlines if "::" in line) == [
        f"test_ids_carry_label_and_model.py::{name}"
        for name in (
            "test_it[6.12.117+deb13-cloud-amd64-full]",
            "test_it[6.12.117+deb13-cloud-amd64-lazy]",
            "test_it[my-full]",
            "test_it[my-lazy]",
            "test_other[6.12.117+deb13-cloud-amd64-none]",
            "test_other[my-none]",
        )
    ]


def test_ini_values_and_their_precedence(pytester):
    Path("image").write_bytes(bzimage())
    pytester.makeini("[pytest]\nnapi_kernel = a=image\nnapi_preempt = full\n")
    pytester.makepyfile(WANTS_GUEST)
    lines = run_pytest(pytester, "--collect-only", "-q").outlines
    assert any("test_it[a-full]" in line for line in lines)
    lines = run_pytest(pytester, "--collect-only", "-q", "--napi-preempt=none").outlines
    assert any("test_it[a-none]" in line for line in lines)


# What a test that cannot be judged does, without the guest it takes to get there.
UNDECIDED = """
from pytest_napi.experiments import Inconclusive
from pytest_napi.fixtures import RUN
from pytest_napi.repeat import TEST
from pytest_napi.run import GuestTest

def test_undecided(request):
    request.node.stash[TEST] = GuestTest(request.config.stash[RUN], request.node.nodeid)
    raise Inconclusive("the host was busy")

def test_good():
    pass
"""


def test_an_inconclusive_test_is_neither_passed_nor_failed(pytester):
    pytester.makepyfile(UNDECIDED)
    result = run_pytest(pytester)
    assert result.ret == 6
    result.stdout.fnmatch_lines(
        ["*::test_undecided: inconclusive: the host was busy", "*1 passed*1 inconclusive*"]
    )


def test_a_failure_outranks_what_is_inconclusive(pytester):
    pytester.makepyfile(UNDECIDED + "\ndef test_bad():\n    assert False\n")
    assert run_pytest(pytester).ret == 1

# SPDX-License-Identifier: GPL-2.0-only
"""Kconfig fragments: read, merged, and held against what came of them."""

import re

import pytest

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.build import fragments, tools
from pytest_napi.kernel.build.builder import GUEST_CONFIG
from pytest_napi.kernel.config import parse_config


@pytest.fixture
def fragment(tmp_path):
    def write(text, name="a.config"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def test_the_later_fragment_wins(fragment):
    first = fragment("CONFIG_A=y\nCONFIG_B=m\n", "1")
    second = fragment('# why\n\n#CONFIG_A is not set\r\nCONFIG_C="x y"\r\nCONFIG_D=0x1f', "2")
    assert fragments.text_of(fragments.merge([first, second])) == (
        '# CONFIG_A is not set\nCONFIG_B=m\nCONFIG_C="x y"\nCONFIG_D=0x1f\n'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no option in this config fragment; give CONFIG_NAME=VALUE"),
        ("# only a comment\n", "no option in this config fragment"),
        ("\nCONFIG_A = y\n", r"a\.config:2: 'CONFIG_A = y' is no option"),
        ("A=y\n", r"a\.config:1: 'A=y' is no option"),
        ("CONFIG_A=yes\n", r"a\.config:1: 'yes' is no value for CONFIG_A"),
        ("CONFIG_A=y # why\n", r"a\.config:1: 'y # why' is no value for CONFIG_A"),
        ('CONFIG_A="x\n', r"a\.config:1: .* is no value"),
        ("CONFIG_A=y\nCONFIG_A=n\n", r"a\.config:2: # CONFIG_A is not set, but line 1 says"),
        ("\x1b[2J\n", r"'\\\\x1b\[2J' is no option"),
    ],
)
def test_a_bad_fragment_is_one_line_with_its_place(fragment, text, message):
    with pytest.raises(KernelUnusable, match=message) as raised:
        fragments.read_fragment(fragment(text))
    assert "\n" not in str(raised.value)


def test_a_fragment_that_cannot_be_read_says_so(tmp_path):
    with pytest.raises(KernelUnusable, match="gone: cannot read this config fragment: No such"):
        fragments.read_fragment(tmp_path / "gone")
    with pytest.raises(KernelUnusable, match="cannot read this config fragment: Is a directory"):
        fragments.read_fragment(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(KernelUnusable, match="not a text"):
        fragments.read_fragment(tmp_path / "binary")


def test_saying_the_same_twice_is_no_contradiction(fragment):
    asked = fragments.read_fragment(fragment("CONFIG_A=n\n# CONFIG_A is not set\n"))
    assert [option.place.rpartition("/")[2] for option in asked.values()] == ["a.config:1"]


def test_what_did_not_stick_is_told_with_its_cause(fragment, tmp_path):
    tree = tmp_path / "tree"
    (tree / "net").mkdir(parents=True)
    (tree / "net/Kconfig").write_text('# x\nconfig A\n\tbool "a"\n\nmenuconfig SELECTED\n\tbool\n')
    for arch in ("x86", "arm"):
        (tree / "arch" / arch).mkdir(parents=True)
        (tree / "arch" / arch / "Kconfig").write_text(f"config ONLY_{arch.upper()}\n")
    text = "CONFIG_A=y\nCONFIG_B=y\n# CONFIG_SELECTED is not set\nCONFIG_ONLY_ARM=y\n"
    text += 'CONFIG_C=0x10\nCONFIG_D=""\n# CONFIG_E is not set\nCONFIG_F=m\n'
    asked = fragments.merge([fragment(text)])
    config = parse_config("CONFIG_SELECTED=y\nCONFIG_C=0x0010\nCONFIG_F=y\n", "")
    told = [line.rpartition("a.config:")[2] for line in fragments.unmet(asked, config, tree, "x86")]
    none = "the tree has no such symbol"
    assert told == [
        "1: CONFIG_A=y asked, not set got: it depends on something that is off, or another choice "
        "excludes it; see net/Kconfig:2",
        f"2: CONFIG_B=y asked, not set got: {none}",
        "3: CONFIG_SELECTED=n asked, y got: something that is on selects it, or it cannot have "
        "that value; see net/Kconfig:5",
        f"4: CONFIG_ONLY_ARM=y asked, not set got: {none}",
        f"8: CONFIG_F=m asked, y got: {none}",
    ]


def test_what_the_last_fragment_asks_for_is_told_first(fragment, tmp_path):
    asked = fragments.merge(
        [fragment("CONFIG_A=y\n", "1"), fragment("CONFIG_B=y\nCONFIG_C=y\n", "2")]
    )
    told = fragments.unmet(asked, parse_config("", ""), tmp_path, "x86")
    assert [re.search("CONFIG_(.)", line)[1] for line in told] == ["B", "C", "A"]


def test_an_option_for_another_version_is_left_out_where_the_tree_has_none(fragment, tmp_path):
    (tmp_path / "Kconfig").write_text('config HERE\n\tbool "a"\n')
    every = fragment("CONFIG_GONE=y\nCONFIG_HERE=y\n", "1")
    asked = fragments.merge([every, fragment("CONFIG_MINE=y\n", "2")])
    told = fragments.unmet(asked, parse_config("", ""), tmp_path, "x86", any_version=every)
    assert [re.search("CONFIG_([A-Z]+)", line)[1] for line in told] == ["MINE", "HERE"]


def test_the_shipped_fragments_are_well_formed():
    for path in GUEST_CONFIG.parent.glob("*.config"):
        assert fragments.read_fragment(path)


def test_all_missing_tools_are_one_line_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CROSS_COMPILE", "/opt/bin/x86_64-linux-gnu-")
    config = parse_config("CONFIG_KERNEL_ZSTD=y\nCONFIG_IKHEADERS=n\n", "")
    names = [tool.name for tool in tools.missing(config, patches=False)]
    assert {"make", "gcc", "/opt/bin/x86_64-linux-gnu-gcc", "flex", "zstd"} <= set(names)
    assert not {"git", "cpio", "pahole"} & set(names)
    with pytest.raises(tools.HostUnfit, match=r"needs make, .*: apt-get install make .*git") as no:
        tools.require(config, patches=True)
    assert "gcc-x86-64-linux-gnu" in str(no.value)
    assert "\n" not in str(no.value)

# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

from pathlib import Path

import pytest

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel import KernelSpec, parse_spec


@pytest.mark.parametrize(
    ("value", "label", "text"),
    [
        ("debian:6.12", None, "debian:6.12"),
        ("new=debian:6.12", "new", "debian:6.12"),
        ("6.12-rc1+x_y=/boot/vmlinuz", "6.12-rc1+x_y", "/boot/vmlinuz"),
        ("a=b=c", "a", "b=c"),
        ("/k/CONFIG=y/bzImage", None, "/k/CONFIG=y/bzImage"),
        ("./CONFIG=y/bzImage", None, "./CONFIG=y/bzImage"),
        ("with space=x", None, "with space=x"),
        ("x" * 5000, None, "x" * 5000),
    ],
)
def test_label_is_split_from_spec(value: str, label: str | None, text: str) -> None:
    assert parse_spec(value) == KernelSpec(label, text)


def test_existing_path_is_no_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_spec("preempt=none") == KernelSpec("preempt", "none")
    Path("preempt=none").touch()
    assert parse_spec("preempt=none") == KernelSpec(None, "preempt=none")
    assert parse_spec("x=preempt=none") == KernelSpec("x", "preempt=none")


@pytest.mark.parametrize("value", ["", " ", "label=", "label= "])
def test_nothing_given(value: str) -> None:
    with pytest.raises(KernelUnusable, match=r"names no kernel; give \[LABEL=\]SPEC: a bzImage"):
        parse_spec(value)


@pytest.mark.parametrize("value", ["a=b", "b"])
def test_text_form_parses_back(value: str) -> None:
    assert str(parse_spec(value)) == value

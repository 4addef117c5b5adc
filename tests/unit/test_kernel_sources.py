# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

from pathlib import Path

import pytest

from pytest_napi.kernel.sources import (
    MAIN_SUITES,
    SECURITY_SUITES,
    derive,
    parse_deb822,
    parse_list,
    read_entries,
)

DEB822 = """\
# the mirror nearby
Types: deb deb-src
# a comment within
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 xjMEY865UxYJ
 -----END PGP PUBLIC KEY BLOCK-----
Trusted: yes
"""


def fields(stanza: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in stanza.splitlines() if not line.startswith(" "))


def test_deb822_suites_are_replaced_and_trust_is_kept() -> None:
    text = derive(parse_deb822(DEB822), "amd64")
    assert text is not None
    main, security = text.split("\n\n")
    assert fields(main) == {
        "Types": "deb",
        "URIs": "http://mirror.example/debian",
        "Suites": " ".join(MAIN_SUITES),
        "Components": "main",
        "Architectures": "amd64",
        "Targets": "Packages",
        "Signed-By": "/usr/share/keyrings/debian-archive-keyring.gpg",
    }
    assert f"Suites: {' '.join(SECURITY_SUITES)}\n" in security
    assert "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n xjMEY865UxYJ\n" in security
    assert "Trusted: yes\n" in security


def test_every_suite_with_kernels_is_there() -> None:
    wanted = {"bookworm", "bookworm-backports", "trixie", "trixie-backports", "forky", "sid"}
    assert wanted <= set(MAIN_SUITES)
    assert {"bookworm-security", "trixie-security"} <= set(SECURITY_SUITES)


def test_one_line_format() -> None:
    text = derive(
        parse_list(
            "# comment\n"
            "deb [arch=amd64,arm64 signed-by=/k.gpg,/l.gpg] https://m.example/debian sid main # x\n"
            "deb-src https://m.example/debian/ stable main\n"
            "deb https://m.example/debian bookworm-backports main\n"
            "deb https://m.example/debian bookworm-updates main contrib\n"
        ),
        "amd64",
    )
    assert text is not None
    first, second = text.split("\n\n")  # the last two are the same once suites are replaced
    assert fields(first)["Signed-By"] == "/k.gpg /l.gpg"
    assert fields(first)["Architectures"] == "amd64"
    assert "Signed-By" not in fields(second)


@pytest.mark.parametrize(
    "line",
    [
        "deb http://archive.example/ubuntu noble main",
        "deb https://apt.vendor.example bookworm main",
        "deb https://vendor.example/debian/12/prod bookworm main",
        "deb https://vendor.example/linux/debian bookworm stable",
        "deb https://vendor.example/debian bookworm-pgdg main",
        "deb cdrom:[Debian]/debian trixie main",
        "# deb http://mirror.example/debian bookworm main",
        "deb",
        "",
    ],
)
def test_entries_of_others_are_left_out(line: str) -> None:
    assert derive(parse_list(line), "amd64") is None


@pytest.mark.parametrize(
    "line",
    [
        "deb http://mirror.example/pub/debian bookworm main",
        "deb mirror+file:/etc/apt/mirrors/debian.list bookworm main",
        "deb http://snapshot.example/archive/debian/20250520T000000Z bookworm main",
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://m.example sid main",
    ],
)
def test_debian_entries_are_known(line: str) -> None:
    assert derive(parse_list(line), "amd64") is not None


def test_disabled_entry_is_left_out() -> None:
    assert derive(parse_deb822(f"Enabled: no\n{DEB822.split(chr(10) * 2, 1)[0]}"), "amd64") is None


def test_files_are_read_by_their_format(tmp_path: Path) -> None:
    (tmp_path / "a.list").write_text("deb http://one.example/debian sid main\n")
    (tmp_path / "b.sources").write_text(DEB822)
    (tmp_path / "c.sources.disabled").write_text(DEB822)
    files = [*sorted(tmp_path.iterdir()), tmp_path / "absent.list"]
    assert [entry.uris[0] for entry in read_entries(files)] == [
        "http://one.example/debian",
        "http://mirror.example/debian",
        "http://mirror.example/debian-security",
    ]

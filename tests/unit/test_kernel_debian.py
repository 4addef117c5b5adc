# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_kernel_deb import Log

from pytest_napi.errors import HostUnfit, KernelUnusable
from pytest_napi.kernel import apt, debian, fetcher, offers
from pytest_napi.kernel.architecture import AARCH64, X86_64
from samples import bzimage, deb

CLOUD = "cloud-amd64"


def stanza(name: str, version: str, depends: str = "kmod") -> str:
    return f"Package: {name}\nVersion: {version}\nDepends: {depends}\nDescription: x\n  y\n\n"


def whole(abi: str, version: str) -> str:
    return stanza(f"linux-image-{abi}-{CLOUD}", version)


def parts(abi: str, version: str, *names: str) -> str:
    release = f"{abi}-{CLOUD}"
    needed = ", ".join(
        f"linux-{part}-{release} (= {version})" for part in ("base", "binary", "modules")
    )
    text = stanza(f"linux-image-{release}", version, f"dracut | initramfs-tools, {needed}")
    return text + "".join(stanza(f"linux-{part}-{release}", version) for part in names)


INDEX = "".join(
    [
        whole("6.1.0-50", "6.1.176-1"),
        whole("6.1.0-57", "6.1.192-3"),
        whole("6.12.117+deb12", "6.12.117-1~deb12u1"),
        whole("6.12.117+deb13", "6.12.117-1"),
        whole("6.12.9+deb13", "6.12.9-1"),
        stanza(f"linux-image-{CLOUD}", "6.12.117-1", f"linux-image-6.12.117+deb13-{CLOUD}"),
        stanza(f"linux-image-6.12-{CLOUD}", "6.12.117-9", f"linux-image-6.12.117+deb13-{CLOUD}"),
        stanza(f"linux-image-6.12.117+deb13-{CLOUD}-dbg", "6.12.117-9"),
        stanza("linux-image-6.12.117+deb13-amd64", "6.12.117-9"),
        stanza("linux-image-6.12.117+deb13-amd64-unsigned", "6.12.117-9"),
        stanza("linux-image-6.12.118+deb13-rt-amd64", "6.12.118-1"),
        stanza("linux-image-amd64", "6.12.117-9", "linux-image-6.12.117+deb13-amd64"),
        stanza("linux-source-6.12", "6.12.117-1"),
        stanza("linux-source-6.12", "6.12.118-1~deb13u1"),
        stanza("linux-source-7.3", "7.3.4-1~bpo13+1"),
        stanza("linux-source", "7.3.4-9", "linux-source-7.3"),
        parts("6.19.14+deb13", "6.19.14-1", "binary"),
        parts("7.3.4+deb13", "7.3.4-1~bpo13+1", "base", "binary", "modules"),
    ]
)


def test_offers_are_whole_kernels_newest_first() -> None:
    found = offers.kernels(INDEX, X86_64, "cloud")
    assert [offer.version for offer in found] == [
        "7.3.4-1~bpo13+1",
        "6.19.14-1",
        "6.12.117-1",
        "6.12.117-1~deb12u1",
        "6.12.9-1",
        "6.1.192-3",
        "6.1.176-1",
    ]
    assert sorted(found[0].packages) == [
        f"linux-{part}-7.3.4+deb13-{CLOUD}" for part in ("base", "binary", "modules")
    ]
    assert list(found[2].packages.items()) == [
        (f"linux-image-6.12.117+deb13-{CLOUD}", "6.12.117-1")
    ]
    assert found[1].missing == (
        f"linux-base-6.19.14+deb13-{CLOUD}",
        f"linux-modules-6.19.14+deb13-{CLOUD}",
    )


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        ("6.1", "6.1.192-3"),
        ("6.12", "6.12.117-1"),
        ("6.12.9", "6.12.9-1"),
        ("7", "7.3.4-1~bpo13+1"),
        ("6.12.1", None),
        ("6.1.0", None),
    ],
)
def test_versions_match_by_components(wanted: str, version: str | None) -> None:
    found = offers.kernels(INDEX, X86_64, "cloud")
    numbers = offers.components(wanted)
    first = next((offer.version for offer in found if offers.matches(offer, numbers)), None)
    assert first == version


def test_list_for_messages_has_the_newest_of_each_series() -> None:
    found = offers.newest_of_each_series(offers.kernels(INDEX, X86_64, "cloud"))
    assert found == ["6.1.192", "6.12.117", "7.3.4"]


class FakeApt:
    """A mirror with INDEX, of which the class attributes are the state."""

    index = INDEX
    reachable = True
    has_source = True
    calls: list[str] = []  # noqa: RUF012 - set anew by the fixture

    def __init__(self, folder: Path, architecture: object) -> None:
        self.folder = folder

    def update(self) -> None:
        self.calls.append("update")
        if not self.reachable:
            raise HostUnfit("apt-get update: no network")

    def package_names(self, prefix: str) -> list[str]:
        lines = self.index.splitlines()
        names = [line.removeprefix("Package: ") for line in lines if line.startswith("Package: ")]
        return [name for name in names if name.startswith(prefix)]

    def show(self, names: Sequence[str]) -> str:
        stanzas = self.index.split("\n\n")
        wanted = {f"Package: {name}" for name in names}
        return "\n\n".join(text for text in stanzas if text.split("\n", 1)[0] in wanted)

    @contextmanager
    def download(self, packages: Mapping[str, str]) -> Iterator[list[Path]]:
        self.calls.append("download")
        if not self.reachable:
            raise HostUnfit("apt-get download: no network")
        name = next(iter(packages))
        release = name.split("-", 2)[2]
        with_kernel = {f"./boot/vmlinuz-{release}": bzimage(release)}
        if name.startswith("linux-source-"):
            tarball = {f"./usr/src/{name}.tar.xz": name.encode(), "./usr/src/x.patch.xz": b""}
            with_kernel = tarball if self.has_source else {}
        folder = self.folder / "downloads"
        debs = [deb(folder, name, with_kernel if i == 0 else {}) for i, name in enumerate(packages)]
        yield debs
        shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> type[FakeApt]:
    monkeypatch.setattr(FakeApt, "calls", [])
    monkeypatch.setattr(FakeApt, "index", INDEX)
    monkeypatch.setattr(FakeApt, "reachable", True)
    monkeypatch.setattr(FakeApt, "has_source", True)
    monkeypatch.setattr(fetcher, "Apt", FakeApt)
    return FakeApt


def fetch(version: str, cache: Path, log: Log | None = None) -> str:
    fetched = debian.fetch_kernel(f"debian:{version}", cache, log if log is not None else Log())
    assert fetched.image.exists()
    return fetched.package


def grow_old(cache: Path, days: float = 1.1) -> None:
    """Let a day pass for what is remembered."""
    folder = cache / "debian/amd64"
    then = time.time() - days * 86400
    os.utime(folder / "updated", (then, then))
    for memo in (folder / "answers").iterdir():
        memo.write_text(json.dumps(json.loads(memo.read_text()) | {"asked": then}))


def test_second_time_runs_no_apt(tmp_path: Path, mirror: type[FakeApt]) -> None:
    assert fetch("6.12", tmp_path) == f"linux-image-6.12.117+deb13-{CLOUD} 6.12.117-1"
    assert mirror.calls == ["update", "download"]
    mirror.calls.clear()
    assert fetch("6.12", tmp_path) == f"linux-image-6.12.117+deb13-{CLOUD} 6.12.117-1"
    assert mirror.calls == []


def test_index_is_read_once_a_day(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetch("6.12", tmp_path)
    fetch("6.1", tmp_path)
    assert mirror.calls == ["update", "download", "download"]
    mirror.calls.clear()
    grow_old(tmp_path)
    mirror.index = whole("6.12.118+deb13", "6.12.118-1") + INDEX
    assert fetch("6.1", tmp_path) == f"linux-image-6.1.0-57-{CLOUD} 6.1.192-3"
    assert mirror.calls == ["update"]
    assert fetch("6.12", tmp_path) == f"linux-image-6.12.118+deb13-{CLOUD} 6.12.118-1"
    assert mirror.calls == ["update", "download"]


def test_full_version_is_one_kernel_for_ever(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetch("6.12.117", tmp_path)
    grow_old(tmp_path, days=999)
    mirror.calls.clear()
    fetch("6.12.117", tmp_path)
    assert mirror.calls == []


def test_same_package_is_fetched_once(tmp_path: Path, mirror: type[FakeApt]) -> None:
    assert fetch("7.3", tmp_path) == fetch("7", tmp_path)
    assert mirror.calls == ["update", "download"]


def test_what_was_fetched_is_used_offline(tmp_path: Path, mirror: type[FakeApt]) -> None:
    package = fetch("6.12", tmp_path)
    grow_old(tmp_path)
    mirror.reachable = False
    log = Log()
    assert fetch("6.12", tmp_path, log) == package
    assert "no network" in " ".join(log)


def test_what_the_mirror_dropped_is_used(tmp_path: Path, mirror: type[FakeApt]) -> None:
    package = fetch("6.12", tmp_path)
    grow_old(tmp_path)
    mirror.index = whole("6.1.0-57", "6.1.192-3")
    log = Log()
    assert fetch("6.12", tmp_path, log) == package
    assert f"using {package}, fetched earlier" in log[-1]


def test_offline_without_anything(tmp_path: Path, mirror: type[FakeApt]) -> None:
    mirror.reachable, mirror.index = False, ""
    with pytest.raises(HostUnfit, match="no network"):
        fetch("6.12", tmp_path)
    assert mirror.calls == ["update"]


def test_lost_kernel_is_fetched_again(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetch("6.12", tmp_path)
    shutil.rmtree(tmp_path / "unpacked")
    mirror.calls.clear()
    fetch("6.12", tmp_path)
    assert mirror.calls == ["download"]


def test_version_that_came_since(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetch("6.12", tmp_path)
    grow_old(tmp_path, days=0.1)
    mirror.calls.clear()
    with pytest.raises(KernelUnusable):
        fetch("6.13", tmp_path)
    assert mirror.calls == ["update"]


def test_unknown_version_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(KernelUnusable) as caught:
        fetch("99.9", tmp_path)
    message = "debian:99.9: no such cloud-amd64 kernel; there are: 6.1.192, 6.12.117, 7.3.4"
    assert str(caught.value) == message


def test_incomplete_kernel_is_explained(tmp_path: Path) -> None:
    with pytest.raises(
        KernelUnusable, match=r"the mirror has linux-image-6\.19.*without linux-base"
    ):
        fetch("6.19", tmp_path)


@pytest.mark.parametrize("version", ["", "x", "6.", ":arm64", "../6", "6.12-1", "6.12\n", "@rt"])
def test_what_is_no_version(tmp_path: Path, version: str, mirror: type[FakeApt]) -> None:
    with pytest.raises(KernelUnusable, match=r"is no version; give one like debian:6\.12"):
        fetch(version, tmp_path)
    assert mirror.calls == []


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"package": 1}', "\0"])
def test_damaged_memo_is_no_error(tmp_path: Path, text: str) -> None:
    fetch("6.12", tmp_path)
    (tmp_path / "debian/amd64/answers/6.12").write_text(text)
    assert fetch("6.12", tmp_path)


@pytest.mark.parametrize(
    ("version", "package"),
    [
        ("6.12@cloud", f"linux-image-6.12.117+deb13-{CLOUD} 6.12.117-1"),
        ("6.12:amd64", f"linux-image-6.12.117+deb13-{CLOUD} 6.12.117-1"),
        ("6.12@amd64", "linux-image-6.12.117+deb13-amd64 6.12.117-9"),
        ("6.12:amd64@rt", "linux-image-6.12.118+deb13-rt-amd64 6.12.118-1"),
    ],
)
def test_flavour(tmp_path: Path, version: str, package: str) -> None:
    assert fetch(version, tmp_path) == package


def test_each_flavour_has_its_own_answer(tmp_path: Path, mirror: type[FakeApt]) -> None:
    first = [fetch(version, tmp_path) for version in ("6.12", "6.12@amd64", "6.12@rt")]
    answers = tmp_path / "debian/amd64/answers"
    assert sorted(memo.name for memo in answers.iterdir()) == ["6.12", "6.12@amd64", "6.12@rt"]
    mirror.calls.clear()
    again = [fetch(version, tmp_path) for version in ("6.12:amd64@cloud", "6.12@amd64", "6.12@rt")]
    assert again == first
    assert mirror.calls == []


def test_another_architecture_has_its_own_lists(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetch("6.12", tmp_path)
    mirror.index = stanza("linux-image-6.12.118+deb13-cloud-arm64", "6.12.118-1")
    package = "linux-image-6.12.118+deb13-cloud-arm64 6.12.118-1"
    assert fetch("6.12:arm64", tmp_path) == package
    assert (tmp_path / "debian/arm64/answers/6.12").exists()
    assert debian.parse("debian:6.12:arm64@arm64") == debian.Wanted("6.12", AARCH64, "arm64")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("6.12:mips", "no architecture 'mips'; give one of amd64, arm64"),
        ("6.12:", "no architecture ''; give one of amd64, arm64"),
        ("6.12:x86_64", "no architecture 'x86_64'; give one of amd64, arm64"),
        ("6.12@fast", "no flavour 'fast' for amd64; give one of cloud, amd64, rt"),
        ("6.12@", "no flavour '' for amd64; give one of cloud, amd64, rt"),
        ("6.12:arm64@amd64", "no flavour 'amd64' for arm64; give one of cloud, arm64, rt"),
        ("6.12@rt:arm64", "no flavour 'rt:arm64' for amd64; give one of cloud, amd64, rt"),
    ],
)
def test_what_is_no_architecture_or_flavour(
    tmp_path: Path, version: str, message: str, mirror: type[FakeApt]
) -> None:
    with pytest.raises(KernelUnusable) as caught:
        fetch(version, tmp_path)
    form = "debian:VERSION[:ARCH][@FLAVOUR]"
    assert str(caught.value) == f"debian:{version}: {message} ({form})"
    assert mirror.calls == []


def test_flavour_that_a_version_lacks(tmp_path: Path) -> None:
    with pytest.raises(KernelUnusable) as caught:
        fetch("6.1@rt", tmp_path)
    assert str(caught.value) == "debian:6.1@rt: no such rt-amd64 kernel; there are: 6.12.118"


def source(version: str, cache: Path, log: Log | None = None) -> debian.FetchedSource:
    return debian.fetch_source(version, cache, log if log is not None else Log())


@pytest.mark.parametrize("version", ["6.12", "6.12.118", "6"])
def test_source(tmp_path: Path, version: str, mirror: type[FakeApt]) -> None:
    fetched = source(version, tmp_path)
    place = "sources/linux-source-6.12_6.12.118-1~deb13u1/linux-source-6.12.tar.xz"
    assert fetched == debian.FetchedSource(tmp_path / place, "linux-source-6.12 6.12.118-1~deb13u1")
    assert fetched.tarball.read_bytes() == b"linux-source-6.12"
    assert mirror.calls == ["update", "download"]
    mirror.calls.clear()
    assert source(version, tmp_path) == fetched
    assert mirror.calls == []


def test_source_and_kernel_share_the_index(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetch("6.12", tmp_path)
    source("6.12", tmp_path)
    assert fetch("6.12", tmp_path) == f"linux-image-6.12.117+deb13-{CLOUD} 6.12.117-1"
    assert mirror.calls == ["update", "download", "download"]


def test_source_is_used_offline(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetched = source("6.12", tmp_path)
    grow_old(tmp_path)
    mirror.reachable = False
    log = Log()
    assert source("6.12", tmp_path, log) == fetched
    assert "no network" in " ".join(log)


def test_new_source_is_kept_beside_the_old(tmp_path: Path, mirror: type[FakeApt]) -> None:
    old = source("6.12", tmp_path)
    grow_old(tmp_path)
    mirror.index = stanza("linux-source-6.12", "6.12.119-1") + INDEX
    new = source("6.12", tmp_path)
    assert new.package == "linux-source-6.12 6.12.119-1"
    assert old.tarball.exists()


def test_source_that_was_cut_is_mended(tmp_path: Path, mirror: type[FakeApt]) -> None:
    fetched = source("6.12", tmp_path)
    os.truncate(fetched.tarball, 3)
    assert source("6.12", tmp_path) == fetched
    assert fetched.tarball.read_bytes() == b"linux-source-6.12"


def test_unknown_source_lists_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(KernelUnusable) as caught:
        source("6.13", tmp_path)
    message = "debian:6.13: no such kernel source; there are: 6.12.118, 7.3.4"
    assert str(caught.value) == message


@pytest.mark.parametrize("version", ["", "6.12@rt", "6.12:arm64", "../x"])
def test_source_of_no_version(tmp_path: Path, version: str) -> None:
    with pytest.raises(KernelUnusable, match="is no version; give one like"):
        source(version, tmp_path)


def test_package_without_a_source(tmp_path: Path, mirror: type[FakeApt]) -> None:
    mirror.has_source = False
    with pytest.raises(
        KernelUnusable, match=r"there is no source in linux-source-6\.12 6\.12\.118"
    ):
        source("6.12", tmp_path)


def test_no_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostUnfit, match=r"apt, which this host lacks; give a bzImage or a \.deb"):
        apt.Apt(tmp_path / "apt", X86_64)


def host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, script: str = "exit 0"
) -> None:
    """Put an apt in the path that does what ``script`` says, on a host with one source entry."""
    (tmp_path / "apt.list").write_text(entry)
    programs = {
        "apt-config": f"echo \"LIST='{tmp_path}/apt.list'\"",
        "apt-get": script,
        "apt-cache": script,
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


DEBIAN_ENTRY = "deb http://mirror.example/debian bookworm main\n"


def test_no_debian_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host(tmp_path, monkeypatch, "deb http://mirror.example/ubuntu noble main\n")
    with pytest.raises(HostUnfit, match="no Debian entry in apt's sources"):
        apt.Apt(tmp_path / "state", X86_64)


def test_apt_runs_on_its_own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host(tmp_path, monkeypatch, DEBIAN_ENTRY, 'echo "Hit:1"; cat "$2" > $0.seen')
    apt.Apt(tmp_path / "state", X86_64).update()
    seen = (tmp_path / "apt-get.seen").read_text()
    for setting in ("Dir::State::status", "Dir::State::lists", "Dir::Cache::pkgcache"):
        assert f'{setting} "{tmp_path}/state/' in seen
    assert 'Dir::Etc::sourcelist "/dev/null";' in seen
    sources = (tmp_path / "state/sources.list.d/debian.sources").read_text()
    assert "URIs: http://mirror.example/debian\n" in sources


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'E: No space left on device' >&2; exit 100", "no space left for the cache folder"),
        ("echo 'W: Failed to fetch x  Could not resolve'; exit 0", "Failed to fetch x Could not"),
        ("exit 7", "exit status 7"),
    ],
)
def test_apt_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    host(tmp_path, monkeypatch, DEBIAN_ENTRY, script)
    with pytest.raises(HostUnfit, match=message) as caught:
        apt.Apt(tmp_path / "state", X86_64).update()
    assert "\n" not in str(caught.value)


def test_missing_suite_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo 'Get:1 x'; echo 'E: The repository does not have a Release file.' >&2; exit 100"
    host(tmp_path, monkeypatch, DEBIAN_ENTRY, script)
    apt.Apt(tmp_path / "state", X86_64).update()


def test_download_is_removed_after_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host(tmp_path, monkeypatch, DEBIAN_ENTRY, "echo x > a_1_amd64.deb")
    left = tmp_path / "state/download-left"
    left.mkdir(parents=True)
    with apt.Apt(tmp_path / "state", X86_64).download({"a": "1"}) as debs:
        assert [path.name for path in debs] == ["a_1_amd64.deb"]
    assert not list((tmp_path / "state").glob("download-*"))


def test_download_that_gives_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host(tmp_path, monkeypatch, DEBIAN_ENTRY, "echo 'E: 404' >&2")
    private = apt.Apt(tmp_path / "state", X86_64)
    with pytest.raises(HostUnfit, match=r"apt-get download a=1: 404"), private.download({"a": "1"}):
        pytest.fail("there is nothing to use")

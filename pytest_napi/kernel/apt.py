# SPDX-License-Identifier: GPL-2.0-only
"""Run the host's apt on a state of its own: other suites, no root, the system's apt untouched.

Callers keep other runs out of the folder (``store.locked``).  Integrity is apt's business: it
checks the index's signature and every package's hash.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pytest_napi.cache import writing
from pytest_napi.errors import HostUnfit
from pytest_napi.kernel import sources, store
from pytest_napi.kernel.architecture import Architecture

_INSTEAD = "give a bzImage or a .deb instead"

# Read after the host's own configuration, whose proxies, credentials and certificates stay in
# force.  What is cleared would run programs of the system after an update.
_CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
// Without this apt, run as root, complains that its own user cannot enter a private folder.
APT::Sandbox::User "root";
APT::Get::List-Cleanup "true";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
// Whole indexes: sid's differences since the last month are more than it.
Acquire::PDiffs "false";
Acquire::GzipIndexes "true";
Dir::State "{folder}";
Dir::State::status "{folder}/status";
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}";
Dir::Cache::archives "{folder}/archives";
// Some systems disable it to save space; it makes every look-up 100 times faster.
Dir::Cache::pkgcache "{folder}/pkgcache.bin";
Dir::Cache::srcpkgcache "";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources.list.d";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "{folder}/preferences.d";
"""

_NO_SPACE = re.compile(r"No space left on device|enough free space|Disk quota exceeded")


class Apt:
    """apt with its lists, cache and sources in ``folder`` (which is made)."""

    def __init__(self, folder: Path, architecture: Architecture) -> None:
        """Set the folder up.

        Raises HostUnfit without apt, without a Debian entry in its sources, or if the folder cannot
        be written.
        """
        if shutil.which("apt-get") is None or shutil.which("apt-cache") is None:
            raise HostUnfit(
                f"debian: kernels are fetched with apt, which this host lacks; {_INSTEAD}"
            )
        if '"' in str(folder):
            raise HostUnfit(f"{folder}: apt cannot use a path with a quote; use another cache")
        self._folder = folder
        text = sources.derive(sources.read_entries(_source_files()), architecture.debian)
        if text is None:
            raise HostUnfit(f"debian: there is no Debian entry in apt's sources here; {_INSTEAD}")
        with writing(folder):
            for name in ("lists/partial", "archives/partial", "sources.list.d", "preferences.d"):
                (folder / name).mkdir(parents=True, exist_ok=True)
        files = {
            "status": "",  # nothing is installed
            "apt.conf": _CONFIGURATION.format(folder=folder, architecture=architecture.debian),
            "sources.list.d/debian.sources": text,
        }
        for name, content in files.items():
            # Only where it differs: apt builds its cache anew when one of them is newer.
            if store.read_text(folder / name) != content:
                store.write_text(folder / name, content)

    def update(self) -> None:
        """Fetch the package indexes; raise HostUnfit if not one suite could be reached.

        A suite the mirror does not have is no error, and of one that cannot be reached just now apt
        keeps the older index.
        """
        result = self._run("apt-get", "-q", "update")
        # apt's exit status says neither: it is 0 where nothing could be reached, 100 where one
        # suite does not exist.
        if not re.search(r"^(Get|Hit):\d", result.stdout, re.MULTILINE):
            raise HostUnfit(f"apt-get update: {_complaint(result)}; is the mirror reachable?")

    def package_names(self, prefix: str) -> list[str]:
        """Return the names of all packages in the indexes that start like this."""
        return self._run("apt-cache", "pkgnames", prefix).stdout.split()

    def show(self, names: Sequence[str]) -> str:
        """Return the stanzas of these packages, of every version there is."""
        return self._run("apt-cache", "show", *names).stdout if names else ""

    @contextmanager
    def download(self, packages: Mapping[str, str]) -> Iterator[list[Path]]:
        """Fetch packages (name -> version); the .debs are gone when the block is left.

        Raises HostUnfit with apt's reason if one cannot be had.
        """
        for left in self._folder.glob("download-*"):
            shutil.rmtree(left, ignore_errors=True)  # of a run that was killed
        with writing(self._folder):
            target = tempfile.TemporaryDirectory(prefix="download-", dir=self._folder)
        with target as name:
            wanted = [f"{package}={version}" for package, version in packages.items()]
            result = self._run("apt-get", "-q", "download", *wanted, cwd=name)
            debs = sorted(Path(name).glob("*.deb"))
            if result.returncode or len(debs) != len(packages):
                raise HostUnfit(f"apt-get download {' '.join(wanted)}: {_complaint(result)}")
            yield debs

    def _run(
        self, program: str, *arguments: str, cwd: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            [program, "-c", str(self._folder / "apt.conf"), *arguments],
            cwd=cwd,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if _NO_SPACE.search(result.stderr) or _NO_SPACE.search(result.stdout):
            with writing(self._folder):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return result


def _source_files() -> list[Path]:
    """Return the host's source files, in the places its apt is configured to read."""
    result = subprocess.run(
        [
            "apt-config",
            "shell",
            "LIST",
            "Dir::Etc::sourcelist/f",
            "PARTS",
            "Dir::Etc::sourceparts/d",
        ],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    places = dict(re.findall(r"^(\w+)='(.*)'$", result.stdout, re.MULTILINE))
    files = [Path(places["LIST"])] if "LIST" in places else []
    if "PARTS" in places:
        files += sorted(Path(places["PARTS"]).glob("*"))
    return files


def _complaint(result: subprocess.CompletedProcess[str]) -> str:
    """Return the first error, else the first warning, that apt printed, in one line."""
    lines = (result.stderr + result.stdout).splitlines()
    for mark in ("E: ", "W: ", "Err:"):
        for line in lines:
            if line.startswith(mark):
                return " ".join(line.removeprefix(mark).split())
    return f"exit status {result.returncode}"

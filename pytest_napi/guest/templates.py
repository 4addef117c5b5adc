# SPDX-License-Identifier: GPL-2.0-only
"""Saved guests: the first is booted and saved, and every later test gets a copy of it.

A template is a folder of the cache named by a hash of all that its guest depends on.  It is made
under a lock, appears whole or not at all, and is made anew when QEMU cannot restore it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from pytest_napi.closing import closed_on_error
from pytest_napi.errors import GuestLost, HostUnfit
from pytest_napi.guest.boot import BootConfig, Booted, boot, guest_image, machine_config, restore
from pytest_napi.kernel.kernel import Kernel
from pytest_napi.kernel.store import identity, locked
from pytest_napi.machine.argv import Descriptors, Memory, qemu_argv
from pytest_napi.machine.control import ControlError
from pytest_napi.machine.nics import descriptors_of
from pytest_napi.machine.snapshot import Snapshot

_FORMAT = "1"
"""Part of every key: changes with what a saved guest is."""


class Templates:
    """The saved guests of a cache.

    ``space_mib`` is how much of the file system they may use together: those unused for longest
    are removed.  The one used last always stays.
    """

    def __init__(self, folder: Path, space_mib: int, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._space = space_mib << 20
        self._say = say
        self._without: dict[str, str] = {}
        """By key, why a guest cannot be saved: it is not tried again."""

    def copy(self, kernel: Kernel, config: BootConfig, folder: Path) -> Booted | None:
        """Return a copy of the template, not yet taken over; None when there is none.

        Raises GuestLost when the template is there and cannot be restored.
        """
        key = template_key(kernel, config)
        with self._in_use(key):
            snapshot = self._snapshot(key, config)
            if snapshot is not None:
                return restore(kernel, config, folder, snapshot)
        if (self._folder / key).exists():
            raise GuestLost("guest lost: its saved memory is cut off")
        return None

    def warm_copy(self, kernel: Kernel, config: BootConfig, folder: Path) -> Booted | None:
        """Return a copy that has run before and stands still; otherwise as ``copy``."""
        copied = self.copy(kernel, config, folder)
        if copied is not None:
            with closed_on_error(copied):
                copied.warm_up()
        return copied

    def guest(
        self, kernel: Kernel, config: BootConfig, folder: Path, prepared: Booted | None = None
    ) -> Booted:
        """Return a guest that takes commands, its machine's files in ``folder``.

        It is ``prepared``, a copy that is already there, or else a new copy of the template, which
        is made when there is none.  Where that cannot be, it is a guest that was booted, with a
        note that says why.  Raises GuestLost and HostUnfit as ``boot`` does.
        """
        key = template_key(kernel, config)
        notes: list[str] = []
        found = None
        try:
            found = _taken_over(prepared or self.copy(kernel, config, folder))
        except GuestLost as error:
            notes.append(f"the saved guest could not be restored, another is saved: {error}")
            self._remove(key)
        if found is None and key not in self._without:
            found = self._made(key, kernel, config, folder)
        if found is None:
            found = boot(kernel, config, folder)
            notes.append(f"booted, not restored: {self._without[key]}")
        found.notes = [*notes, *found.notes]
        return found

    def _made(self, key: str, kernel: Kernel, config: BootConfig, folder: Path) -> Booted | None:
        """Boot a guest, save it, and return it; or a copy where another run has just saved one.

        Returns None when none can be had, and ``_without`` has the reason.
        """
        try:
            with locked(self._folder / "making" / key, self._say):
                if self._snapshot(key, config) is None:
                    return self._saved(key, boot(kernel, config, folder, saveable=True))
        except HostUnfit as error:
            self._without[key] = str(error)
            return None
        try:
            return _taken_over(self.copy(kernel, config, folder))
        except GuestLost as error:
            self._without[key] = f"a saved guest could not be restored: {error}"
            return None

    def _saved(self, key: str, booted: Booted) -> Booted:
        """Save a guest that has just booted, and let it run on."""
        with closed_on_error(booted):
            splats = booted.machine.log.splats()
            if splats:
                # A guest's log is part of its test's verdict: one boot's must not be every test's.
                return self._unsaved(key, booted, f"the kernel logged {splats[0].line!r}")
            # Brings the pages into memory that the first command of every copy needs.
            booted.guest.run(["true"], check=True)
            booted.machine.wait_idle()
            new = self._folder / f".new-{key}"
            shutil.rmtree(new, ignore_errors=True)
            try:
                new.mkdir(mode=0o700)
                booted.machine.save(Snapshot(new))
                new.rename(self._folder / key)
            except (ControlError, OSError) as error:
                self._unsaved(key, booted, f"it cannot be saved: {error}")
            finally:
                shutil.rmtree(new, ignore_errors=True)
            booted.wake()
        self._prune(key)
        return booted

    def _unsaved(self, key: str, booted: Booted, why: str) -> Booted:
        self._without[key] = why
        booted.notes.append(f"booted, not restored: {why}")
        return booted

    def _snapshot(self, key: str, config: BootConfig) -> Snapshot | None:
        """Return the template of ``key`` if it is there and its memory whole; mark it used."""
        snapshot = Snapshot(self._folder / key)
        with suppress(OSError):
            if snapshot.memory.stat().st_size == config.memory_mib << 20:
                os.utime(snapshot.folder)
                return snapshot
        return None

    @contextmanager
    def _in_use(self, key: str) -> Iterator[None]:
        """Keep the template from being removed while QEMU opens its files."""
        try:
            descriptor = os.open(self._folder / key, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def _remove(self, key: str) -> None:
        """Remove a template unless a QEMU is opening it.  Copies that run keep what they mapped."""
        folder = self._folder / key
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)

    def _prune(self, keep: str) -> None:
        """Remove the templates unused for longest until the rest fits into the space."""
        used = []
        for folder in self._folder.iterdir():
            with suppress(OSError):
                if (folder / "state").exists():
                    blocks = sum(path.stat().st_blocks for path in folder.iterdir())
                    used.append((folder.stat().st_mtime_ns, folder.name, 512 * blocks))
        total = sum(size for _, _, size in used)
        for _, key, size in sorted(used):
            if total <= self._space:
                break
            if key != keep:
                self._remove(key)
                total -= size


def _taken_over(copied: Booted | None) -> Booted | None:
    """Return the copy when it takes commands; raise GuestLost, with its machine closed, if not."""
    if copied is not None:
        with closed_on_error(copied):
            copied.take_over()
    return copied


def template_key(kernel: Kernel, config: BootConfig) -> str:
    """Return the name of the template of ``kernel`` on a machine of ``config``.

    A hash of QEMU's program and command line, with the files it names replaced by what tells their
    content, and for an accelerator that passes the host's CPU on, of that CPU.
    """
    machine = machine_config(kernel, config, guest_image(kernel, config.cache, config.nics))
    told = replace(
        machine, kernel=Path(identity(kernel.image)), initramfs=Path(identity(machine.initramfs))
    )
    nics = tuple(tuple(range(descriptors_of(nic))) for nic in machine.nics)
    descriptors = Descriptors(console=0, channel=1, qmp=2, nics=nics)
    argv = qemu_argv(config.emulator.path, told, descriptors, Memory(Path("memory"), shared=False))
    parts = [_FORMAT, identity(config.emulator.path), str(config.emulator), *argv]
    if config.accelerator.name != "tcg":
        parts.append(_host_cpu())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _host_cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    told = [
        line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features"))
    ]
    return "\n".join(dict.fromkeys(told))

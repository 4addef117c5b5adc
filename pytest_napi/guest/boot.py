# SPDX-License-Identifier: GPL-2.0-only
"""Boots a kernel into a guest that takes commands, or restores one that had been booted."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_napi.closing import Closing
from pytest_napi.errors import GuestLost
from pytest_napi.guest.guest import Guest
from pytest_napi.guest.preemption import Running, read_back
from pytest_napi.image.initramfs import initramfs
from pytest_napi.image.manifest import Manifest, load_manifest
from pytest_napi.kernel import preempt
from pytest_napi.kernel.kernel import Kernel
from pytest_napi.kernel.requirements import Requirement
from pytest_napi.kernel.vmlinux import vmlinux
from pytest_napi.machine.argv import MachineConfig
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.emulator import Accelerator, Emulator
from pytest_napi.machine.kernel_log import load_signatures
from pytest_napi.machine.machine import Machine
from pytest_napi.machine.nics import NIC_MODELS, NicConfig
from pytest_napi.machine.snapshot import Snapshot
from pytest_napi.shipped import shipped

BOOT_ATTEMPTS = 3
"""Boots until a guest that dies of a defect of QEMU is given up."""

_VIRTIO_CONSOLE = Requirement(("VIRTIO_CONSOLE",), "command channel", module="virtio_console")


@dataclass(frozen=True)
class BootConfig:
    """What a guest is booted with, beside its kernel."""

    emulator: Emulator
    accelerator: Accelerator
    cache: Path
    model: str | None = None
    """The preemption model asked for; None: what the kernel boots with."""
    cpus: int = 2
    memory_mib: int = 512
    timeout: float = 60.0
    """Seconds from QEMU's start to the agent's first word."""
    nics: tuple[NicConfig, ...] = ()
    append: tuple[str, ...] = ()
    """Kernel parameters beside those every guest gets."""


class Booted(Closing):
    """One guest with its machine, booted or restored.  A context manager that ends both."""

    def __init__(self, kernel: Kernel, config: BootConfig, machine: Machine) -> None:
        self.kernel = kernel
        self.config = config
        self.machine = machine
        self.guest = Guest(machine.channel, machine.lost)
        self.restored = False
        """Whether this is a copy of a guest that was saved after it had booted."""
        self.notes: list[str] = []
        """What was out of the ordinary, for the report."""

    def take_over(self) -> None:
        """Wait for the agent of a guest that boots, or wake one that was restored.

        Raises GuestLost.
        """
        if self.restored:
            self.wake()
        else:
            self.hello = self.guest.wait_ready(self.config.timeout)
        self.machine.observe_host()

    def wake(self) -> None:
        """Let a guest run that has stood still, and tell it the time.  Raises GuestLost."""
        self.machine.resume()
        self.hello = self.guest.wake(self.config.timeout)

    def warm_up(self) -> None:
        """Let a restored guest run a program, then stand still again.

        TCG then has translated what every program needs: the first one takes 0.2 s less.
        """
        self.wake()
        self.guest.run(["true"], check=True)
        self.machine.pause()

    @functools.cached_property
    def preemption(self) -> Running:
        """The preemption model that really runs, read back from the guest."""
        return read_back(self.guest, self.kernel, self.machine.log)

    @functools.cached_property
    def _offset_ns(self) -> int:
        return self.guest.clock_offset()

    def guest_now_ns(self) -> int:
        """Return the guest's CLOCK_MONOTONIC as the host reckons it."""
        return time.monotonic_ns() + self._offset_ns

    def withheld_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how long the host withheld the CPU between two times of the guest's clock."""
        offset = self._offset_ns
        return self.machine.withheld_ns(start_ns - offset, end_ns - offset)

    def settle_log(self, label: str) -> None:
        """Wait until all that the guest has logged so far is in the kernel log.

        The guest logs ``label`` itself; when that line has arrived, so has what was before it.  A
        guest that can no longer do so has a log that ends where it ends.
        """
        since = self.machine.log.mark()
        line = f"pytest-napi: {label}"
        try:
            # Without its line feed the kernel would hold the record open for more to come.
            self.guest.write_text("/dev/kmsg", f"{line}\n")
        except (GuestLost, OSError):
            return
        self.machine.log.wait_for(line, timeout=5, since=since)

    def close(self) -> None:
        """End the guest and its QEMU."""
        self.machine.close()
        self.guest.close()


def boot(kernel: Kernel, config: BootConfig, folder: Path, *, saveable: bool = False) -> Booted:
    """Boot ``kernel``; files of the machine go to ``folder``.

    A boot that dies of a known defect of this QEMU is repeated, and noted; one that dies of it
    BOOT_ATTEMPTS times is not excused.  Raises GuestLost when the kernel panics, dies or is silent
    until ``config.timeout``.
    """
    notes: list[str] = []
    for attempt in range(1, BOOT_ATTEMPTS + 1):
        where = folder if attempt == 1 else folder / f"boot-{attempt}"
        booted = Booted(kernel, config, start(kernel, config, where, saveable=saveable))
        booted.notes = notes
        try:
            booted.take_over()
        except BaseException as error:
            booted.close()
            quirk = booted.machine.quirk
            if not isinstance(error, GuestLost) or quirk is None or attempt == BOOT_ATTEMPTS:
                raise
            notes.append(f"booted again: {error}")
        else:
            return booted
    raise AssertionError("the last attempt returns or raises")


def restore(kernel: Kernel, config: BootConfig, folder: Path, snapshot: Snapshot) -> Booted:
    """Return a copy of a saved guest, which stands still until it is taken over.

    Raises GuestLost when QEMU cannot restore it.
    """
    booted = Booted(kernel, config, start(kernel, config, folder, snapshot=snapshot))
    booted.restored = True
    return booted


def start(
    kernel: Kernel,
    config: BootConfig,
    folder: Path,
    *,
    saveable: bool = False,
    snapshot: Snapshot | None = None,
) -> Machine:
    """Start the machine of a guest of ``kernel``; its files go to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    return Machine(
        config.emulator,
        machine_config(kernel, config, guest_image(kernel, config.cache, config.nics)),
        folder,
        load_signatures(shipped("configs/log-signatures.yaml")),
        saveable=saveable,
        snapshot=snapshot,
    )


@functools.cache
def guest_image(kernel: Kernel, cache: Path, nics: tuple[NicConfig, ...] = ()) -> Path:
    """Return the initramfs a guest of ``kernel`` with ``nics`` boots into."""
    manifest = load_manifest(shipped("images/guest.yaml"))
    if nics:
        manifest = manifest.joined(load_manifest(shipped("images/nic.yaml")))
        drivers = dict.fromkeys(NIC_MODELS[nic.model].module for nic in nics)
        manifest = manifest.joined(Manifest(modules=tuple(drivers)))
    return initramfs(manifest, shipped("."), kernel, cache)


def machine_config(
    kernel: Kernel, config: BootConfig, image: Path, extra: Sequence[str] = ()
) -> MachineConfig:
    """Return the machine ``kernel`` is booted on."""
    parameters = [*extra, *config.append]
    if config.model is not None:
        wanted = preempt.boot_parameter(kernel, config.model)
        parameters += [wanted] if wanted is not None else []
    return MachineConfig(
        board=BOARDS[kernel.architecture.name],
        accelerator=config.accelerator.name,
        cpus=config.cpus,
        memory_mib=config.memory_mib,
        kernel=vmlinux(kernel.image, config.cache) or kernel.image,
        initramfs=image,
        virtio_channel=_VIRTIO_CONSOLE.lacking(kernel) is None,
        boot_parameters=tuple(parameters),
        nics=config.nics,
    )

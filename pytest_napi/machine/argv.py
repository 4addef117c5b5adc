# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's command line as pure functions of frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_napi.machine.boards import Board
from pytest_napi.machine.nics import NicConfig, netdevs

AGENT_PORT = "napi.agent"
"""Name of the virtio-serial port the guest's agent looks for."""


@dataclass(frozen=True)
class MachineConfig:
    """One machine to boot: all that its QEMU command line depends on."""

    board: Board
    accelerator: str
    """``kvm`` or ``tcg``."""
    cpus: int
    memory_mib: int
    kernel: Path
    initramfs: Path
    virtio_channel: bool
    """The command channel is a virtio-serial port; else it is the second serial port."""
    boot_parameters: tuple[str, ...] = ()
    """Kernel parameters beside those every guest gets."""
    nics: tuple[NicConfig, ...] = ()


@dataclass(frozen=True)
class Memory:
    """The file behind a guest's memory."""

    path: Path
    shared: bool
    """True: the guest writes to the file, which can then be saved.  False: the file is a saved
    guest's memory, which copies of it share as long as they only read; each has its own writes."""


@dataclass(frozen=True)
class Descriptors:
    """The file descriptors QEMU inherits: its ends of connected socket pairs, and tap queues.

    Connected sockets instead of paths: there is nothing to listen on, nothing to remove afterwards,
    and no byte of the console is printed before its reader is there.
    """

    console: int
    channel: int
    qmp: int
    nics: tuple[tuple[int, ...], ...] = ()
    """Of each NIC's backend, in the order of the NICs."""


def kernel_command_line(config: MachineConfig) -> str:
    """Return the kernel command line of ``config``.

    ``panic=-1`` makes a panic reboot at once, which ``-no-reboot`` turns into the end of QEMU: a
    panicked guest is known to be lost within a tick.  The whole log goes to the console: printing
    it costs no measurable boot time, and a kernel that dies early has said why.  ``nokaslr`` gives
    every boot the same addresses: TCG finds translated code by a hash of them, and with random ones
    the rate of the same load differs more from boot to boot.
    """
    board = config.board
    channel = () if config.virtio_channel else (f"napi.channel={board.second_serial}",)
    return " ".join(
        (
            board.earlycon,
            f"console={board.console}",
            "loglevel=7",
            "nokaslr",
            "panic=-1",
            *channel,
            *config.boot_parameters,
        )
    )


def _machine(config: MachineConfig, backend: str = "") -> list[str]:
    accelerator = {"tcg": "tcg,thread=multi"}.get(config.accelerator, config.accelerator)
    return [
        *("-machine", config.board.machine + backend),
        *("-accel", accelerator),
        *("-cpu", config.board.cpu[config.accelerator]),
        *("-smp", str(config.cpus)),
        *("-m", f"{config.memory_mib}M"),
    ]


def _memory(config: MachineConfig, memory: Memory) -> list[str]:
    # QEMU's option syntax has the comma doubled within a value.
    path = str(memory.path).replace(",", ",,")
    share = "on" if memory.shared else "off"
    backend = f"memory-backend-file,id=ram,size={config.memory_mib}M,mem-path={path},share={share}"
    return ["-object", backend]


def _boot(config: MachineConfig) -> list[str]:
    return [
        *("-kernel", str(config.kernel)),
        *("-initrd", str(config.initramfs)),
        *("-append", kernel_command_line(config)),
    ]


def _chardev(name: str, descriptor: int) -> list[str]:
    return ["-chardev", f"socket,id={name},fd={descriptor}"]


def _console(descriptor: int) -> list[str]:
    return [*_chardev("console", descriptor), "-serial", "chardev:console"]


def _channel(config: MachineConfig, descriptor: int) -> list[str]:
    if config.virtio_channel:
        port = f"virtserialport,chardev=channel,name={AGENT_PORT}"
        devices = ["-device", "virtio-serial-pci", "-device", port]
    else:
        devices = ["-serial", "chardev:channel"]
    return [*_chardev("channel", descriptor), *devices]


def _nics(config: MachineConfig, descriptors: Descriptors) -> list[str]:
    pairs = enumerate(zip(config.nics, descriptors.nics, strict=True))
    return [argument for index, (nic, fds) in pairs for argument in netdevs(nic, index, fds)]


def _qmp(descriptor: int) -> list[str]:
    return [*_chardev("qmp", descriptor), "-mon", "chardev=qmp,mode=control"]


def qemu_argv(
    qemu: Path, config: MachineConfig, descriptors: Descriptors, memory: Memory | None = None
) -> list[str]:
    """Return the whole QEMU command line for ``config``, program first.

    Without ``memory`` it is QEMU's own; with a saved guest's QEMU waits to be told its state.  The
    console must come before the channel: QEMU numbers serial ports in the order they are named.
    """
    return [
        str(qemu),
        *("-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none"),
        *_machine(config, ",memory-backend=ram" if memory is not None else ""),
        *(_memory(config, memory) if memory is not None else ()),
        *(("-incoming", "defer") if memory is not None and not memory.shared else ()),
        *_boot(config),
        *_console(descriptors.console),
        *_channel(config, descriptors.channel),
        *_nics(config, descriptors),
        *_qmp(descriptors.qmp),
    ]

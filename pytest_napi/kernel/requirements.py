# SPDX-License-Identifier: GPL-2.0-only
"""What a guest, and each experiment in it, needs of the kernel's config, checked before boot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.kernel import Kernel


@dataclass(frozen=True)
class Requirement:
    """One thing a kernel must have: any of ``options`` built in, or as ``module``.

    ``module`` is the name of the module the option builds where it is "m"; None where it can only
    be built in.  ``needed_for`` ends the sentence "without it there is no …".
    """

    options: tuple[str, ...]
    needed_for: str
    module: str | None = None

    def lacking(self, kernel: Kernel) -> str | None:
        """Return what the kernel lacks, e.g. "CONFIG_VETH (veth pairs)", or None.

        Nothing is known against a kernel without a config.
        """
        if kernel.config is None:
            return None
        values = [kernel.config.value(option) for option in self.options]
        if "y" in values:
            return None
        names = " or ".join(f"CONFIG_{option}" for option in self.options)
        if "m" not in values:
            return f"{names} ({self.needed_for})"
        if self.module is None:
            return f"{names}=y, it is m ({self.needed_for})"
        if kernel.modules is not None and self.module in kernel.modules:
            return None
        return f"the module {self.module} of {names}=m ({self.needed_for})"


GUEST: tuple[Requirement, ...] = (
    Requirement(("BLK_DEV_INITRD",), "initramfs to boot into"),
    Requirement(("BINFMT_ELF",), "programs"),
    Requirement(("PRINTK",), "kernel log"),
    Requirement(("TTY",), "console"),
    Requirement(("SERIAL_8250_CONSOLE",), "console on the serial port"),
    Requirement(("PROC_FS",), "/proc"),
    Requirement(("SYSFS",), "/sys"),
    Requirement(("DEVTMPFS",), "/dev"),
    Requirement(("TMPFS",), "/tmp"),
    Requirement(("SIGNALFD",), "signals in the agent"),
    Requirement(("PCI",), "bus for virtio devices"),
    Requirement(("VIRTIO_PCI",), "virtio devices", module="virtio_pci"),
    Requirement(("NET",), "network"),
)
"""What no guest can do without.  virtio_console is not in it: a serial port can take its place."""

_DUMMY = Requirement(("DUMMY",), "device to delete", module="dummy")

EXPERIMENTS: Mapping[str, tuple[Requirement, ...]] = {
    "reentry_load": (
        Requirement(("SMP",), "CPU for the measurement beside that of the load"),
        Requirement(("VETH",), "veth pair", module="veth"),
        Requirement(("BPF_SYSCALL",), "XDP program"),
        Requirement(("BPF_EVENTS",), "count of the polls"),
        Requirement(("PACKET",), "packet socket for the first frames", module="af_packet"),
    ),
    "netdev_deletion": (_DUMMY,),
    "rcu_barrier": (Requirement(("TREE_RCU",), "grace periods to wait for"),),
}
"""What each experiment needs beyond GUEST, by the name of its fixture."""


def check(kernel: Kernel, requirements: Iterable[Requirement]) -> None:
    """Raise KernelUnusable that names all a kernel lacks at once, and what each is for."""
    missing = {lack: None for row in requirements if (lack := row.lacking(kernel)) is not None}
    if missing and kernel.config is not None:
        raise KernelUnusable(
            f"{kernel.label}: the kernel lacks {', '.join(missing)}; "
            f"build one with all of them (config: {kernel.config.source})"
        )

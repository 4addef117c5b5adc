# SPDX-License-Identifier: GPL-2.0-only
"""One running QEMU: the one place that spawns it, and the one that says how it was lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_napi.closing import Closing
from pytest_napi.errors import GuestLost, HostUnfit
from pytest_napi.machine import snapshot as snapshots
from pytest_napi.machine.argv import Descriptors, MachineConfig, Memory, qemu_argv
from pytest_napi.machine.control import ControlError
from pytest_napi.machine.emulator import Emulator
from pytest_napi.machine.interference import Interference, read_run_time
from pytest_napi.machine.kernel_log import KernelLog, Signature
from pytest_napi.machine.quirks import Quirk, blame
from pytest_napi.machine.snapshot import Snapshot
from pytest_napi.machine.tether import tethered
from pytest_napi.machine.wires import Drain, Wire
from pytest_napi.untrusted import printable

# A guest that panicked takes QEMU with it, and the console's last lines arrive, within this.
_DEATH_SECONDS = 2.0

IDLE_SECONDS_MAX = 3.0
"""A guest that is busy for longer after its boot is busy by itself."""

# An idle vCPU under TCG takes the timer ticks that are left: a few percent.
_IDLE_WINDOW = 0.05
_IDLE_SHARE = 0.2


class Machine(Closing):
    """A QEMU that runs one guest, from the moment it is made until ``close``.

    Must be made by a thread that outlives it (see ``tether``).  Its files (console.log, qemu.log)
    go to ``folder``.  A ``saveable`` one can be saved; one made from a ``snapshot`` is a copy of a
    saved one, stopped until ``resume``.  Raises HostUnfit when QEMU cannot be started at all, and
    GuestLost when it cannot restore the snapshot.
    """

    def __init__(
        self,
        emulator: Emulator,
        config: MachineConfig,
        folder: Path,
        signatures: Sequence[Signature],
        *,
        saveable: bool = False,
        snapshot: Snapshot | None = None,
    ) -> None:
        self.config = config
        self._emulator = emulator
        self.folder = folder
        self.started_ns = time.monotonic_ns()
        self._stderr = folder / "qemu.log"
        pairs = [socket.socketpair() for _ in range(3)]
        (console, channel, qmp), theirs = zip(*pairs, strict=True)
        self.wires = _open_wires(config, [console, channel, qmp, *theirs])
        descriptors = Descriptors(
            console=theirs[0].fileno(),
            channel=theirs[1].fileno(),
            qmp=theirs[2].fileno(),
            nics=tuple(wire.theirs for wire in self.wires),
        )
        self._memory: int | None = None
        memory = None
        if snapshot is not None:
            memory = Memory(snapshot.memory, shared=False)
        elif saveable:
            self._memory = os.memfd_create("guest-memory")
            os.ftruncate(self._memory, config.memory_mib << 20)
            memory = Memory(Path(f"/proc/self/fd/{self._memory}"), shared=True)
        self.argv = qemu_argv(emulator.path, config, descriptors, memory)
        inherited = [end.fileno() for end in theirs]
        inherited += [self._memory] if self._memory is not None else []
        inherited += [descriptor for wire in self.wires for descriptor in wire.theirs]
        try:
            with self._stderr.open("wb") as stderr:
                # A session of its own: a Ctrl-C at the terminal is pytest's to handle.
                self._process = subprocess.Popen(
                    tethered(self.argv),
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,
                    stderr=stderr,
                    pass_fds=inherited,
                    start_new_session=True,
                )
        except OSError as error:
            self._close_memory()
            for wire in self.wires:
                wire.close()
            raise HostUnfit(f"{emulator.path} cannot be started: {error}") from None
        finally:
            for end in theirs:
                end.close()
            for wire in self.wires:
                wire.handed_over()
        self._drain = Drain(self.wires)
        self.channel = channel
        # Only now, while the guest boots: loading these takes a tenth of a second.
        from pytest_napi.machine.console import Console  # noqa: PLC0415
        from pytest_napi.machine.qmp import Qmp  # noqa: PLC0415

        self.log = KernelLog(signatures)
        before = snapshot.console if snapshot is not None else None
        self.console = Console(console, folder / "console.log", self.log, before)
        self.qmp = Qmp(qmp)
        self._interference: Interference | None = None
        self._closed = False
        if snapshot is not None:
            self._load(snapshot)

    def _load(self, snapshot: Snapshot) -> None:
        try:
            snapshots.load(self.qmp, self._emulator, snapshot)
        except ControlError as error:
            lost = self.lost(str(error))
            self.close()
            raise lost from None

    def wait_idle(self) -> None:
        """Wait until no vCPU has much to do: what a boot leaves to be done later is done.

        Returns after IDLE_SECONDS_MAX in any case, and at once on a host that keeps no schedstat.
        """
        threads = self.qmp.vcpu_threads()
        deadline = time.monotonic() + IDLE_SECONDS_MAX
        with contextlib.suppress(OSError, IndexError, ValueError):
            before = [read_run_time(self.pid, thread) for thread in threads]
            while time.monotonic() < deadline:
                time.sleep(_IDLE_WINDOW)
                after = [read_run_time(self.pid, thread) for thread in threads]
                spent = max(now - then for then, now in zip(before, after, strict=True))
                if spent < _IDLE_SHARE * _IDLE_WINDOW * 1e9:
                    return
                before = after

    def save(self, snapshot: Snapshot) -> None:
        """Stop the guest and save it to ``snapshot``'s folder.

        Raises ControlError when QEMU cannot save one of its devices, OSError when there is no
        space.
        """
        assert self._memory is not None, "made to be saveable"
        snapshots.save(self.qmp, self._emulator, self._memory, self.console.path, snapshot)

    def resume(self) -> None:
        """Let a stopped guest run.  Raises GuestLost when QEMU is gone."""
        self._control("cont")

    def pause(self) -> None:
        """Let the guest stand still, its clocks too.  Raises GuestLost when QEMU is gone."""
        self._control("stop")

    def _control(self, command: str) -> None:
        try:
            self.qmp.execute(command)
        except ControlError as error:
            raise self.lost(str(error)) from None

    @property
    def pid(self) -> int:
        """QEMU's process id."""
        return self._process.pid

    def observe_host(self) -> None:
        """Begin to sample how long the host withholds the CPU from the vCPUs.

        Raises GuestLost when QEMU is gone.
        """
        try:
            threads = self.qmp.vcpu_threads()
        except ControlError as error:
            raise self.lost(str(error)) from None
        self._interference = Interference(self.pid, threads)

    def withheld_ns(self, start_ns: int, end_ns: int) -> int:
        """Return how long the host withheld the CPU between two times of its CLOCK_MONOTONIC.

        0 for times before ``observe_host``.
        """
        if self._interference is None:
            return 0
        return self._interference.withheld_ns(start_ns, end_ns)

    @property
    def quirk(self) -> Quirk | None:
        """The defect of this QEMU that the guest's log shows, if it shows one."""
        return blame(self._emulator, self.config.accelerator, self.log.lines())

    def lost(self, reason: str) -> GuestLost:
        """Return the error that says how this guest was lost.

        ``reason`` is what the caller saw (a closed channel, no answer); QEMU's end and the console
        tell more, and are asked first.
        """
        status = self._ended()
        self.console.join(_DEATH_SECONDS if status is not None else 0)
        panic = next((s for s in self.log.splats() if s.kind == "panic"), None)
        quirk = self.quirk
        if quirk is not None:
            saw = panic.line if panic is not None else reason
            message = f"guest lost: {saw} ({quirk})"
            return GuestLost(message, self.console.tail(40), emulator_defect=True)
        if panic is not None:
            return GuestLost(f"guest lost: {panic.line}", self.console.tail(40))
        if status is None:
            return GuestLost(f"guest lost: {reason}", self.console.tail())
        if status == 0:
            return GuestLost("guest lost: it powered off or reset itself", self.console.tail())
        said = printable(self._stderr.read_bytes()).strip().splitlines()
        how = f"status {status}" if status > 0 else signal.Signals(-status).name
        last = f": {said[-1]}" if said else ""
        return GuestLost(f"guest lost: QEMU died ({how}){last}", self.console.tail())

    def _ended(self) -> int | None:
        try:
            return self._process.wait(_DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """End QEMU, whatever state it is in, and everything that belongs to it."""
        if self._closed:
            return
        self._closed = True
        if self._interference is not None:
            self._interference.close()
        # The guest has no disk to flush: the fastest way down is the right one.
        self._process.kill()
        self._process.wait()
        self.channel.close()
        self.qmp.close()
        self.console.join(_DEATH_SECONDS)
        self._drain.close()
        for wire in self.wires:
            wire.close()
        self._close_memory()

    def _close_memory(self) -> None:
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None


def _open_wires(config: MachineConfig, opened: Sequence[socket.socket]) -> tuple[Wire, ...]:
    """Open the backends of the NICs; when one cannot be, close those and what was ``opened``."""
    with contextlib.ExitStack() as stack:
        for end in opened:
            stack.enter_context(end)
        wires = tuple(stack.enter_context(Wire(nic)) for nic in config.nics)
        stack.pop_all()
        return wires

# SPDX-License-Identifier: GPL-2.0-only
"""One pytest run's kernels, host and records, and one test's guest.

Knows nothing of pytest: the hooks and fixtures above tell it what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pytest_napi.bounds.judge import Outcome, Verdict, judge
from pytest_napi.bounds.model import Bounds, load_bounds
from pytest_napi.cache import cache_folder
from pytest_napi.errors import BoundsError, GuestLost, HostUnfit, KernelUnusable
from pytest_napi.guest.boot import BootConfig, Booted, boot, guest_image
from pytest_napi.guest.pool import Pool, Request
from pytest_napi.guest.templates import Templates
from pytest_napi.kernel import preempt, requirements
from pytest_napi.kernel.kernel import Kernel
from pytest_napi.kernel.requirements import Requirement
from pytest_napi.kernel.resolve import resolve
from pytest_napi.kernel.spec import parse_spec
from pytest_napi.machine.boards import BOARDS
from pytest_napi.machine.emulator import Accelerator, Emulator, choose_accelerator, find_emulator
from pytest_napi.machine.kernel_log import Splat
from pytest_napi.machine.nics import NIC_MODELS, NicConfig, parse_nic, unfit
from pytest_napi.machine.tether import find_setpriv
from pytest_napi.measure.operation import Operation
from pytest_napi.measure.series import Measurement, Series
from pytest_napi.net.guest_traffic import GuestTraffic
from pytest_napi.net.load import LoadRate, ReentryLoad
from pytest_napi.net.traffic import Traffic
from pytest_napi.options import BOOT, Settings
from pytest_napi.quiet import Quiet
from pytest_napi.report.record import (
    GuestRecord,
    Result,
    SplatRecord,
    TestRecord,
    check_writable,
)
from pytest_napi.shipped import shipped

OPERATIONS = ("netdev_deletion", "rcu_barrier")
"""The operations there are programs, fixtures and bounds for."""

IDLE_SECONDS = 4.0
"""Length of the idle baseline: about 60 deletions of 0.03 s with their gaps, under TCG."""

LOADED_SECONDS = 10.0
"""Default length of a loaded window: at least four of the longest deletions Debian kernels show."""

ATTEMPTS = 3
"""How often a figure is taken before the host's interference is reported instead."""

# What a kernel and its user space need beside the unpacked kernel and the initramfs, which is there
# twice while it is unpacked.
_SPARE_MIB = 64


@dataclass(frozen=True)
class Target:
    """One kernel with one preemption model, as tests are parametrized."""

    kernel: Kernel
    model: str | None
    """The model asked for; None: what the kernel boots with."""

    @property
    def id(self) -> str:
        """The part of a test's id that names the target.

        Without a model asked for it is the one the kernel's config says it boots with; ``default``
        where there is no config to tell.
        """
        return f"{self.kernel.label}-{self.model or preempt.predicted(self.kernel) or 'default'}"


def drivers(nics: Iterable[NicConfig]) -> list[Requirement]:
    """Return what a kernel needs to have ``nics``."""
    return [
        Requirement((model.option,), f"driver of {model.name}", module=model.module)
        for model in {NIC_MODELS[nic.model].name: NIC_MODELS[nic.model] for nic in nics}.values()
    ]


@dataclass
class Run:
    """What all tests of one pytest run share."""

    settings: Settings
    say: Callable[[str], None]
    """Prints one line for the user: downloads and the like."""
    workers: int = 1
    """Processes that run this run's tests at once."""
    kernels: tuple[Kernel, ...] = ()
    records: list[TestRecord] = field(default_factory=list)
    """The finished tests, in the order they finished."""
    open_records: list[TestRecord] = field(default_factory=list)
    """The tests that run now."""
    _closing: ExitStack = field(default_factory=ExitStack)

    def prepare(self) -> None:
        """Find everything that can be found wrong before a test runs.

        Raises KernelUnusable, HostUnfit, ImageError or BoundsError.
        """
        if self.settings.results is not None:
            check_writable(self.settings.results)
        if self.settings.artifacts is not None:
            try:
                self.settings.artifacts.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                folder = self.settings.artifacts
                raise HostUnfit(f"--napi-artifacts={folder}: {error.strerror}") from None
        self.cache: Path = cache_folder()
        self.templates = Templates(
            self.cache / "templates", self.settings.template_space_mib, self.say
        )
        self.quiet = Quiet(self.cache)
        self._closing.callback(self.quiet.release)
        self.pool = self._closing.enter_context(Pool(self.templates.warm_copy, self.workers))
        self.bounds_path = self.settings.bounds or shipped("configs/bounds.yaml")
        self.bounds: dict[str, Bounds] = load_bounds(self.bounds_path, OPERATIONS)
        self.kernels = tuple(
            resolve(parse_spec(text), self.cache, self.say) for text in self.settings.kernels
        )
        for kernel in self.kernels:
            if kernel.architecture.name not in BOARDS:
                raise KernelUnusable(
                    f"{kernel.label} is a kernel for {kernel.architecture.name}: guests can be "
                    f"{', '.join(BOARDS)} only"
                )
        board = BOARDS[self.kernels[0].architecture.name]
        self.emulator: Emulator = find_emulator(board)
        find_setpriv()
        self.accelerator: Accelerator = choose_accelerator(
            self.settings.accel, self.emulator, board
        )
        labels = [kernel.label for kernel in self.kernels]
        for kernel in self.kernels:
            if labels.count(kernel.label) > 1:
                raise KernelUnusable(
                    f"two kernels are labelled {kernel.label}: tell them apart with LABEL=SPEC"
                )
            requirements.check(kernel, [*requirements.GUEST, *drivers(self.nics(self.settings))])
            self.check_memory(kernel, self.settings.memory_mib)

    def nics(self, settings: Settings) -> tuple[NicConfig, ...]:
        """Return the NICs of a test's guest.

        Raises HostUnfit when there are none of that kind, or when this QEMU, or a guest of this
        many CPUs, cannot have them.
        """
        nics = []
        for text in settings.nics:
            try:
                nics.append(parse_nic(text))
            except ValueError as error:
                raise HostUnfit(f"--napi-nic={text}: {error}") from None
            why = unfit(nics[-1], self.emulator.version, settings.cpus)
            if why is not None:
                raise HostUnfit(f"--napi-nic: {why}")
        return tuple(nics)

    def check_memory(self, kernel: Kernel, memory_mib: int) -> None:
        """Raise KernelUnusable when ``kernel`` cannot boot in ``memory_mib`` MiB."""
        image = guest_image(kernel, self.cache, self.nics(self.settings)).stat().st_size
        least = (kernel.init_size + 2 * image) // 2**20 + _SPARE_MIB
        if memory_mib < least:
            raise KernelUnusable(
                f"{memory_mib} MiB of memory are too few for {kernel.label} (--napi-memory): "
                f"it needs at least {least}M"
            )

    def targets(self, models: Sequence[str]) -> list[Target]:
        """Return every kernel with every model of ``models`` (none: its own)."""
        return [Target(kernel, model) for kernel in self.kernels for model in models or (None,)]

    def header(self) -> list[str]:
        """Return the lines for pytest's header."""
        return [
            f"napi: {self.emulator}, accelerator {self.accelerator.name} "
            f"({self.accelerator.reason}), {self.settings.cpus} CPUs, "
            f"{self.settings.memory_mib} MiB",
            *(
                f"napi: kernel {kernel.label}: {kernel.release} from {kernel.source}"
                for kernel in self.kernels
            ),
        ]

    def boot(self, target: Target, settings: Settings, folder: Path) -> Booted:
        """Boot a guest; the machine's files go to ``folder``."""
        self.check_memory(target.kernel, settings.memory_mib)
        config = self._boot_config(target, settings)
        if settings.fresh == BOOT:
            return boot(target.kernel, config, folder)
        request = Request(target.kernel, config, folder)
        return self.templates.guest(target.kernel, config, folder, self.pool.take(request))

    def hold_host(self, alone: bool, waiting: Callable[[], None]) -> None:
        """Hold the host for a test: alone when it takes figures, else together with others.

        A hold of the test before is kept where it will do; ``waiting`` is called before a wait.
        """
        if not alone and self.quiet.sharing and not self.quiet.wanted:
            return
        self.pool.settle()  # nothing of ours disturbs whoever gets the host
        (self.quiet.measure if alone else self.quiet.share)(waiting)

    def leave_host(self) -> None:
        """Give the host up to others."""
        self.pool.settle()
        self.quiet.release()

    def prepare_next(self, wanted: Iterable[tuple[Target, Settings, Path]]) -> None:
        """Begin to restore the guests that ``boot`` will be asked for next."""
        requests = [
            Request(target.kernel, self._boot_config(target, settings), folder)
            for target, settings, folder in wanted
            if settings.fresh != BOOT
        ]
        self.pool.prepare(requests)

    def close(self) -> None:
        """End what is left of the run: to be called when no guest runs."""
        self._closing.close()

    def _boot_config(self, target: Target, settings: Settings) -> BootConfig:
        return BootConfig(
            emulator=self.emulator,
            accelerator=self.accelerator,
            cache=self.cache,
            model=target.model,
            cpus=settings.cpus,
            memory_mib=settings.memory_mib,
            timeout=settings.boot_timeout,
            nics=self.nics(settings),
            append=settings.append,
        )

    def bounds_of(self, operation: str) -> Bounds:
        """Return the bounds of ``operation``.  Raises BoundsError when the file has none."""
        if operation not in self.bounds:
            raise BoundsError(f"{self.bounds_path}: no bounds for {operation}: add them")
        return self.bounds[operation]


class GuestTest:
    """One test: its guest, loads, measurements, and its part of the kernel log."""

    def __init__(self, run: Run, nodeid: str) -> None:
        self.run = run
        self.record = TestRecord(nodeid)
        self.booted: Booted | None = None
        self.loads: list[ReentryLoad | Traffic | GuestTraffic] = []
        self._log_mark = 0
        run.open_records.append(self.record)

    def boot(self, target: Target, settings: Settings, folder: Path) -> Booted:
        """Boot the test's guest and read back what it is."""
        run = self.run
        self.booted = booted = run.boot(target, settings, folder)
        self.record.notes += booted.notes
        running = booted.preemption
        self.record.guest = GuestRecord(
            kernel=target.kernel.label,
            release=booted.hello.release,
            banner=booted.hello.version,
            source=target.kernel.source,
            preemption_asked=target.model,
            preemption=running.model,
            preemption_evidence=running.evidence,
            accelerator=run.accelerator.name,
            qemu=str(run.emulator),
            cpus=settings.cpus,
            memory_mib=settings.memory_mib,
            restored=booted.restored,
            nics=tuple(map(str, booted.config.nics)),
        )
        return booted

    def measure(
        self,
        operation: str,
        program: Operation,
        idle: Series,
        *,
        cpu: int,
        seconds: float,
        progress: Callable[[str], None],
    ) -> Measurement:
        """Measure ``operation`` with its armed ``program`` under the loads that run now.

        A figure that the host's interference put over its bound is taken again, as long as the load
        lives; the last one is returned.
        """
        result = Result(Measurement(operation, cpu, "", 0, 0, idle, Series()), complete=False)
        self.record.results.append(result)

        def watch(series: Series, in_progress_ns: int) -> None:
            result.measurement = Measurement(operation, cpu, "", 0, 0, idle, series)
            worst = max(series.max_ns, in_progress_ns) / 1e9
            progress(f"{operation}: {series.n} samples, longest {worst:.2f} s")

        while True:
            window = program.window(cpu, seconds, watch)
            result.measurement = Measurement(
                operation=operation,
                cpu=cpu,
                method=window.method,
                start_ns=window.start_ns,
                end_ns=window.end_ns,
                idle=idle,
                loaded=window.series,
                phases_absent=window.phases_absent,
            )
            left = min((load.remaining_seconds for load in self.loads), default=seconds)
            again = result.attempts < ATTEMPTS and left >= seconds
            if not (again and self._disturbed(result.measurement)):
                result.complete = True
                return result.measurement
            result.attempts += 1

    def _disturbed(self, measurement: Measurement) -> bool:
        bounds = self.run.bounds_of(measurement.operation)
        return judge(measurement, bounds, None, load_wanted=False).outcome is Outcome.INCONCLUSIVE

    def check(self, measurement: Measurement, control: LoadRate | None) -> Verdict:
        """Check ``measurement`` against its bounds and keep the verdict."""
        result = next(r for r in self.record.results if r.measurement is measurement)
        if control is not None:
            result.load = control.window(measurement.start_ns, measurement.end_ns)
        verdict = judge(
            measurement,
            self.run.bounds_of(measurement.operation),
            result.load,
            load_wanted=control is not None,
        )
        result.outcome, result.message = str(verdict.outcome), verdict.message
        result.checks = list(verdict.checks)
        return verdict

    def new_splats(self) -> list[SplatRecord]:
        """Return the splats logged since the last call, after all of the log has arrived.

        Raises GuestLost when it was a defect of this QEMU that broke the guest, not its kernel.
        """
        if self.booted is None:
            return []
        log = self.booted.machine.log
        self.booted.settle_log(f"end of {self.record.nodeid}")
        found: list[Splat] = log.splats(since=self._log_mark)
        self._log_mark = log.mark()
        quirk = self.booted.machine.quirk
        if found and quirk is not None:
            message = f"guest lost: {found[0].line} ({quirk})"
            raise GuestLost(message, log.excerpt(found[0]), emulator_defect=True)
        new = [SplatRecord(splat.kind, splat.line, log.excerpt(splat)) for splat in found]
        self.record.splats += new
        return new

    def finish(self, outcome: str, reason: str) -> None:
        """Close the record."""
        self.record.outcome, self.record.reason = outcome, reason
        self.run.open_records.remove(self.record)

    def close(self) -> None:
        """End the guest."""
        if self.booted is not None:
            self.booted.close()

# SPDX-License-Identifier: GPL-2.0-only
"""The public fixtures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from pytest_napi.errors import KernelUnusable
from pytest_napi.experiments import CheckedBounds, Measure, StartLoad, StartTraffic
from pytest_napi.guest.boot import Booted
from pytest_napi.guest.guest import Guest
from pytest_napi.kernel import preempt, requirements
from pytest_napi.machine.nics import NicConfig
from pytest_napi.measure.operation import Operation, OperationUnsupportedError
from pytest_napi.measure.series import Measurement
from pytest_napi.net import load as net_load
from pytest_napi.net.load import LoadUnsupportedError, ReentryLoad
from pytest_napi.net.nic import Nic
from pytest_napi.options import Settings, marked
from pytest_napi.repeat import FOLDER, NOTES, TEST
from pytest_napi.report.progress import Progress
from pytest_napi.report.record import LOGGED
from pytest_napi.run import IDLE_SECONDS, LOADED_SECONDS, GuestTest, Run, Target, drivers

RUN = pytest.StashKey[Run]()
"""In ``config.stash``: the run."""
NEXT = pytest.StashKey[pytest.Item | None]()
"""In ``item.stash``: the test that runs after it."""
PROGRESS = pytest.StashKey[Progress]()
"""In ``config.stash``: the terminal's progress line."""


DEFAULT_NIC = "virtio-net"
"""What a test that asks for a NIC gets where nobody says which: every QEMU and kernel has it."""

MEASURING = ("netdev_deletion", "rcu_barrier", "reentry_load", "traffic")
"""The fixtures whose tests take figures, and need the host for themselves."""

WAITING = "waiting for a quiet host"


@pytest.fixture
def napi_target(request: pytest.FixtureRequest) -> Target:
    """The kernel and preemption model of this test: tests are parametrized over all of them."""
    target = request.param
    assert isinstance(target, Target)
    return target


@pytest.fixture
def napi_test(
    request: pytest.FixtureRequest,
    napi_target: Target,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[GuestTest]:
    """One test's guest, booted, and its records: what the other fixtures are made of."""
    run = request.config.stash[RUN]
    settings = test_settings(run.settings, request.node)
    _skip_what_cannot_be(napi_target, request.fixturenames, run.nics(settings))
    test = GuestTest(run, request.node.nodeid)
    test.record.notes += request.node.stash.get(NOTES, [])
    request.node.stash[TEST] = test
    progress = request.config.stash[PROGRESS]
    measuring = any(name in MEASURING for name in request.fixturenames)
    run.hold_host(measuring, partial(progress.show, WAITING))
    try:
        progress.show(f"getting a guest of {napi_target.id}")
        folder = _folder(request.node, settings, tmp_path_factory)
        booted = test.boot(napi_target, settings, folder)
        progress.clear()
        _skip_unless_running(booted, napi_target.model)
        if not measuring:
            _prepare_next(run, request.node, tmp_path_factory)
        yield test
        splats = test.new_splats()
    finally:
        test.close()
        # One that shares the host keeps it for the next that does, whose guest is being prepared.
        if measuring or target_of(request.node.stash.get(NEXT, None)) is None:
            run.leave_host()
    if splats:  # not seen by the test's own check: logged since its end, or it never began
        pytest.fail(f"{LOGGED}{splats[0].line}\n{splats[0].excerpt}", pytrace=False)


def _prepare_next(run: Run, item: pytest.Item, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Begin to restore the guests of the tests that run after ``item``."""
    wanted = []
    for following in islice(_following(item), run.pool.depth):
        target = target_of(following)
        if target is not None:
            settings = test_settings(run.settings, following)
            wanted.append((target, settings, _folder(following, settings, tmp_path_factory)))
    run.prepare_next(wanted)


def _following(item: pytest.Item) -> Iterable[pytest.Item]:
    """Return the tests that run after ``item``, as far as that is known."""
    if hasattr(item.config, "workerinput"):  # pytest-xdist tells a worker one at a time
        following = item.stash.get(NEXT, None)
        return [following] if following is not None else []
    items = item.session.items
    return islice(items, items.index(item) + 1, None)


def target_of(item: pytest.Item | None) -> Target | None:
    """Return the kernel and model a test is parametrized with; None for one without a guest."""
    callspec = getattr(item, "callspec", None)
    target = callspec.params.get("napi_target") if callspec is not None else None
    return target if isinstance(target, Target) else None


def test_settings(base: Settings, node: pytest.Item) -> Settings:
    """Return the settings of one test: those of the run with the test's marker on top.

    Raises ValueError for a marker that is wrong.
    """
    marker = node.get_closest_marker("napi")
    settings = marked(base, marker.kwargs) if marker is not None else base
    if not settings.nics and {"nic", "nics", "traffic"} & set(getattr(node, "fixturenames", ())):
        return replace(settings, nics=(DEFAULT_NIC,))
    return settings


test_settings.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it


def _folder(
    item: pytest.Item, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the folder for the files of a test's machine; the same whenever it is asked for."""
    known = item.stash.get(FOLDER, None)
    if known is not None:
        return known
    name = re.sub(r"[^\w.+-]+", "_", item.nodeid).strip("_")
    if settings.artifacts is None:
        folder = tmp_path_factory.mktemp(name[-60:])
    else:
        folder = settings.artifacts / name
        folder.mkdir(parents=True, exist_ok=True)
    item.stash[FOLDER] = folder
    return folder


def _skip_what_cannot_be(
    target: Target, fixtures: Sequence[str], nics: Sequence[NicConfig]
) -> None:
    """Skip, before the boot, what is known not to work on this kernel."""
    refused = target.model and preempt.unavailable(target.kernel, target.model)
    if refused:
        pytest.skip(f"preempt={target.model}: {refused}")
    needed = [row for name in fixtures for row in requirements.EXPERIMENTS.get(name, ())]
    try:
        requirements.check(target.kernel, [*needed, *drivers(nics)])
    except KernelUnusable as error:
        pytest.skip(str(error))


def _skip_unless_running(booted: Booted, wanted: str | None) -> None:
    running = booted.preemption
    if wanted is None or running.model == wanted:
        return
    if running.model is None:
        pytest.skip(f"preempt={wanted} cannot be verified: {running.evidence}")
    said = f"; the kernel says: {running.refusal}" if running.refusal else ""
    pytest.skip(f"preempt={wanted} was asked for, {running.model} runs{said}")


@pytest.fixture
def guest(napi_test: GuestTest) -> Guest:
    """A booted guest with the kernel under test: runs commands, reads and writes files."""
    assert napi_test.booted is not None
    return napi_test.booted.guest


@pytest.fixture
def nics(napi_test: GuestTest) -> tuple[Nic, ...]:
    """The NICs of the guest, up and with addresses, in the order they were asked for."""
    assert napi_test.booted is not None
    return tuple(Nic(napi_test.booted, index) for index in range(len(napi_test.booted.config.nics)))


@pytest.fixture
def nic(nics: tuple[Nic, ...]) -> Nic:
    """The guest's first NIC: of ``--napi-nic``, or else a virtio-net over a stream socket."""
    return nics[0]


@pytest.fixture
def reentry_load(napi_test: GuestTest) -> StartLoad:
    """The load that keeps a NAPI kthread on its CPU: ``with reentry_load(cpu=0) as load: …``."""

    @contextmanager
    def start(
        cpu: int = 0,
        frames: int = net_load.FRAMES,
        seconds: float = net_load.LIFE_SECONDS,
        rate: int = net_load.RATE,
    ) -> Iterator[ReentryLoad]:
        assert napi_test.booted is not None
        try:
            with ReentryLoad(napi_test.booted, cpu, frames, seconds, rate) as load:
                napi_test.loads.append(load)
                try:
                    yield load
                finally:
                    napi_test.loads.remove(load)
        except LoadUnsupportedError as error:
            pytest.skip(str(error))

    return start


@pytest.fixture
def traffic(
    napi_test: GuestTest, nics: tuple[Nic, ...], request: pytest.FixtureRequest
) -> StartTraffic:
    """Traffic from outside into a NIC: ``with traffic(Paced(20_000)) as load: …``."""
    return StartTraffic(napi_test, nics, request.config.stash[PROGRESS])


@pytest.fixture
def netdev_deletion(napi_test: GuestTest, request: pytest.FixtureRequest) -> Iterator[Measure]:
    """Measures the deletion of a network device.

    The idle baseline is taken when the fixture is set up, before the test can start a load.
    """
    yield from _operation("netdev_deletion", napi_test, request.config)


@pytest.fixture
def rcu_barrier(napi_test: GuestTest, request: pytest.FixtureRequest) -> Iterator[Measure]:
    """Measures ``rcu_barrier()``, with an idle baseline like ``netdev_deletion``'s."""
    yield from _operation("rcu_barrier", napi_test, request.config)


def _operation(operation: str, test: GuestTest, config: pytest.Config) -> Iterator[Measure]:
    booted = test.booted
    assert booted is not None
    last_cpu = booted.config.cpus - 1
    progress = config.stash[PROGRESS]
    test.run.hold_host(True, partial(progress.show, WAITING))  # it may be asked for this late
    try:
        program = Operation(booted, operation)
    except OperationUnsupportedError as error:
        pytest.skip(str(error))
    with program:
        progress.show(f"{operation}: idle baseline, {IDLE_SECONDS:.0f} s")
        idle = program.window(last_cpu, IDLE_SECONDS).series
        progress.clear()

        def measure(cpu: int | None = None, seconds: float = LOADED_SECONDS) -> Measurement:
            on = last_cpu if cpu is None else cpu
            try:
                return test.measure(
                    operation, program, idle, cpu=on, seconds=seconds, progress=progress.show
                )
            finally:
                progress.clear()

        yield measure


@pytest.fixture
def bounds(napi_test: GuestTest) -> CheckedBounds:
    """Checks measurements against their bounds: ``bounds.check(deletion, control=load.rate)``."""
    return CheckedBounds(napi_test)


__all__ = [
    "bounds",
    "guest",
    "napi_target",
    "napi_test",
    "netdev_deletion",
    "nic",
    "nics",
    "rcu_barrier",
    "reentry_load",
    "traffic",
]

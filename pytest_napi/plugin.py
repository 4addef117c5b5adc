# SPDX-License-Identifier: GPL-2.0-only
"""The pytest hooks: each calls one room below."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

from pytest_napi import options
from pytest_napi.errors import (
    BoundsError,
    GuestLost,
    HostUnfit,
    ImageError,
    KernelUnusable,
    NapiError,
)
from pytest_napi.experiments import Inconclusive
from pytest_napi.fixtures import *  # noqa: F403 - pytest looks for fixtures here
from pytest_napi.fixtures import (
    NEXT,
    PROGRESS,
    RUN,
    target_of,
    test_settings,
)
from pytest_napi.gather import UNFIT, Gatherer
from pytest_napi.guest.ethtool import NicError
from pytest_napi.repeat import LOST_TO_EMULATOR, TEST, Repeater
from pytest_napi.report import expect
from pytest_napi.report.progress import Progress
from pytest_napi.report.record import EITHER, LOGGED, SplatRecord, TestRecord, to_plain
from pytest_napi.run import Run

# Their message says all there is to say; a traceback would hide it.
_WITHOUT_TRACEBACK = (BoundsError, GuestLost, HostUnfit, ImageError, KernelUnusable, NicError)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini values."""
    options.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings."""
    config.addinivalue_line("markers", options.MARKER)
    try:
        settings = options.settings(config)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    workers = getattr(config, "workerinput", {}).get("workercount", 1)  # of pytest-xdist
    run = Run(settings, say=lambda line: _say(config, line), workers=workers)
    config.stash[RUN] = run
    config.pluginmanager.register(Gatherer(run), "napi-gatherer")
    if not config.pluginmanager.hasplugin("rerunfailures"):  # which repeats these tests itself
        config.pluginmanager.register(Repeater(), "napi-repeater")
    config.stash[PROGRESS] = Progress(None)


def _say(config: pytest.Config, line: str) -> None:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"napi: {line}")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the kernels and check the host, before anything is collected."""
    run = session.config.stash[RUN]
    session.config.stash[PROGRESS] = Progress(_live_writer(session.config))
    if run.settings.kernels:
        try:
            run.prepare()
        except NapiError as error:
            _refuse(session.config, _with_detail(error))
            run.kernels = ()
            return
    try:
        expect.check_labels(dict(run.settings.expect), [kernel.label for kernel in run.kernels])
    except ValueError as error:
        raise pytest.UsageError(f"--napi-expect: {error}") from None


def _refuse(config: pytest.Config, why: str) -> None:
    """End the run with one line.

    A worker of pytest-xdist has to get as far as its collection to be heard: the gatherer of the
    controller then ends the run.
    """
    if not hasattr(config, "workeroutput"):
        raise pytest.UsageError(why) from None
    config.workeroutput[UNFIT] = why


def pytest_collection(session: pytest.Session) -> None:
    """End a worker that cannot run guests."""
    why = getattr(session.config, "workeroutput", {}).get(UNFIT)
    if why:
        raise pytest.UsageError(why)


def _live_writer(config: pytest.Config) -> Any:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if reporter is None or not reporter.isatty:
        return None

    def write(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write(text, flush=True)

    return write


def _with_detail(error: NapiError) -> str:
    return f"{error}\n{error.detail}" if error.detail else str(error)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the guest that was prepared for a test that did not run."""
    run = config.stash.get(RUN, None)
    if run is not None:
        run.close()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name QEMU, the accelerator and the kernels."""
    run = config.stash[RUN]
    return run.header() if run.kernels else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that wants a guest on each kernel and preemption model."""
    if "napi_target" not in metafunc.fixturenames:
        return
    run = metafunc.config.stash[RUN]
    try:
        settings = test_settings(run.settings, metafunc.definition)
    except ValueError:
        return  # refused when the collection is complete: here it would be shown as a traceback
    targets = run.targets(settings.preempt)
    # The scope groups the tests by kernel; each still boots a guest of its own.
    metafunc.parametrize(
        "napi_target", targets, indirect=True, ids=[t.id for t in targets], scope="session"
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let ``--dist loadgroup`` of pytest-xdist give the tests of one saved guest to one worker."""
    target = target_of(item)
    known = item.config.pluginmanager.hasplugin("xdist")  # else --strict-markers refuses the marker
    if target is None or not known or item.get_closest_marker("xdist_group") is not None:
        return
    with suppress(ValueError):  # a wrong marker is refused when the collection is complete
        settings = test_settings(item.config.stash[RUN].settings, item)
        name = "-".join(
            map(
                str,
                (target.id, settings.cpus, settings.memory_mib, *settings.nics, *settings.append),
            )
        )
        item.add_marker(pytest.mark.xdist_group(name))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to go on with a wrong marker, or without a kernel when a test wants one."""
    run = config.stash[RUN]
    wanting = [item for item in items if "napi_target" in getattr(item, "fixturenames", ())]
    for item in wanting:
        try:
            settings = test_settings(run.settings, item)
            if run.kernels:
                run.nics(settings)
        except (ValueError, HostUnfit) as error:
            raise pytest.UsageError(f"{item.nodeid}: {error}") from None
    if wanting and not run.kernels:
        raise pytest.UsageError(
            f"no --kernel, but {wanting[0].nodeid.partition('[')[0]} boots one: "
            "give --kernel=bzImage, --kernel=FILE.deb or --kernel=debian:6.12"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Let a test know which one comes next: its guest can be prepared."""
    item.stash[NEXT] = nextitem
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test during which the kernel logged a splat, whatever the test itself found."""
    try:
        returned = yield
    except pytest.skip.Exception:  # an inconclusive figure is one
        _fail_on_splats(item)
        raise
    except (Exception, pytest.fail.Exception):
        _show_splats(item, _new_splats(item))
        raise
    _fail_on_splats(item)
    return returned


def _new_splats(item: pytest.Item) -> list[SplatRecord]:
    test = item.stash.get(TEST, None)
    return test.new_splats() if test is not None else []


def _show_splats(item: pytest.Item, splats: list[SplatRecord]) -> None:
    for splat in splats:
        item.add_report_section("call", f"kernel log: {splat.kind}", splat.excerpt)


def _fail_on_splats(item: pytest.Item) -> None:
    splats = _new_splats(item)
    _show_splats(item, splats)
    if splats:
        kinds = ", ".join(dict.fromkeys(splat.kind for splat in splats))
        pytest.fail(f"{LOGGED}{kinds}\n{splats[0].line}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell lost guests, inconclusive figures and expected faults from failures; attach records."""
    report = yield
    test = item.stash.get(TEST, None)
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, _WITHOUT_TRACEBACK):
        report.longrepr = _with_detail(error)
    if isinstance(error, GuestLost) and error.emulator_defect:
        item.stash[LOST_TO_EMULATOR] = str(error)
    record = test.record if test is not None else TestRecord(item.nodeid)
    _note_target(item, record)
    if test is not None or (record.kernel and not report.passed):
        _note_outcome(record, report, error)
    if test is None:
        if record.outcome:  # no guest was booted
            report.napi_unbooted = to_plain(record)  # type: ignore[attr-defined]
        return report
    _hold_against_expectation(record, report, str(error))
    if call.when == "teardown":
        test.finish(record.outcome, record.reason)
        report.napi_record = to_plain(record)  # type: ignore[attr-defined]
    return report


def _note_target(item: pytest.Item, record: TestRecord) -> None:
    target = target_of(item)
    if target is not None:
        record.kernel = target.kernel.label
        record.model = target.id.removeprefix(f"{record.kernel}-")
        expected = dict(item.config.stash[RUN].settings.expect)
        record.expected = expect.expected_of(record, expected)


def _note_outcome(
    record: TestRecord, report: pytest.TestReport, error: BaseException | None
) -> None:
    outcome: str = report.outcome
    if isinstance(error, GuestLost):
        outcome = "lost"
    elif isinstance(error, Inconclusive):
        outcome = "inconclusive"
    report.napi_outcome = outcome  # type: ignore[attr-defined]
    # What a test fails of at its end is no reason beside the one it had before.
    settled = report.when == "teardown" and (record.outcome == "failed" or record.unexpected_pass)
    if report.when == "call" or outcome == "lost" or (outcome != "passed" and not settled):
        record.outcome = outcome
        record.reason = str(error) if error is not None else ""


def _hold_against_expectation(record: TestRecord, report: pytest.TestReport, error: str) -> None:
    """Report an expected fault as pytest does one of ``@pytest.mark.xfail(strict=True)``."""
    if report.when == "call" and record.unexpected_pass:
        report.outcome, report.longrepr = "failed", expect.no_reproduction(record.label)
    elif report.failed and record.expected in (options.FAIL, EITHER) and record.shows_fault:
        if error == record.reason:
            report.outcome = "skipped"
            report.wasxfail = expect.excuse(record)
        elif report.when == "teardown" and error.startswith(LOGGED):
            report.outcome, report.longrepr = "passed", None  # the fault has been reported


def pytest_report_teststatus(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Count a lost guest as an error, and an inconclusive figure as what it is."""
    outcome = getattr(report, "napi_outcome", "")
    if outcome == "lost":
        return "error", "E", ("LOST", {"red": True})
    if outcome == "inconclusive":
        return "inconclusive", "I", ("INCONCLUSIVE", {"yellow": True})
    return None

# SPDX-License-Identifier: GPL-2.0-only
"""The table of the terminal summary, and the alignment of every table."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from pytest_napi.measure.series import Series
from pytest_napi.report.record import Result, TestRecord

_SECOND_NS = 1_000_000_000

_HEADER = (
    ("kernel", "model", "load", "idle", "", "", "", "loaded", "", "", "", "over", "RCU", "max"),
    ("", "", "1/s", "n", "mean", "p99", "max", "n", "mean", "p99", "max", "1 s", "stalls", "bound"),
)
_WORDS = (0, 1, len(_HEADER[0]))
"""The columns that are words: kernel, model and verdict; the rest are figures."""


def _time(ns: float) -> str:
    return f"{ns / 1e9:.1f}" if ns >= 1e10 else f"{ns / 1e9:.3f}"


def _figures(series: Series) -> tuple[str, ...]:
    times = (series.mean_ns, series.p99_ns, series.max_ns)
    return (str(series.n), *(_time(ns) if series.n else "-" for ns in times))


def _row(record: TestRecord, result: Result) -> tuple[str, ...]:
    guest = record.guest
    loaded = result.measurement.loaded
    bound = next((check.bound_ns for check in result.checks if check.statistic == "max"), None)
    return (
        guest.kernel if guest is not None else "-",
        (guest.preemption or "?") if guest is not None else "-",
        f"{result.load.rate:.0f}" if result.load is not None else "-",
        *_figures(result.measurement.idle),
        *_figures(loaded),
        str(loaded.over(_SECOND_NS)),
        str(record.stalls),
        _time(bound) if bound is not None else "-",
        record.verdict if result.complete else record.outcome or "cut short",
    )


def aligned(rows: Sequence[Sequence[str]], words: Container[int]) -> Iterable[str]:
    """Return a line a row; the columns ``words`` (from 0) are aligned left, the others right.

    The rows are of one length.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if i in words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def tables(records: Sequence[TestRecord]) -> list[str]:
    """Return the lines of one table per operation; times in seconds, no lines without results."""
    lines: list[str] = []
    operations = dict.fromkeys(r.measurement.operation for t in records for r in t.results)
    for operation in operations:
        rows = [
            _row(record, result)
            for record in records
            for result in record.results
            if result.measurement.operation == operation
        ]
        top, bottom = _HEADER
        table = aligned([(*top, ""), (*bottom, "verdict"), *rows], _WORDS)
        lines += [f"{operation}, seconds", *table, ""]
    return lines[:-1]


def reasons(records: Sequence[TestRecord]) -> list[str]:
    """Return why tests neither passed nor failed, and what else was out of the ordinary."""
    lines = []
    for record in records:
        if record.outcome in ("inconclusive", "lost") and record.reason:
            lines.append(f"{record.nodeid}: {record.outcome}: {record.reason.splitlines()[0]}")
        lines += [f"{record.nodeid}: {note}" for note in record.notes]
    return lines

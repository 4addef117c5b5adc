# SPDX-License-Identifier: GPL-2.0-only
"""The table of the terminal summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_napi.measure.series import Series
from pytest_napi.report.record import Result, TestRecord

_SECOND_NS = 1_000_000_000

_HEADER = (
    ("kernel", "model", "load", "idle", "", "", "", "loaded", "", "", "", "over", "RCU", "max"),
    ("", "", "1/s", "n", "mean", "p99", "max", "n", "mean", "p99", "max", "1 s", "stalls", "bound"),
)
_LEFT = 2
"""Columns from the left that are aligned left; the rest are figures."""


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
        f"{result.load.reentries_per_second:.0f}" if result.load is not None else "-",
        *_figures(result.measurement.idle),
        *_figures(loaded),
        str(loaded.over(_SECOND_NS)),
        str(record.stalls),
        _time(bound) if bound is not None else "-",
        record.verdict if result.complete else record.outcome or "cut short",
    )


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    columns = range(max(map(len, rows)))
    widths = [max(len(row[i]) if i < len(row) else 0 for row in rows) for i in columns]
    last = len(widths) - 1
    for row in rows:
        cells = [
            cell.ljust(widths[i]) if i < _LEFT or i == last else cell.rjust(widths[i])
            for i, cell in enumerate(row)
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
        lines += [f"{operation}, seconds", *_aligned([(*top, ""), (*bottom, "verdict"), *rows]), ""]
    return lines[:-1]


def reasons(records: Sequence[TestRecord]) -> list[str]:
    """Return why tests neither passed nor failed, and what else was out of the ordinary."""
    lines = []
    for record in records:
        if record.outcome in ("inconclusive", "lost") and record.reason:
            lines.append(f"{record.nodeid}: {record.outcome}: {record.reason.splitlines()[0]}")
        lines += [f"{record.nodeid}: {note}" for note in record.notes]
    return lines

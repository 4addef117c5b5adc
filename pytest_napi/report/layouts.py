# SPDX-License-Identifier: GPL-2.0-only
"""A comparison as a table: for the terminal, for a commit message, for a web page.

The rows are those of the table in the seed (threaded NAPI poll loop).  Labels, releases and node
ids may come from a file or a guest, and are made safe here.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pytest_napi.measure.series import Series
from pytest_napi.report.compare import Comparison, Measured, listed, percent
from pytest_napi.report.table import aligned
from pytest_napi.untrusted import printable

MAIL_WIDTH = 72
"""Columns of a commit message (Documentation/process/submitting-patches.rst asks for 75)."""

_INDENT = "  "
_LABEL_WIDTH = 26
"""Columns of a label in a mail, so that two fit beside the names of the rows."""
_SECOND_NS = 1_000_000_000
# What would be markup in GitHub's Markdown; an underscore within a word is none.
_MARKUP = re.compile(r"[\\`*~\[\]<>|]|(?<!\w)_|_(?!\w)")


def terminal(comparison: Comparison) -> list[str]:
    """Return the table with a title above and the control below."""
    table = aligned(_rows(comparison), words=(0,))
    return [_line(str(comparison.subject)), *table, _line(comparison.control)]


def mail(comparison: Comparison) -> list[str]:
    """Return plain text for a commit message: what was measured, the table, the control.

    Many kernels make several tables, each with the base.
    """
    tables = []
    for part in _parts(comparison):
        tables += ["", *_mail_table(part)]
    return [*_filled(_description(comparison)), *tables, "", *_filled(_control(comparison))]


def markdown(comparison: Comparison) -> list[str]:
    """Return a table for GitHub, with what was measured above and the control below."""
    head, *rows = _rows(comparison)
    rule = ["---", *("---:" for _ in comparison.columns)]
    return [
        _escaped(_description(comparison)),
        "",
        *("| " + " | ".join(cells) + " |" for cells in (map(_escaped, head), rule)),
        *("| " + " | ".join(map(_escaped, row)) + " |" for row in rows),
        "",
        _escaped(_control(comparison)),
    ]


def _line(text: str) -> str:
    return " ".join(printable(text).split())


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)


def _rows(comparison: Comparison) -> list[tuple[str, ...]]:
    columns = comparison.columns
    base, *others = (column.result.measurement.loaded for column in columns)
    series = (base, *others)
    ratios = {
        name: ("", *(_ratio(base, other, name) for other in others))
        for name in ("mean_ns", "max_ns")
    }
    received = [column.frames for column in columns]
    frames = [("received", *("-" if rate is None else f"{rate:.0f}/s" for rate in received))]
    return [
        ("", *(_line(column.label) for column in columns)),
        ("mean", *(_time(s, "mean_ns") for s in series)),
        ("worst", *(_time(s, "max_ns") for s in series)),
        ("over 1 s", *(f"{s.over(_SECOND_NS)} of {s.n}" for s in series)),
        ("RCU stalls", *(str(column.stalls) for column in columns)),
        *(frames if any(received) else []),
        ("re-entries", *(f"{c.reentries:.0f}/s" if c.rate else "-" for c in columns)),
        ("mean ratio", *ratios["mean_ns"]),
        ("worst ratio", *ratios["max_ns"]),
    ]


def _unfinished(series: Series) -> bool:
    return any(sample.unfinished for sample in series.samples)


def _time(series: Series, statistic: str) -> str:
    """Return a time as in the seed; ``>`` where a sample was given up and took longer."""
    if not series.n:
        return "-"
    seconds = getattr(series, statistic) / 1e9
    # Two decimals, and more where they would not be two significant digits.
    decimals = max(2, 1 - math.floor(math.log10(seconds))) if seconds > 0 else 2
    return f"{'>' if _unfinished(series) else ''}{seconds:.{decimals}f} s"


def _ratio(base: Series, other: Series, statistic: str) -> str:
    above, below = getattr(base, statistic), getattr(other, statistic)
    if not above or not below or (_unfinished(base) and _unfinished(other)):
        return "-"
    sign = ">" if _unfinished(base) else "<" if _unfinished(other) else ""
    return sign + two_digits(above / below)


def two_digits(value: float) -> str:
    """Return a positive ``value`` with two significant digits: ``380``, ``1.0``, ``0.85``."""
    rounded = float(f"{value:.1e}")
    return f"{rounded:.{max(1 - math.floor(math.log10(rounded)), 0)}f}"


def _parts(comparison: Comparison) -> Iterator[Comparison]:
    base, *others = comparison.columns
    part: list[Measured] = []
    for column in others:
        wider = replace(comparison, columns=(base, *part, column))
        if part and max(map(len, _mail_table(wider))) > MAIL_WIDTH:
            yield replace(comparison, columns=(base, *part))
            part = []
        part.append(column)
    yield replace(comparison, columns=(base, *part))


def _mail_table(comparison: Comparison) -> list[str]:
    head, *rows = _rows(comparison)
    labels = [_wrapped(label, _LABEL_WIDTH) for label in head]
    height = max(map(len, labels))
    heads = zip(*([""] * (height - len(label)) + label for label in labels), strict=True)
    return [_INDENT + line for line in aligned([*heads, *rows], words=(0,))]


def _wrapped(text: str, width: int) -> list[str]:
    # A release is not broken at its hyphens unless it must be.
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _filled(text: str) -> list[str]:
    return _wrapped(text, MAIL_WIDTH)


def _distinct(values: Iterable[object]) -> str:
    return listed(list(dict.fromkeys(_line(str(value)) for value in values)))


def _description(comparison: Comparison) -> str:
    columns, subject = comparison.columns, comparison.subject
    guests = [column.guest for column in columns]
    measurements = [column.result.measurement for column in columns]
    seconds = [f"{(m.end_ns - m.start_ns) / 1e9:.0f}" for m in measurements]
    loads = [column.result.load for column in columns]
    on = [",".join(map(str, load.cpus)) for load in loads if load is not None]
    traffic = any(column.frames is not None for column in columns)
    kind = "traffic into a NIC polled" if traffic else "a NAPI re-entry load"
    where = "in softirq" if on and set(on) == {"-1"} else f"on CPU {_distinct(on)}"
    under = f"under {kind} {where}" if on else "under no load"
    kernels = [f"{_line(c.label)}: {_line(c.guest.release)}" for c in columns]
    return (
        f"{_line(subject.operation)} on CPU {_distinct(m.cpu for m in measurements)} for "
        f"{_distinct(seconds)} s {under}, preempt={_line(subject.preemption)}, in guests of "
        f"{_distinct(guest.cpus for guest in guests)} CPUs, "
        f"{_distinct(guest.qemu for guest in guests)} "
        f"({_distinct(guest.accelerator for guest in guests)}). {_sentence(kernels)}"
    )


def _sentence(kernels: Sequence[str]) -> str:
    return "; ".join(kernels) + "."


def _control(comparison: Comparison) -> str:
    if comparison.invalid:
        return _line(comparison.control) + "."
    return (
        f"The load is the control: {comparison.rates}, {percent(comparison.apart)} apart. The same "
        "work is done in each run, so the difference is not a lighter load."
    )

# SPDX-License-Identifier: GPL-2.0-only
import pytest

from pytest_napi.report import layouts
from pytest_napi.report.compare import compare, listed, measured, percent
from records import STALL, after, before, record, result, seed_pair, series


def compared(*records, labels=("before", "after")):
    return compare(list(measured(records)), labels)


def only(*records, **labels):
    (comparison,), absent = compared(*records, **labels)
    assert absent == []
    return comparison


def test_the_seeds_table():
    assert layouts.terminal(only(*seed_pair())) == [
        "netdev_deletion, preempt=none, test_deletion.py::test_it",
        "               before     after",
        "mean           1.22 s    0.10 s",
        "worst         60.32 s    0.16 s",
        "over 1 s     7 of 172  0 of 179",
        "RCU stalls          2         0",
        "re-entries    19984/s   20010/s",
        "mean ratio                   12",
        "worst ratio                 380",
        "load: 19984/s and 20010/s, 0.1 % apart",
    ]


def test_the_first_kernel_is_the_base_whatever_finished_first():
    comparison = only(after(), before(), labels=("before", "after"))
    assert [column.label for column in comparison.columns] == ["before", "after"]
    comparison = only(after(), before(), labels=("after", "before"))
    assert layouts.terminal(comparison)[-2].split() == ["worst", "ratio", "0.0027"]


def test_three_kernels():
    third = record("third", result(series(500), rate=19000.0))
    comparison = only(before(), third, after(), labels=("before", "third", "after"))
    lines = layouts.terminal(comparison)
    assert lines[1].split() == ["before", "third", "after"]
    assert lines[-1] == "load: 19984/s, 19000/s and 20010/s, 5.0 % apart"


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ((20000, 18000), "load: 20000/s and 18000/s, 10.0 % apart"),
        ((18000, 20000), "load: 18000/s and 20000/s, 10.0 % apart"),
        ((20000, 17900), "invalid: the loads differ by 10.5 %: the figures cannot be compared"),
        ((20000, 13200), "invalid: the loads differ by 34 %: the figures cannot be compared"),
        ((20000, None), "invalid: no load was measured on after: the figures cannot be compared"),
        ((20000, 0), "invalid: no load was measured on after: the figures cannot be compared"),
        ((None, None), "invalid: no load was measured on before and after: the figures cannot be"),
    ],
)
def test_the_control(rates, said):
    comparison = only(before(rate=rates[0]), after(rate=rates[1]))
    assert comparison.control.startswith(said)
    assert bool(comparison.invalid) is said.startswith("invalid")
    assert layouts.terminal(comparison)[-1] == comparison.control


def test_what_was_given_up_took_longer():
    stuck = record("before", result(series(100, 21000, unfinished=True), rate=20010.0))
    lines = layouts.terminal(only(stuck, after()))
    assert lines[2].split()[:3] == ["mean", ">10.55", "s"]
    assert lines[3].split() == ["worst", ">21.00", "s", "0.16", "s"]
    assert lines[4].split()[:6] == ["over", "1", "s", "1", "of", "2"]
    assert lines[-2].split() == ["worst", "ratio", ">130"]


def test_the_other_one_was_given_up():
    stuck = record("after", result(series(21000, unfinished=True), rate=20010.0))
    assert layouts.terminal(only(before(), stuck))[-2].split() == ["worst", "ratio", "<2.9"]
    both = record("before", result(series(21000, unfinished=True), rate=20010.0))
    assert layouts.terminal(only(both, stuck))[-2].split() == ["worst", "ratio", "-"]


def test_no_sample_is_no_figure():
    lines = layouts.terminal(only(before(), record("after", result(series()))))
    assert [lines[i].split()[-1] for i in (2, 3, -3, -2)] == ["-"] * 4
    assert lines[4].endswith("0 of 0")


def test_short_times_keep_two_digits():
    lines = layouts.terminal(only(before(), record("after", result(series(0.3084, 24)))))
    assert lines[2].endswith("0.012 s")
    lines = layouts.terminal(only(before(), record("after", result(series(0.3084)))))
    assert lines[2].endswith("0.00031 s")


def test_what_is_cut_short_is_not_compared():
    cut = record("after", result(complete=False), outcome="lost")
    assert compared(before(), cut) == (
        [],
        ["no comparison with after: cut short: netdev_deletion, preempt=none, "
         "test_deletion.py::test_it"],
    )  # fmt: skip


def test_without_the_base_there_is_no_comparison():
    comparisons, absent = compared(
        after(), record("third", result()), labels=("before", "after", "third")
    )
    assert comparisons == []
    assert absent[0].startswith("no comparison with before: not measured: netdev_deletion")


def test_a_missing_kernel_leaves_the_others():
    (comparison,), absent = compared(*seed_pair(), labels=("before", "third", "after"))
    assert [column.label for column in comparison.columns] == ["before", "after"]
    assert len(absent) == 1
    assert absent[0].startswith("no comparison with third: not measured")


def test_one_kernel_is_nothing_to_compare():
    assert compared(before(), labels=("before",)) == ([], [])


def test_only_like_is_compared_with_like():
    pairs = [
        (before(), record("after", result(), model="full")),
        (before(), record("after", result(), test="test_deletion.py::test_other")),
        (before(), record("after", result(operation="rcu_barrier"))),
    ]
    for pair in pairs:
        comparisons, absent = compared(*pair)
        assert comparisons == []
        assert len(absent) == 2


def test_every_model_operation_and_test_by_itself():
    records = [
        record(label, result(), result(operation="rcu_barrier"), model=model, test=test)
        for label in ("before", "after")
        for model in ("none", "full")
        for test in ("t.py::test_a", "t.py::test_b")
    ]
    comparisons, absent = compared(*records)
    assert (len({str(c.subject) for c in comparisons}), absent) == (8, [])


def test_an_operation_measured_twice_in_one_test():
    twice = [record(x, result(series(10)), result(series(20))) for x in ("before", "after")]
    comparisons, _ = compared(*twice)
    assert [str(c.subject).partition(",")[0] for c in comparisons] == [
        "netdev_deletion",
        "netdev_deletion no. 2",
    ]


def test_labels_are_shown_escaped():
    evil = "a\x1b[2J\nb"
    comparison = only(record(evil, result()), after(), labels=(evil, "after"))
    for layout in (layouts.terminal, layouts.mail, layouts.markdown):
        lines = layout(comparison)
        assert not any(set(line) & {"\x1b", "\n"} for line in lines)
        assert any("x1b" in line for line in lines)


def test_mail():
    comparison = only(before(STALL, STALL, release="6.18.41-dirty"), after())
    assert layouts.mail(comparison) == [
        "netdev_deletion on CPU 1 for 10 s under a NAPI re-entry load on CPU 0,",
        "preempt=none, in guests of 2 CPUs, QEMU 7.2.22 (tcg). before:",
        "6.18.41-dirty; after: 6.18.41.",
        "",
        "                 before     after",
        "  mean           1.22 s    0.10 s",
        "  worst         60.32 s    0.16 s",
        "  over 1 s     7 of 172  0 of 179",
        "  RCU stalls          2         0",
        "  re-entries    19984/s   20010/s",
        "  mean ratio                   12",
        "  worst ratio                 380",
        "",
        "The load is the control: 19984/s and 20010/s, 0.1 % apart. The same work",
        "is done in each run, so the difference is not a lighter load.",
    ]


def test_a_mail_of_what_cannot_be_compared_says_so():
    text = " ".join(layouts.mail(only(before(rate=1e5), after())))
    assert "invalid: the loads differ by 80 %: the figures cannot be compared." in text
    assert "not a lighter load" not in text


@pytest.mark.parametrize("length", [6, 26, 200])
def test_many_kernels_are_several_tables_of_72_columns(length):
    labels = [f"{i}{'x' * (length - 1)}" for i in range(9)]
    lines = layouts.mail(only(*(record(x, result()) for x in labels), labels=labels))
    assert max(map(len, lines)) <= 72
    means = [line.split("mean")[1].split() for line in lines if line.startswith("  mean  ")]
    assert len(means) > 1
    assert sum(map(len, means)) == 2 * (8 + len(means)), "each table has the base"


def test_markdown():
    comparison = only(record("a|b_c_", result()), after(), labels=("a|b_c_", "after"))
    lines = layouts.markdown(comparison)
    assert lines[0].startswith("netdev_deletion on CPU 1 for 10 s under a NAPI re-entry load")
    assert lines[1:5] == [
        "",
        r"|  | a\|b_c\_ | after |",
        "| --- | ---: | ---: |",
        "| mean | 0.10 s | 0.10 s |",
    ]
    assert lines[-1].startswith("The load is the control: 20010/s and 20010/s, 0.0 % apart.")


def test_numbers_in_words():
    numbers = [377.3, 12.2, 9.96, 1.0, 0.8549, 0.0026]
    assert [layouts.two_digits(x) for x in numbers] == ["380", "12", "10", "1.0", "0.85", "0.0026"]
    assert [percent(x) for x in (0.001, 0.1, 0.34)] == ["0.1 %", "10.0 %", "34 %"]
    assert [listed(list(x)) for x in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]

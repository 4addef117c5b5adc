# SPDX-License-Identifier: GPL-2.0-only
import pytest

from pytest_napi.commands import main
from pytest_napi.report.record import write_results
from records import STALL, after, before, record, result, seed_pair


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command on files of these records; return its exit status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*options, **files):
        for name, records in files.items():
            labels = list(dict.fromkeys(one.label for one in records))
            write_results(tmp_path / f"{name}.json", records, labels)
        status = main(["compare", *(f"{name}.json" for name in files), *options])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def heads(out):
    return [line.split() for line in out.splitlines() if line.startswith("      ")]


def test_the_kernels_of_one_file(run):
    status, out, err = run(both=seed_pair())
    assert (status, err) == (0, "")
    assert out.splitlines()[1:4] == [
        "               before     after",
        "mean           1.22 s    0.10 s",
        "worst         60.32 s    0.16 s",
    ]
    assert out == run(both=seed_pair())[1], "it says the same every time"


@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("--mail", "  worst         60.32 s    0.16 s"),
        ("--markdown", "| worst | 60.32 s | 0.16 s |"),
    ],
)
def test_layouts(run, option, line):
    status, out, _ = run(option, both=seed_pair())
    assert status == 0
    assert line in out.splitlines()


def test_one_file_a_kernel(run):
    status, out, _ = run(one=[before()], two=[after()])
    assert (status, heads(out)) == (0, [["before", "after"]])


def test_the_order_of_the_files_counts(run):
    assert heads(run(two=[after()], one=[before()])[1]) == [["after", "before"]]


def test_one_label_in_two_files_is_told_apart_by_the_file(run):
    one, two = [record("k", result())], [record("k", result())]
    assert heads(run(old=one, new=two)[1]) == [["old", "new"]]
    both = [*seed_pair()]
    assert heads(run(old=both, new=[after()])[1]) == [["before", "old:after", "new"]]


def test_one_name_in_two_folders(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_results(tmp_path / name / "r.json", [record("k", result())], ["k"])
    assert main(["compare", "a/r.json", "b/r.json"]) == 0
    assert heads(capsys.readouterr().out) == [["a/r.json", "b/r.json"]]


def test_three_files(run):
    status, out, _ = run(a=[before()], b=[after()], c=[record("third", result())])
    assert (status, heads(out)) == (0, [["before", "after", "third"]])


def test_several_models(run):
    records = [record(x, result(), model=m) for x in ("a", "b") for m in ("none", "full")]
    status, out, _ = run(both=records)
    assert (status, out.count("\n\n"), len(heads(out))) == (0, 1, 2)


def test_an_invalid_comparison_is_printed_and_an_error(run):
    for option in ([], ["--mail"], ["--markdown"]):
        status, out, err = run(*option, both=[before(STALL, rate=30000.0), after()])
        assert status == 1
        assert "60.32 s" in out
        assert err == (
            "pytest-napi: netdev_deletion, preempt=none, test_deletion.py::test_it: "
            "invalid: the loads differ by 33 %: the figures cannot be compared\n"
        )


def refused(outcome):
    status, out, err = outcome
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    return err.removeprefix("pytest-napi: ")


def test_nothing_in_common(run):
    said = refused(run(one=[before()], two=[record("after", result(operation="rcu_barrier"))]))
    assert said == (
        "nothing to compare: before has netdev_deletion, preempt=none, test_deletion.py::test_it | "
        "after has rcu_barrier, preempt=none, test_deletion.py::test_it\n"
    )


def test_one_kernel(run):
    assert refused(run(one=[before()])).startswith("nothing to compare: before has netdev_deletion")
    assert refused(run(one=[])) == "nothing to compare: no kernel was tested\n"
    assert "before has no measurement" in refused(run(one=[record("before")], two=[after()]))


def test_what_was_cut_short(run):
    cut = record("after", result(complete=False))
    assert "test_it (cut short)\n" in refused(run(one=[before()], two=[cut]))


def test_what_has_no_counterpart_is_said_beside_the_table(run):
    alone = record("before", result(), model="full")
    status, out, err = run("--mail", both=[*seed_pair(), alone])
    assert status == 0
    assert "preempt=full" not in out
    assert err.startswith("pytest-napi: no comparison with after: not measured: netdev_deletion, p")


def test_bad_files(run, tmp_path):
    (tmp_path / "bad.json").write_text("{")
    assert refused(run("bad.json", good=[before()])).startswith("bad.json: not JSON")
    assert refused(run("none.json", good=[before()])) == "none.json: No such file or directory\n"
    assert refused(run(".", good=[before()])) == ".: Is a directory\n"
    assert refused(run("good.json", good=[before()])) == "one file is given twice\n"


def test_two_kernels_that_would_get_one_name(run):
    said = refused(run(a=[record("k", result())], b=[record("k", result()), record("a", result())]))
    assert said == "two kernels are called a: rename a file\n"


def test_what_a_file_says_is_escaped(run):
    status, out, err = run(one=[record("\x1b[2Jk", result())], two=[after()])
    assert status == 0
    assert "\x1b" not in out + err

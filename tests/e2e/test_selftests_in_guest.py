# SPDX-License-Identifier: GPL-2.0-only
"""The programs under selftests/ as a person runs them, in a guest's shell."""

import re
import subprocess
import sys


def test_run_tests_prints_valid_ktap(kernel_6_12):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest_napi.commands", "shell", "--kernel=debian:6.12"),
            *("--preempt=full", "--", "sh", "-c"),
            "make -s -C /selftests && make -s -C /selftests run_tests",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "KTAP version 1"
    plan = re.fullmatch(r"1\.\.(\d+)", lines[1])
    results = [re.fullmatch(r"(ok|not ok) (\d+) (\S.*)", line) for line in lines]
    top = [match for match in results if match]
    assert [int(match[2]) for match in top] == list(range(1, int(plan[1]) + 1))
    assert {match[1] for match in top} == {"ok"}
    nested = [line for line in lines if line.startswith("  ") and " ok " in f" {line.strip()} "]
    assert len(nested) >= len(top)
    known = re.compile(r"\s*(KTAP version 1|1\.\.\d+.*|#.*|(not )?ok \d+.*)")
    assert [line for line in lines if line and not known.fullmatch(line)] == []

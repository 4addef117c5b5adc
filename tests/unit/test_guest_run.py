# SPDX-License-Identifier: GPL-2.0-only
"""``Guest.run`` and the guest's clock, through the real agent."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest

from guest_agent import MB, python
from pytest_napi.errors import GuestCommandError, GuestCommandTimeout
from pytest_napi.guest import Guest

pytest_plugins = ["guest_agent"]


def test_the_greeting_tells_of_the_kernel(guest: Guest) -> None:
    hello = guest.wait_ready(5)
    assert (hello.release, hello.machine) == (os.uname().release, os.uname().machine)
    assert hello.version == os.uname().version
    assert hello.cpus == len(os.sched_getaffinity(0))
    assert 0 <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) - hello.uptime_ns < 5e9


def test_a_woken_guest_greets_again_and_serves(guest: Guest) -> None:
    before = guest.wait_ready()
    assert guest.wake(5).uptime_ns > before.uptime_ns
    assert guest.run(["true"]).returncode == 0


def test_run_keeps_the_streams_apart(guest: Guest) -> None:
    result = guest.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.returncode, result.stdout, result.stderr) == (3, b"out\n", b"err\n")


def test_a_lone_string_is_a_program(guest: Guest) -> None:
    assert guest.run("true").returncode == 0
    assert guest.run(Path("/bin/true")).returncode == 0


def test_text_has_universal_newlines(guest: Guest) -> None:
    result = guest.run(["cat"], input="ä\r\nb\rc\n", text=True)
    assert result.stdout == "ä\nb\nc\n"
    assert guest.run(["cat"], input="ä", encoding="latin-1").stdout == "ä"
    assert guest.run(["printf", r"\377"], errors="replace").stdout == "\N{REPLACEMENT CHARACTER}"


def test_all_bytes_pass(guest: Guest) -> None:
    content = bytes(range(256)) * 1000 + b"NAPI" * 100
    assert guest.run(["cat"], input=content).stdout == content


def test_without_input_stdin_is_empty(guest: Guest) -> None:
    assert guest.run(["cat"]).stdout == b""


def test_a_signal_is_a_negative_returncode(guest: Guest) -> None:
    assert guest.run(["sh", "-c", "kill -TERM $$"]).returncode == -signal.SIGTERM


def test_check(guest: Guest) -> None:
    with pytest.raises(GuestCommandError, match=r"in the guest: .* exit status 4") as caught:
        guest.run(["sh", "-c", "echo why >&2; exit 4"], check=True)
    assert (caught.value.returncode, caught.value.stderr) == (4, b"why\n")


def test_environment_and_working_directory(guest: Guest, tmp_path: Path) -> None:
    result = guest.run(["/usr/bin/env"], env={"A": "1", "B": "x=y"}, cwd=tmp_path)
    assert result.stdout == b"A=1\nB=x=y\n"
    assert guest.run(["pwd"], cwd=tmp_path, text=True).stdout == f"{tmp_path}\n"
    assert guest.run(["pwd"]).stdout == b"/\n"


def test_path_is_that_of_the_given_environment(guest: Guest, tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert guest.run("only-here", env={"PATH": f"/nowhere:{tmp_path}"}).stdout == b"found\n"
    with pytest.raises(FileNotFoundError):
        guest.run("only-here")


def test_programs_start_with_a_clean_slate(guest: Guest) -> None:
    status = guest.run(["cat", "/proc/self/status"], text=True).stdout
    for mask in ("SigBlk", "SigIgn"):
        assert f"{mask}:\t0000000000000000" in status
    assert guest.run(["sh", "-c", "ls /proc/$$/fd"]).stdout.split() == [b"0", b"1", b"2"]
    code = "import os; print(os.getsid(0) == os.getpid() == os.getpgrp())"
    assert guest.run(python(code)).stdout == b"True\n"


def test_cpu_affinity(guest: Guest) -> None:
    cpu = max(os.sched_getaffinity(0))
    code = "import os; print(sorted(os.sched_getaffinity(0)))"
    assert guest.run(python(code), cpu=cpu, text=True).stdout == f"[{cpu}]\n"
    cpus = sorted(os.sched_getaffinity(0))
    assert guest.run(python(code), text=True).stdout == f"{cpus}\n"
    for missing in (1000, 100000):
        with pytest.raises(ValueError, match=f"the guest has no CPU {missing}"):
            guest.run("true", cpu=missing)
    with pytest.raises(ValueError, match="no CPU -2"):
        guest.run("true", cpu=-2)


def test_what_cannot_be_run_is_said_with_the_path(guest: Guest, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    with pytest.raises(FileNotFoundError, match="in the guest: 'no-such-program'") as caught:
        guest.run(["no-such-program", "x"])
    assert caught.value.filename == "no-such-program"
    with pytest.raises(PermissionError, match=str(plain)):
        guest.run([plain])
    plain.chmod(0o755)
    with pytest.raises(OSError, match="Exec format error"):
        guest.run([plain])
    with pytest.raises(FileNotFoundError, match="'/nowhere'"):
        guest.run(["true"], cwd="/nowhere")
    with pytest.raises(FileNotFoundError):
        guest.start(["no-such-program"])


def test_what_no_program_can_be_given_is_refused(guest: Guest) -> None:
    with pytest.raises(ValueError, match="null byte"):
        guest.run(["echo", "a\0b"])
    with pytest.raises(ValueError, match="empty"):
        guest.run([])
    with pytest.raises(ValueError, match="A=B"):
        guest.run(["true"], env={"A=B": ""})
    with pytest.raises(OSError, match="65536") as caught:
        guest.run(["echo", "x" * 70000])
    assert caught.value.errno == errno.E2BIG


def test_a_timeout_kills_the_process_group_and_keeps_the_output(guest: Guest) -> None:
    start = time.monotonic()
    with pytest.raises(
        GuestCommandTimeout, match=r"in the guest: .* timed out after 0\.2"
    ) as caught:
        guest.run(["sh", "-c", "echo so far; sleep 60 & echo $! >&2; wait"], timeout=0.2)
    assert time.monotonic() - start < 2
    assert caught.value.output == b"so far\n"
    assert caught.value.stderr is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(caught.value.stderr), 0)


def test_a_daemon_that_holds_the_streams_is_a_timeout_too(guest: Guest) -> None:
    with pytest.raises(GuestCommandTimeout) as caught:
        guest.run(["sh", "-c", "setsid sleep 1 & echo gone"], timeout=0.3)
    assert caught.value.output == b"gone\n"


def test_a_timeout_while_input_is_not_read(guest: Guest) -> None:
    with pytest.raises(GuestCommandTimeout):
        guest.run(["sleep", "60"], input=bytes(MB), timeout=0.2)


def test_start_has_a_timeout_too(guest: Guest) -> None:
    with guest.start(["sleep", "60"], timeout=0.1) as process:
        assert process.wait() == -signal.SIGKILL
        assert process.timed_out
        assert process.elapsed_ns is not None
        assert 0.09e9 < process.elapsed_ns < 2e9


def test_clocks(guest: Guest) -> None:
    ping = guest.ping()
    assert ping.round_trip_ns > 0
    assert abs(ping.guest_ns - ping.host_ns) <= ping.round_trip_ns
    assert abs(guest.clock_offset()) < 50e6

# SPDX-License-Identifier: GPL-2.0-only
"""``Guest.start`` and GuestProcess, through the real agent."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from guest_agent import MB, Served
from pytest_napi.errors import GuestCommandTimeout
from pytest_napi.guest import Guest

pytest_plugins = ["guest_agent"]


def test_output_is_streamed_as_it_comes(guest: Guest) -> None:
    with guest.start(["sh", "-c", "echo one; read x; echo $x"], text=True) as process:
        assert process.stdout.readline() == "one\n"
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.write("two\n")
        assert list(process.stdout) == ["two\n"]
        assert process.wait() == 0


def test_signals_reach_the_program(guest: Guest) -> None:
    code = "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.02; done"
    with guest.start(["sh", "-c", code]) as process:
        assert os.getpgid(process.pid) == process.pid
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"usr1\n"
        process.terminate()
        assert process.wait() == -signal.SIGTERM
        process.kill()
    with pytest.raises(ValueError, match="999"):
        process.send_signal(999)


def test_wait_and_communicate_time_out_and_go_on(guest: Guest) -> None:
    with guest.start(["sh", "-c", "echo a; sleep 0.3; cat"]) as process:
        with pytest.raises(GuestCommandTimeout):
            process.wait(0.05)
        with pytest.raises(GuestCommandTimeout) as caught:
            process.communicate(b"b" * MB, timeout=0.1)
        assert caught.value.output == b"a\n"
        assert process.communicate() == (b"a\n" + b"b" * MB, b"")


def test_leaving_the_context_stops_a_program_that_writes_on(guest: Guest) -> None:
    with guest.start(["yes"]) as process:
        assert process.stdout.readline() == b"y\n"
    assert process.returncode == -signal.SIGPIPE


def test_stdin_blocks_while_the_program_does_not_read(guest: Guest) -> None:
    with guest.start(["sh", "-c", "sleep 0.3; wc -c"]) as process:
        assert process.stdin is not None
        start = time.monotonic()
        process.stdin.write(bytes(MB))
        assert time.monotonic() - start > 0.2
        assert process.communicate() == (b"1000000\n", b"")


def test_a_program_need_not_read_its_input(guest: Guest) -> None:
    assert guest.run(["true"], input=bytes(MB)).returncode == 0
    assert guest.run(["sh", "-c", "exec <&-; sleep 0.1"], input=bytes(MB)).returncode == 0
    with guest.start(["true"]) as process:
        process.wait()
        assert process.stdin is not None
        with pytest.raises(BrokenPipeError):
            process.stdin.write(b"x")


def test_a_program_whose_output_is_not_read_waits(guest: Guest) -> None:
    with guest.start(["sh", "-c", "head -c 30000000 /dev/zero; echo done >&2"]) as process:
        time.sleep(0.3)
        assert process.poll() is None
        received = 0
        while chunk := process.stdout.read(MB):
            received += len(chunk)
        assert received == 30 * MB
        assert process.stderr.read() == b"done\n"


def test_floods_side_by_side(guest: Guest) -> None:
    with (
        guest.start(["head", "-c", str(50 * MB), "/dev/zero"]) as first,
        guest.start(["sh", "-c", f"head -c {10 * MB} /dev/zero >&2"]) as second,
    ):
        assert guest.run(["echo", "between"]).stdout == b"between\n"
        assert len(second.communicate()[1]) == 10 * MB
        assert len(first.communicate()[0]) == 50 * MB


def test_two_hundred_processes_at_once(guest: Guest) -> None:
    processes = [guest.start(["sh", "-c", "cat; exit $0", str(i)]) for i in range(200)]
    for i, process in enumerate(processes):
        output = process.communicate(b"%d" % i)
        assert (process.wait(), output) == (i, (b"%d" % i, b""))


def test_threads_share_a_guest(guest: Guest) -> None:
    wrong: list[object] = []

    def work(seed: int) -> None:
        for i in range(10):
            text = f"{seed}-{i}"
            if guest.run(["echo", text], text=True).stdout != f"{text}\n":
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert not wrong


def test_a_terminal(guest: Guest) -> None:
    code = "tty >/dev/null && stty size; read x; stty size; echo $x; cat; echo end >&2"
    with guest.start(["sh", "-c", code], pty=(24, 80), text=True) as process:
        assert process.stdout.readline() == "24 80\n"
        process.resize(50, 132)
        assert process.stdin is not None
        process.stdin.write("line\n")
        process.stdin.close()
        # The terminal echoes; text mode has made its \r\n plain.
        assert process.stdout.read().split() == ["line", "50", "132", "line", "end"]
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_orphans_are_reaped(served: Served, guest: Guest) -> None:
    pid = int(guest.run(["sh", "-c", "sleep 0.05 >&- 2>&- & echo $!"]).stdout)
    time.sleep(0.2)
    assert not Path(f"/proc/{pid}").exists()
    assert served.agent.poll() is None

# SPDX-License-Identifier: GPL-2.0-only
"""What a person at a terminal sees."""

import os
import re
import sys
import time

import pexpect

from runs import SELFTESTS, command


def test_long_waits_show_their_progress(tmp_path, kernel_6_12):
    arguments = command(
        tmp_path,
        f"--kernel=k={kernel_6_12.image}",
        "--napi-preempt=full",
        str(SELFTESTS / "test_netdev_deletion.py"),
    )
    terminal = pexpect.spawn(arguments[0], arguments[1:], cwd=tmp_path, timeout=120)
    terminal.expect(r"getting a guest of k-full")
    terminal.expect(r"netdev_deletion: idle baseline")
    terminal.expect(r"netdev_deletion: \d+ samples, longest \d\.\d\d s")
    terminal.expect(r"1 passed")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_a_shell_in_the_guest(kernel_6_12):
    environment = {**os.environ, "TERM": "dumb"}
    terminal = pexpect.spawn(
        sys.executable,
        ["-m", "pytest_napi.commands", "shell", f"--kernel={kernel_6_12.image}", "--preempt=full"],
        env=environment,
        timeout=60,
        dimensions=(33, 99),
    )
    terminal.expect("guest:/# ")
    terminal.sendline("stty size; uname -r; tty")
    terminal.expect(r"33 99\r\n" + re.escape(kernel_6_12.release) + r"\r\n/dev/pts/0\r\n")
    terminal.expect("guest:/# ")
    terminal.sendline("echo begun; sleep 100")
    terminal.expect(r"\nbegun\r\n")
    time.sleep(1)  # the sleep is another program: it comes to the foreground a little later
    terminal.sendintr()
    terminal.expect("guest:/# ")
    terminal.sendline("exit 7")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 7

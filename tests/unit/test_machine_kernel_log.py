# SPDX-License-Identifier: GPL-2.0-only
import threading

import pytest

from pytest_napi.errors import ImageError
from pytest_napi.machine.kernel_log import EXCERPT_LINES, KernelLog, load_signatures, message
from pytest_napi.shipped import shipped

SIGNATURES = load_signatures(shipped("configs/log-signatures.yaml"))

# First lines of splats as kernels from 6.1 to 7.3 print them.
SPLATS = [
    ("atomic_sleep", "BUG: sleeping function called from invalid context at net/core/dev.c:1"),
    ("atomic_sleep", "BUG: scheduling while atomic: ip/241/0x00000002"),
    ("lockdep", "WARNING: possible circular locking dependency detected"),
    ("lockdep", "WARNING: possible recursive locking detected"),
    ("lockdep", "WARNING: inconsistent lock state"),
    ("lockdep", "WARNING: suspicious RCU usage"),
    ("lockdep", "[ BUG: Invalid wait context ]"),
    ("rcu_stall", "rcu: INFO: rcu_sched self-detected stall on CPU"),
    ("rcu_stall", "rcu: INFO: rcu_preempt self-detected stall on CPU"),
    ("rcu_stall", "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:"),
    ("rcu_stall", "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 0-.... }"),
    ("soft_lockup", "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [napi/nr1-8193:93]"),
    ("hard_lockup", "watchdog: Watchdog detected hard LOCKUP on cpu 1"),
    ("hard_lockup", "watchdog: CPU1: Watchdog detected hard LOCKUP on cpu 0"),
    ("hung_task", "INFO: task kworker/0:1:9 blocked for more than 120 seconds."),
    ("netdev_leak", "unregister_netdevice: waiting for nr1 to become free. Usage count = 2"),
    ("warning", "WARNING: CPU: 1 PID: 77 at net/core/dev.c:6639 __napi_poll+0x1/0x2"),
    ("warning", "WARNING: net/core/dev.c:7639 at __napi_poll+0x1/0x2, CPU#1: napi/x/77"),
    ("oops", "BUG: kernel NULL pointer dereference, address: 0000000000000010"),
    ("oops", "Oops: general protection fault, probably for non-canonical address: 0000 [#1]"),
    ("oops", "kernel BUG at net/core/skbuff.c:1!"),
    ("sanitizer", "BUG: KASAN: slab-use-after-free in napi_complete_done+0x1/0x2"),
    ("sanitizer", "UBSAN: array-index-out-of-bounds in net/core/dev.c:1:2"),
    ("workqueue_lockup", "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for"),
    ("refcount", "refcount_t: underflow; use-after-free."),
    ("panic", "Kernel panic - not syncing: sysrq triggered crash"),
    ("out_of_memory", "Out of memory: Killed process 99 (dd) total-vm:1kB"),
]


def log_of(*lines):
    log = KernelLog(SIGNATURES)
    for line in lines:
        log.feed(line)
    return log


@pytest.mark.parametrize("stamp", ["", "[    3.141593] ", "[12345.000001][  T241] ", "# [  1.0] "])
@pytest.mark.parametrize(("kind", "line"), SPLATS)
def test_every_kind_of_splat_is_found(kind, line, stamp):
    (splat,) = log_of("[    1.000000] before", stamp + line, "after").splats()
    assert (splat.kind, splat.line, splat.index) == (kind, line, 1)


@pytest.mark.parametrize(
    "line",
    [
        "[    0.000000] Linux version 6.12 (gcc) #1 SMP PREEMPT_DYNAMIC",
        "[    0.1] rcu: Preemptible hierarchical RCU implementation.",
        "[    0.1] rcu: \tRCU debug extended QS entry/exit.",
        "[    0.1] RAS: Correctable Errors collector initialized.",
        "[    1.0] lockdep: no BUG: here",
        "[    1.0] rcu: rcu_sched kthread starved for 6000 jiffies!",
        "user space says BUG: and WARNING: without a time stamp",
        "",
    ],
)
def test_other_lines_are_not(line):
    assert log_of(line).splats() == []


def test_splats_since_a_mark():
    log = log_of("[ 1.0] BUG: one")
    mark = log.mark()
    log.feed("[ 2.0] BUG: two")
    assert [splat.line for splat in log.splats(since=mark)] == ["BUG: two"]


def test_an_excerpt_ends_at_the_next_splat_or_is_cut():
    lines = ["[ 1.0] BUG: one", "trace", "[ 2.0] WARNING: two", *map(str, range(100))]
    log = log_of(*lines)
    first, second = log.splats()
    assert log.excerpt(first) == "[ 1.0] BUG: one\ntrace"
    assert len(log.excerpt(second).splitlines()) == EXCERPT_LINES


def test_waiting_for_a_line():
    log = log_of("old marker")
    since = log.mark()
    threading.Timer(0.05, log.feed, ["[ 1.0] marker"]).start()
    assert log.wait_for("marker", timeout=5, since=since)
    assert not log.wait_for("never", timeout=0.01)


def test_message_is_what_is_behind_the_last_stamp_in_front():
    assert message("echo[    4.000000] WARNING: x") == "WARNING: x"


def test_a_bad_signature_file_is_named(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("- {kind: a, pattern: '(', from: x}")
    with pytest.raises(ImageError, match=str(path)):
        load_signatures(path)
    path.write_text("- {kind: a}")
    with pytest.raises(ImageError, match="pattern"):
        load_signatures(path)

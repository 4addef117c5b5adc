# SPDX-License-Identifier: GPL-2.0-only
"""pytest-xdist's workers: the verdicts of one process, and nobody disturbs a measurement."""

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from runs import full_only, qemus

ONE = """
import os
import pytest

@pytest.mark.parametrize("n", range(4))
def test_it(guest, n):
    assert guest.run(["true"]).returncode == 0
    assert os.environ.get("SSH_CONNECTION") or n >= 0
"""

MIXED = """
import json, os, time
import pytest

@pytest.fixture
def span(request):
    begun = time.monotonic()
    yield
    with open("spans", "a") as file:
        line = {"begun": begun, "ended": time.monotonic(), "pid": os.getpid()}
        line["measuring"] = "deletion" in request.node.name
        file.write(json.dumps(line) + "\\n")

@pytest.mark.parametrize("n", range(2))
def test_deletion(reentry_load, netdev_deletion, bounds, span, n):
    with reentry_load(cpu=0) as load:
        deletion = netdev_deletion(seconds=3)
    bounds.check(deletion, control=load.rate)

@pytest.mark.parametrize("n", range(4))
def test_command(guest, span, n):
    assert guest.run(["sleep", "1"]).returncode == 0

def test_broken(guest, span):
    assert guest.run(["false"]).returncode == 0
"""


def spans(folder):
    path = folder / "spans"
    found = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("-n2",),
        pytest.param(
            ("-n4", "--dist=loadgroup"),
            marks=full_only,
        ),
    ],
)
def test_workers_give_the_verdicts_of_one_process(napi, kernel_6_12, tmp_path, options):
    run = napi(
        *("--kernel=k=debian:6.12", "--napi-preempt=none,full", "--napi-memory=497M"),
        *options,
        source=MIXED,
    )
    assert run.status == 1
    assert len(run.tests) == 14
    for test in run.tests:
        model, name = test["guest"]["preemption"], test["nodeid"]
        bad = "broken" in name or ("deletion" in name and model == "none")
        assert test["outcome"] == ("failed" if bad else "passed"), name
    assert run.out.count("netdev_deletion, seconds") == 1
    assert qemus("497M") == []
    found = spans(tmp_path)
    assert len({span["pid"] for span in found}) > 1
    for measuring in (span for span in found if span["measuring"]):
        for other in found:
            apart = other["ended"] < measuring["begun"] or measuring["ended"] < other["begun"]
            assert other is measuring or apart


def test_a_worker_that_cannot_run_guests_ends_the_run_with_one_line(napi, kernel_6_12, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    run = napi(
        *("--kernel=k=debian:6.12", "--dist=load", "--tx=popen"),
        f"--tx=popen//env:PATH={nowhere}//id=other",
        source=ONE,
    )
    assert run.status == 4
    (line,) = [line for line in (run.out + run.err).splitlines() if "worker other" in line]
    assert "qemu-system-x86_64 is not installed: apt-get install qemu-system-x86" in line
    assert "Traceback" not in run.out + run.err


@pytest.fixture
def ssh_config(tmp_path):
    """Run an sshd on loopback for this user; return the ssh configuration that leads to it."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sshd is None or not shutil.which("ssh"):
        pytest.skip("no sshd: apt-get install openssh-server")
    for key in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / key)]
        subprocess.run(make, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ListenAddress": "127.0.0.1",
        "Port": port,
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "user.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
    }
    server = tmp_path / "sshd_config"
    server.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    client = tmp_path / "ssh_config"
    client.write_text(
        f"Host *\nHostName 127.0.0.1\nPort {port}\nUser {getpass.getuser()}\n"
        f"IdentityFile {tmp_path / 'user'}\nIdentitiesOnly yes\nBatchMode yes\nLogLevel ERROR\n"
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
    )
    with subprocess.Popen([sshd, "-D", "-e", "-f", server], stderr=subprocess.PIPE) as daemon:
        try:
            deadline = time.monotonic() + 10
            while not listens(port):
                if daemon.poll() is not None or time.monotonic() > deadline:
                    pytest.skip(f"sshd does not run: {daemon.stderr.read().decode()}")
                time.sleep(0.05)
            yield client
        finally:
            daemon.kill()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_other_machines_by_ssh(napi, kernel_6_12, ssh_config, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    spec = f"ssh=host//ssh_config={ssh_config}//python={sys.executable}//chdir={away}"
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_it.py").write_text(ONE.replace("or n >= 0", ""))
    run = napi(
        *("--kernel=k=debian:6.12", "--dist=load", f"--tx={spec}", f"--tx={spec}"),
        *(f"--rsyncdir={tests}", str(tests)),
    )
    assert run.status == 0
    assert [test["outcome"] for test in run.tests] == ["passed"] * 4
    assert {test["guest"]["preemption"] for test in run.tests} == {"voluntary"}

# SPDX-License-Identifier: GPL-2.0-only
"""Real drivers under real frames."""

import os

import pytest

from pytest_napi.machine.nics import BACKENDS, NIC_MODELS, NicConfig
from pytest_napi.machine.wires import TUN
from runs import SELFTESTS, full_only, qemus

TRAFFIC = str(SELFTESTS / "test_nic_traffic.py")
BOUNDS = str(SELFTESTS / "test_nic_bounds.py")

needs_tun = pytest.mark.skipif(
    not os.access(TUN, os.R_OK | os.W_OK), reason=f"no {TUN} for a tap: needs root"
)


def passed(run):
    return {test["outcome"] for test in run.tests} == {"passed"} and run.status == 0


@pytest.mark.parametrize(
    "nic",
    [
        "virtio-net",
        pytest.param("virtio-net,queues=2,backend=tap", marks=needs_tun),
        pytest.param("virtio-net,backend=dgram", marks=full_only),
        pytest.param("vmxnet3", marks=full_only),
    ],
)
def test_frames_arrive(napi, kernel_6_12, nic):
    assert passed(napi(f"--kernel=k={kernel_6_12.image}", f"--napi-nic={nic}", TRAFFIC))


@full_only
@pytest.mark.parametrize("nic", ["igb,queues=2", "igb", "e1000e"])
def test_frames_arrive_at_the_drivers_of_a_built_kernel(napi, images, with_igb, nic):
    run = napi(f"--kernel=k={images['after']}", f"--napi-nic={nic}", TRAFFIC, env=with_igb)
    assert passed(run)


CELL = """
def test_it(nic, guest, traffic):
    assert nic.rx_queues >= nic.config.queues
    if nic.wire.ours is not None:
        from pytest_napi.net.shapes import Paced
        import time
        with traffic(Paced(2000)) as load:
            time.sleep(1.5)
        load.prove_queues(nic.config.queues)
        assert sum(1 for frames in load.queues.values() if frames) == nic.config.queues
        assert load.counts.lost == 0
    elif nic.peer is not None:
        assert guest.run(["ping", "-c", "3", nic.peer_ipv4]).returncode == 0
    else:
        guest.run(["ip", "addr", "add", "10.0.2.15/24", "dev", nic.name], check=True)
        assert guest.run(["ping", "-c", "3", "10.0.2.2"]).returncode == 0
"""


@full_only
@pytest.mark.parametrize("backend", [*BACKENDS])
@pytest.mark.parametrize("model", [*NIC_MODELS])
def test_every_cell_of_the_matrix(napi, images, with_igb, model, backend):
    if BACKENDS[backend].privileged and not os.access(TUN, os.R_OK | os.W_OK):
        pytest.skip(f"no {TUN}")
    queues = min(NIC_MODELS[model].queues[backend], 2)
    nic = NicConfig(model, queues, backend)
    run = napi(f"--kernel=k={images['after']}", f"--napi-nic={nic}", source=CELL, env=with_igb)
    assert passed(run)


LOADS = """
import time
import pytest
from pytest_napi.net.guest_traffic import Backlog, Pktgen, TcpReceive

@pytest.mark.parametrize("shape", [Pktgen(), Backlog(), TcpReceive()], ids=str)
def test_it(netdev_deletion, nic, traffic, bounds, shape):
    nic.threaded = True
    with traffic(shape, cpu=0) as load:
        deletion = netdev_deletion(cpu=1, seconds=4)
    assert any(kthread.runtime_ns for kthread in load.kthreads)
    assert not isinstance(shape, TcpReceive) or load.bits_per_second > 10e6
    bounds.check(deletion, control=load.rate)
"""


def test_loads_of_the_guests_own(napi, kernel_6_12):
    run = napi(
        f"--kernel=k={kernel_6_12.image}",
        "--napi-preempt=full",
        "--napi-nic=virtio-net,backend=loop",
        "--napi-append=thread_backlog_napi",
        source=LOADS,
    )
    assert passed(run)
    for test in run.tests:
        (result,) = test["results"]
        assert result["load"]["frames_per_second"] > 1000


FAULTS = """
import os, signal, time
import pytest
from pytest_napi.net.shapes import Flood, Paced

def test_a_nic_that_stops(nic, guest, traffic):
    with traffic(Paced(5000)):
        time.sleep(1)
        guest.run(["ip", "link", "set", nic.name, "down"], check=True)
        time.sleep(3)

def test_a_generator_that_is_killed(traffic):
    with traffic(Flood()) as load:
        time.sleep(1)
        os.kill(load.generator.pid, signal.SIGKILL)
        time.sleep(0.5)

def test_a_qemu_that_dies(napi_test, traffic):
    with traffic(Flood()):
        time.sleep(1)
        os.kill(napi_test.booted.machine.pid, signal.SIGKILL)
        time.sleep(0.5)

def test_a_link_that_was_never_up(nic, guest, traffic):
    guest.run(["ip", "link", "set", nic.name, "down"], check=True)
    with traffic(Paced(5000)):
        pass
"""


def test_what_breaks_under_traffic_is_an_error_of_its_test(napi, kernel_6_12):
    run = napi(f"--kernel=k={kernel_6_12.image}", "--napi-memory=498M", source=FAULTS)
    reasons = {t["nodeid"].partition("::")[2].partition("[")[0]: t["reason"] for t in run.tests}
    assert "eth0 stopped receiving after " in reasons["test_a_nic_that_stops"]
    assert "generator died (SIGKILL) after " in reasons["test_a_generator_that_is_killed"]
    assert "QEMU died (SIGKILL)" in reasons["test_a_qemu_that_dies"]
    assert "receives nothing" in reasons["test_a_link_that_was_never_up"]
    assert [t["outcome"] for t in run.tests] == ["failed", "failed", "lost", "failed"]
    assert "Traceback" not in run.out
    assert not qemus("498M")


REFUSED = {
    "rtl8139": "unknown NIC model 'rtl8139': use virtio-net, igb, e1000e, vmxnet3",
    "igb,queues=0": "queues=0: a NIC has a number of queues from 1 on",
    "virtio-net,queues=4": "the nearest that works is virtio-net,queues=4,backend=tap",
    "virtio-net,queues=4,backend=tap": "the guest has 2: use --napi-cpus=4 or queues=2",
    "e1000e": "the kernel lacks CONFIG_E1000E (driver of e1000e)",
}


@pytest.mark.parametrize("nic", REFUSED)
def test_a_nic_that_cannot_be_is_one_line_and_status_4(napi, kernel_6_12, nic):
    source = "def test_it(nic): pass\n"
    run = napi(f"--kernel=k={kernel_6_12.image}", f"--napi-nic={nic}", source=source)
    assert run.status == 4
    assert REFUSED[nic] in run.err
    assert "Traceback" not in run.out + run.err


SEARCH = """
def test_it(traffic):
    curve = traffic.{}()
    print(curve.table())
    assert curve.best.reentries_per_second > 1.5 * curve.flood.reentries_per_second
"""


@full_only
@pytest.mark.parametrize("where", ["search", "search_veth"])
def test_the_search_finds_what_is_worse_than_a_flood(napi, images, with_igb, where):
    run = napi(
        f"--kernel=k={images['before']}",
        *("--napi-nic=igb", "-rP"),
        source=SEARCH.format(where),
        env=with_igb,
    )
    assert passed(run)


@full_only
def test_bounds_under_a_nic_before_and_after(napi, images, with_igb):
    kernels = [f"--kernel={label}={image}" for label, image in images.items()]
    run = napi(*kernels, "--napi-nic=igb", BOUNDS, env=with_igb)
    assert {test["outcome"] for test in run.tests} <= {"passed", "failed"}
    frames = [test["results"][0]["load"]["frames_per_second"] for test in run.tests]
    assert min(frames) > 0.9 * max(frames)

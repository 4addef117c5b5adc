# SPDX-License-Identifier: GPL-2.0-only
"""Every preemption model of the kernels Debian has: who keeps the bound, who cannot run what."""

import pytest

from runs import SELFTESTS, fetched, full_only

pytestmark = full_only

SPECS = {"6.1": "debian:6.1", "6.12": "debian:6.12", "6.18": "debian:6.18", "7": "debian:7"}

NON_PREEMPTIBLE = {
    "6.1": ("none", "voluntary"),
    "6.12": ("none", "voluntary"),
    "6.18": ("none", "voluntary"),
    "7": (),
}
PREEMPTIBLE = {"6.1": ("full",), "6.12": ("full",), "6.18": ("full", "lazy"), "7": ("full", "lazy")}


def test_the_matrix(napi):
    there = {}
    for label, spec in SPECS.items():
        try:
            fetched(spec)
        except pytest.skip.Exception as reason:
            print(f"without {label}: {reason}")
        else:
            there[label] = spec
    if not there:
        pytest.skip("no kernel could be fetched")
    run = napi(
        *(f"--kernel={label}={spec}" for label, spec in there.items()),
        *("--napi-preempt=none,voluntary,full,lazy", "-rs"),
        str(SELFTESTS / "test_netdev_deletion.py"),
        timeout=1800,
    )
    assert run.outcomes() == {
        f"{label}-{model}": outcome
        for label in there
        for outcome, models in (("failed", NON_PREEMPTIBLE), ("passed", PREEMPTIBLE))
        for model in models[label]
    }
    if "7" in there:
        assert "7 can be booted with preemption full, lazy only" in run.out

# SPDX-License-Identifier: GPL-2.0-only
from __future__ import annotations

from pathlib import Path

import pytest

from pytest_napi.errors import KernelUnusable
from pytest_napi.kernel.config import parse_config
from pytest_napi.kernel.modules import ModuleTree
from pytest_napi.kernel.requirements import EXPERIMENTS, GUEST, Requirement, check
from samples import CONFIG, kernel, module


def test_values() -> None:
    config = parse_config(CONFIG, "here")
    assert (config.value("VETH"), config.value("CONFIG_VETH")) == ("m", "m")
    assert (config.value("HZ"), config.value("DEFAULT_HOSTNAME")) == ("250", "(none)")
    assert (config.value("IKCONFIG"), config.value("ABSENT")) == ("n", "n")
    assert config.enabled("VETH")
    assert not config.enabled("IKCONFIG")
    assert "IKCONFIG" in config
    assert "CONFIG_IKCONFIG" in config
    assert "ABSENT" not in config
    assert config.source == "here"


@pytest.mark.parametrize(
    ("release", "belongs"),
    [
        ("6.12.117+deb13-cloud-amd64", True),
        ("6.12.0-1-amd64", True),
        ("6.12-rc3", True),
        ("6.1.0-57-cloud-amd64", False),
        ("6.120.1", False),
    ],
)
def test_config_of_another_series_is_told(release: str, belongs: bool) -> None:
    assert parse_config(CONFIG, "here").belongs_to(release) is belongs
    assert parse_config("CONFIG_X=y\n", "here").belongs_to(release)


def complete(without: str = "") -> str:
    rows = [*GUEST, *(row for rows in EXPERIMENTS.values() for row in rows)]
    options = {option for row in rows for option in row.options}
    return "".join(f"CONFIG_{option}=y\n" for option in options if option != without)


def test_complete_config_passes() -> None:
    for rows in (GUEST, *EXPERIMENTS.values()):
        check(kernel(complete()), rows)


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(KernelUnusable) as caught:
        check(kernel("CONFIG_NET=y\nCONFIG_PCI=y\n"), GUEST)
    message = str(caught.value)
    assert "CONFIG_VIRTIO_PCI (virtio devices)" in message
    assert "CONFIG_BLK_DEV_INITRD (initramfs to boot into)" in message
    assert "CONFIG_NET" not in message
    assert "a test's config" in message
    assert "\n" not in message


def test_module_has_to_be_there(tmp_path: Path) -> None:
    rows = (Requirement(("VETH",), "veth pair", module="veth"),)
    with pytest.raises(KernelUnusable, match="the module veth of CONFIG_VETH=m"):
        check(kernel(), rows)
    with pytest.raises(KernelUnusable, match="the module veth of CONFIG_VETH=m"):
        check(kernel(modules=ModuleTree(tmp_path)), rows)
    (tmp_path / "veth.ko").write_bytes(module())
    check(kernel(modules=ModuleTree(tmp_path)), rows)


def test_what_must_be_built_in_may_not_be_a_module() -> None:
    with pytest.raises(KernelUnusable, match="CONFIG_VETH=y, it is m"):
        check(kernel(), (Requirement(("VETH",), "reason"),))


def test_any_of_several_options_will_do() -> None:
    check(kernel("CONFIG_B=y\n"), (Requirement(("A", "B"), "reason"),))
    with pytest.raises(KernelUnusable, match="CONFIG_A or CONFIG_B"):
        check(kernel("CONFIG_C=y\n"), (Requirement(("A", "B"), "reason"),))


def test_nothing_is_known_without_a_config() -> None:
    check(kernel(config=None), GUEST)

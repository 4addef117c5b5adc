# SPDX-License-Identifier: GPL-2.0-only
"""The house: a room imports only rooms that stand before it, and only the roof imports pytest."""

import ast
from functools import cache
from pathlib import Path

import pytest_napi

PACKAGE = Path(pytest_napi.__file__).parent
GROUND = ("cache", "closing", "errors", "quiet", "shipped", "untrusted")
# Data flows from left to right.
LINE = ("options", "kernel", "image", "machine", "guest", "net", "measure", "bounds", "report")
ROOF = ("commands", "experiments", "fixtures", "gather", "plugin", "repeat", "run", "terminal")
MAY_IMPORT_PYTEST = ("commands", "experiments", "fixtures", "gather", "plugin", "repeat")


def modules():
    # An installed package carries the shipped files, which have rules of their own.
    found = {*PACKAGE.rglob("*.py")} - {*PACKAGE.glob("shipped_files/**/*.py")}
    return sorted(found - {PACKAGE / "__init__.py"})


def room(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@cache
def imports(path):
    """Every module imported at run time; what only types need is behind TYPE_CHECKING."""
    return set(_imports(path))


def _imports(path):
    tree = ast.parse(path.read_text())
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_a_room_imports_only_rooms_before_it():
    wrong = []
    for path in modules():
        own = room(path)
        assert own in (*GROUND, *LINE, *ROOF), f"{path}: a new room: give it its place in the line"
        if own in ROOF:
            continue
        allowed = {*GROUND, own, *LINE[: LINE.index(own)]} if own in LINE else set(GROUND)
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "pytest_napi" and len(parts) > 1 and parts[1] not in allowed:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_only_the_roof_imports_pytest():
    below = [path for path in modules() if room(path) not in MAY_IMPORT_PYTEST]
    roots = {path: {name.split(".")[0] for name in imports(path)} for path in below}
    assert [path for path in below if {"pytest", "_pytest"} & roots[path]] == []


def test_a_module_holds_one_idea():
    assert [path for path in modules() if len(path.read_text().splitlines()) > 400] == []


def test_the_check_sees_imports(tmp_path):
    source = tmp_path / "bad.py"
    source.write_text("def f():\n    from pytest_napi.report import table\n    import pytest\n")
    assert {"pytest_napi.report.table", "pytest"} <= imports(source)

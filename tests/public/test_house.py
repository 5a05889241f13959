"""The house: every room has a rule and is not crowded, and no two modules need each other, not even for their types."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import toolyard

TOP = Path(toolyard.__file__).parent
MOST_MODULES = 16
"""In one folder, beside its `__init__.py`."""
LONGEST_RULE = 140
MODULES = {
    ".".join(("toolyard", *path.relative_to(TOP).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in TOP.rglob("*.py")
    if "builtin_plugins" not in path.parts
}
ROOMS = sorted({path.parent for path in MODULES.values()} - {TOP})


def test_every_room_has_a_rule_of_one_line():
    for room in ROOMS:
        rule = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
        first, *more = rule.split("\n\n")
        assert first.endswith((".", "?")), room
        assert "\n" not in first, room
        assert len(first) <= LONGEST_RULE, (room, first)
        assert len(more) <= 12, room


def test_no_room_is_crowded():
    crowded = {room.name: count for room in ROOMS if (count := len(list(room.glob("*.py"))) - 1) > MOST_MODULES}
    assert crowded == {}


def test_one_name_means_one_thing():
    """No two classes of the package have the same name."""
    places: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_no_two_modules_need_each_other():
    """Nor do more of them in a circle: at import, and for the types that they name."""
    needs = {name: imports_of(path) - {name} for name, path in MODULES.items()}
    try:
        list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def imports_of(path: Path) -> set[str]:
    """The modules of ours that one imports outside of functions."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.ImportFrom) and node.module:
                inside = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
                found |= inside or ({node.module} & MODULES.keys())
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                waiting.append(node)
    return found

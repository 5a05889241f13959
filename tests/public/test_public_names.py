"""What the package offers is what it says it offers, and importing it does no work."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import msgspec
import pytest

import toolyard


def test_every_public_name_exists():
    assert sorted(toolyard.__all__) == sorted(
        ["__version__", *(name for names in toolyard.PLACES.values() for name in names)]
    )
    assert {"AgentApplication", "BashSession", "tool", "ToolCall", "ToolResult", "ToolSpec"} <= set(toolyard.__all__)
    assert {"Event", "CallFinished", "Approver", "PermissionRequest"} <= set(toolyard.__all__)
    for name in toolyard.__all__:
        assert getattr(toolyard, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nothing"):
        _ = toolyard.Nothing


def test_importing_the_package_imports_nothing_else_of_it():
    code = "import sys, toolyard; print(sorted(name for name in sys.modules if name.startswith('toolyard.')))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.mark.parametrize(
    "module",
    [
        *("toolyard", "toolyard.plugins.contract", "toolyard.core.tool", "toolyard.core.events"),
        *("toolyard.core.problems", "toolyard.permissions.verdict", "toolyard.permissions.approval"),
    ],
)
def test_the_values_that_others_see_tell_how_they_are_made(module):
    offered = importlib.import_module(module)
    names = getattr(offered, "__all__", dir(offered))
    kinds = [kind for name in names if isinstance(kind := getattr(offered, name), msgspec.StructMeta)]
    assert kinds
    for kind in kinds:
        assert [*inspect.signature(kind).parameters] == [*kind.__struct_fields__]

"""What the package offers is what it says it offers, and importing it does no work."""

from __future__ import annotations

import subprocess
import sys

import pytest

import toolyard


def test_every_public_name_exists():
    assert sorted(toolyard.__all__) == ["AgentApplication", "ToolCall", "ToolResult", "ToolSpec", "__version__"]
    for name in toolyard.__all__:
        assert getattr(toolyard, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Nothing"):
        _ = toolyard.Nothing


def test_importing_the_package_imports_nothing_else_of_it():
    code = "import sys, toolyard; print(sorted(name for name in sys.modules if name.startswith('toolyard.')))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"

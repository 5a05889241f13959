"""Tools that load although something is wrong with them, and what is said of it."""

from __future__ import annotations

import json
import stat

import pytest

from toolyard import AgentApplication

pytestmark = pytest.mark.anyio


@pytest.fixture
def manifest(tmp_path):
    """Writes a manifest with tools that echo their arguments, by their schemas, and a configuration that has it."""

    def write(**schemas):
        program = tmp_path / "tools/bin/echo"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\ncat\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        tools = [{"name": name, "schema": schema, "command": ["./tools/bin/echo"]} for name, schema in schemas.items()]
        (tmp_path / "tools.json").write_text(json.dumps({"tools": tools}))
        (tmp_path / "toolyard.json").write_text('{"plugins": ["manifest:tools.json"]}')
        return AgentApplication(tmp_path / "toolyard.json", tmp_path / "sessions")

    return write


def a_property(**schema):
    return {"type": "object", "properties": {"x": {"type": "string", **schema}}}


async def test_a_pattern_that_cannot_be_read_costs_no_tool_of_a_manifest(manifest):
    async with manifest(odd=a_property(pattern="("), fine=a_property(pattern=r"^[\w-.]+$")) as app:
        assert [spec.name for spec in app.tool_specs()] == ["odd", "fine"]
        (told,) = [problem for problem in app.get_config_errors() if problem["type"] == "pattern_unreadable"]
        assert told["severity"] == "warning"
        assert told["detail"].startswith("tool 'odd': properties.x: the pattern")
        assert (await app.call_tool("odd", {"x": "anything"})).ok
        assert (await app.call_tool("fine", {"x": "a b"})).failure == "invalid_arguments"


async def test_a_default_that_does_not_fit_is_the_authors_fault_and_not_the_models(manifest):
    async with manifest(odd=a_property(enum=["a", "b"], default="c")) as app:
        (told,) = [problem for problem in app.get_config_errors() if problem["type"] == "default_does_not_fit"]
        assert "tool 'odd': properties.x: the default" in told["detail"]
        assert (await app.call_tool("odd", {})).ok


async def test_no_format_leaves_a_tool_out_in_silence(manifest):
    bare = {"type": "object", "properties": {"x": {"type": "array"}}}
    either = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    async with manifest(**{"bare": bare, "either": either, "two words": {"type": "object"}}) as app:
        told = [problem for problem in app.get_config_errors() if problem["type"].startswith("format_")]
        assert [problem["type"] for problem in told] == ["format_name_characters"]
        assert "tool 'two words' is left out of the formats openai, responses, anthropic" in told[0]["detail"]
        assert "two_words" in told[0]["hint"]
        for form in ("openai", "responses", "anthropic"):
            assert len(app.tool_specs(format=form)) == 2
        assert len(app.tool_specs(format="mcp")) == 3

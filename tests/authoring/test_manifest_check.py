"""`tool check` and `tool test` for manifests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import CommandLine, need
from toolyard.authoring.check import check_tools
from toolyard.core.problems import Problem

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "description": "An a."}}}


def entry(**fields):
    return {"name": "probe", "description": "A probe.", "schema": SCHEMA, "command": [need("cat")], **fields}


async def check(folder: Path, *entries) -> list[Problem]:
    (folder / "tools.json").write_text(json.dumps({"tools": entries}, indent=1))
    return await check_tools(folder)


def line_with(folder: Path, text: str) -> int:
    lines = (folder / "tools.json").read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


async def test_a_sound_manifest_has_no_findings(tmp_path: Path):
    assert await check(tmp_path, entry()) == []


async def test_every_faulty_entry_is_found_at_its_line(tmp_path: Path):
    found = await check(tmp_path, entry(name="first", command=[]), entry(name="second", command=["x"]))
    assert [(finding.severity, finding.code, finding.message) for finding in found] == [
        ("error", "manifest_command", 'tool[0] "first": command must have at least program name'),
        ("error", "manifest_path", 'tool[1] "second": relative command[0] must start with ./tools/bin/'),
    ]
    assert [finding.where.line for finding in found] == [
        line_with(tmp_path, '"command": []'),
        line_with(tmp_path, '"x"'),
    ]


async def test_every_program_that_cannot_run_is_named_and_nothing_is_run(tmp_path: Path):
    bin = tmp_path / "tools" / "bin"
    bin.mkdir(parents=True)
    (bin / "mode").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (bin / "fine").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (bin / "fine").chmod(0o755)
    (bin / "out").symlink_to(need("cat"))
    names = ["gone", "mode", "out", "fine"]
    found = await check(tmp_path, *(entry(name=name, command=[f"./tools/bin/{name}"]) for name in names))
    assert [(finding.code, finding.where.line) for finding in found] == [
        ("manifest_program_missing", line_with(tmp_path, "bin/gone")),
        ("manifest_program_not_executable", line_with(tmp_path, "bin/mode")),
        ("manifest_program_outside", line_with(tmp_path, "bin/out")),
    ]
    assert all(str(bin) in finding.message and finding.hint for finding in found)
    assert not (tmp_path / "ran").exists()


async def test_what_is_legal_and_will_hurt_is_a_warning(tmp_path: Path):
    properties = {"silent": {"type": "string"}, "bad": {"type": "integer", "default": "x", "description": "A number."}}
    schema = {"type": "object", "properties": properties, "required": ["nothing"]}
    found = await check(
        tmp_path,
        entry(name="no name", description="", schema=schema),
        entry(name="bare", schema={"type": "object"}, timeoutSecs=1),
    )
    assert {finding.severity for finding in found} == {"warning"}
    assert [(finding.code, finding.where.line) for finding in found] == [
        ("format_name_characters", line_with(tmp_path, "no name")),
        ("no_description", line_with(tmp_path, '"description": ""')),
        ("no_description", line_with(tmp_path, '"silent"')),
        ("default_does_not_fit", line_with(tmp_path, '"default"')),
        ("required_unknown", line_with(tmp_path, '"required"')),
        ("format_schema_incomplete", line_with(tmp_path, '"bare"') + 2),
        ("manifest_unknown_field", line_with(tmp_path, '"timeoutSecs"')),
    ]


async def test_a_folder_may_have_bash_tools_and_a_manifest(tmp_path: Path):
    (tmp_path / "broken.bash").write_text("echo no schema\n")
    found = await check(tmp_path, entry(command=["x"]))
    assert {finding.where.file.name for finding in found} == {"broken.bash", "tools.json"}


def test_the_cases_beside_a_manifest_are_run_for_each_of_its_tools(toolyard: CommandLine):
    toolyard.file("tools.json", json.dumps({"tools": [entry(name="one"), entry(name="two", command=[need("false")])]}))
    toolyard.file("tests/one.json", json.dumps([{"arguments": {"a": "x"}, "output": '{"a":"x"}'}]))
    toolyard.file("tests/two.json", json.dumps([{"arguments": {}, "exit": 1, "output": '{"error": "exit status 1"}'}]))
    for path in (".", "tools.json"):
        ran = toolyard("tool", "test", path, "--json")
        assert [row["passed"] for row in ran.json] == [True, True], ran.out
    toolyard.file("tests/two.json", json.dumps([{"arguments": {}, "output": "fine"}]))
    assert toolyard("tool", "test", "tools.json").code == 1

"""Files of every kind of tool that are no plain files, or links of a tool's: a problem that says so, and no wait."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from toolyard.kinds.bash_script import source as bash_source
from yard import Yard, script

pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    """A project, which its tools can write, with something beside it that they cannot."""
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    (folder.parent / "elsewhere").mkdir()
    return Yard(folder)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30 if path.name != "package.json" else 64 << 20)  # a larger tree is no package at all


TEXTS = {
    "probe.bash": script("probe"),
    "tools.json": json.dumps({"tools": []}),
    "agent_plugin.json": json.dumps({"bash_tools": [{"file": "probe.bash"}]}),
    "package.json": json.dumps({"agent": {"tools": [{"id": "probe", "entry": "index.js"}]}}),
}
ENTRIES = {
    "probe.bash": "bash:./probe.bash",
    "tools.json": "manifest:./tools.json",
    "agent_plugin.json": "bash:./folder",
    "package.json": "node:./folder",
}

CODES = {"probe.bash": "bash_file_unreadable", "tools.json": "manifest_unreadable"}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ("pipe", "not a regular file"),
        ("link", "is a link in a folder that tools can write"),
        ("huge", "larger than 16 MiB"),
    ],
)
async def test_what_is_no_plain_file_is_a_problem(yard, name, odd, words):
    place = yard.folder / name if ENTRIES[name].endswith(name) else yard.folder / "folder" / name
    place.parent.mkdir(exist_ok=True)
    if odd == "link":
        (yard.folder.parent / "elsewhere" / name).write_text(TEXTS[name])
        place.symlink_to(yard.folder.parent / "elsewhere" / name)
    else:
        (os.mkfifo if odd == "pipe" else huge)(place)
    async with yard.app(ENTRIES[name], "shell:command") as app:
        (problem,) = app.get_config_errors()
        assert [spec.name for spec in app.tool_specs()] == ["shell"]
    assert (problem["type"], problem["file"]) == (CODES.get(name, "file_refused"), str(place))
    assert words in problem["detail"]
    assert problem["hint"]


async def test_a_link_that_the_owner_made_elsewhere_is_followed(yard):
    elsewhere = yard.folder.parent / "elsewhere"
    (elsewhere / "real.bash").write_text(script("probe", run="echo real"))
    (elsewhere / "probe.bash").symlink_to("real.bash")
    async with yard.app(f"bash:{elsewhere}/probe.bash") as app:
        assert app.get_config_errors() == []
        assert (await app.call_tool("probe", {})).text == "real\n"


async def test_a_schema_is_not_kept_for_a_content_that_was_not_there_while_it_was_asked_for(yard, monkeypatch):
    """A tool swaps the file while `schema` runs, and back."""
    place = yard.tool(function={"description": "own"})
    own = place.read_bytes()
    usual = bash_source.read_schema
    swapped = []

    async def read_schema(file, content, host):
        if not swapped:
            swapped.append(place.rename(yard.folder / "kept"))
            yard.tool(function={"description": "planted"})
            try:
                return await usual(file, content, host)
            finally:
                (yard.folder / "kept").rename(place)
        return await usual(file, content, host)

    monkeypatch.setattr(bash_source, "read_schema", read_schema)
    async with yard.app("bash:probe.bash"):
        assert swapped
    assert place.read_bytes() == own
    async with yard.app("bash:probe.bash") as app:
        assert [spec.description for spec in app.tool_specs()] == ["own"]

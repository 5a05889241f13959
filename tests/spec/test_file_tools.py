"""N10: file tools, from the outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import PNG
from toolyard.app import AgentApplication
from toolyard.core.content import ImagePart
from yard import Yard

pytestmark = pytest.mark.anyio


async def test_N10_file_tools_read_change_and_find_inside_the_workspace(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    work = Yard(tmp_path / "work")
    work.file("src/a.py", "one\ntwo\nthree\n")
    (work.folder / "dot.png").write_bytes(PNG)
    (work.folder / "data").write_bytes(b"\0\1")
    (work.folder / "out").symlink_to(tmp_path)
    async with AgentApplication(work.config("files:all"), tmp_path / "sessions") as app:

        async def call(tool: str, **arguments):
            return await app.call_tool(tool, arguments)

        assert {one["name"] for one in app.tool_specs(format="mcp")} == {
            *("read", "write", "edit", "multi_edit", "apply_patch", "glob", "grep", "list")
        }
        change = {"file_path": "src/a.py", "old_string": "two", "new_string": "2"}
        assert "read it first" in (await call("edit", **change)).text
        assert (await call("read", file_path="src/a.py", offset=2, limit=1)).text.startswith("     2\ttwo\n")
        assert (await call("read", file_path="dot.png")).attachments == (ImagePart(media_type="image/png", data=PNG),)
        assert "binary" in (await call("read", file_path="data")).text
        diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
        assert await app.preview_tool("edit", change) == diff
        assert (await call("edit", **change)).ok
        edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "three", "new_string": "3"}]
        assert (await call("multi_edit", file_path="src/a.py", edits=edits)).ok
        patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n 1\n-2\n+II\n*** Add File: b.py\n+new\n*** End Patch"
        assert (await app.preview_tool("apply_patch", {"input": patch})).count("\n+++ b/") == 2
        assert (await call("apply_patch", input=patch)).ok
        assert (await app.preview_tool("write", {"file_path": "c.py", "content": "x\n"})).endswith("@@ -0,0 +1 @@\n+x")
        assert (await call("write", file_path="c.py", content="x\n")).ok
        assert (work.folder / "src/a.py").read_text() == "1\nII\n3\n"
        assert (await call("glob", pattern="**/*.py")).text.split("\n")[-1] == "src/a.py"
        assert (await call("grep", pattern="^I+$")).text == "src/a.py:2:II"
        assert {"src/", "b.py", "c.py"} <= {*(await call("list")).text.split("\n")}
        for path in ("../x", "out/x", "/etc/x"):
            refused = await call("write", file_path=path, content="x")
            assert (refused.failure, "outside the workspace" in refused.text) == ("exit_code", True)
    assert not (tmp_path / "x").exists()

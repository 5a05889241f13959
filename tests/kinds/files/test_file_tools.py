"""File tools in an application: their permission, their sandbox, and what each conversation has read."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from support import PATIENCE, PNG, is_alive, need, need_backend
from toolyard.app import AgentApplication
from toolyard.core.content import ImagePart
from toolyard.permissions.verdict import Answer
from yard import Yard

pytestmark = pytest.mark.anyio
CHANGES = [
    ("write", {"file_path": "new.txt", "content": "x\n"}),
    ("edit", {"file_path": "a.txt", "old_string": "hello", "new_string": "bye"}),
    ("multi_edit", {"file_path": "a.txt", "edits": [{"old_string": "hello", "new_string": "bye"}]}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}),
]
LOOKS = [("read", {"file_path": "a.txt"}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "h"}), ("list", {})]
OBEYED = ["toolyard.json", ".git/config", ".git/hooks/pre-commit", ".npmrc", ".yarnrc.yml", ".cargo/config.toml"]


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yard = Yard(tmp_path / "work")
    yard.file("a.txt", "hello\n")
    return yard


def open_app(yard: Yard, *plugins: str, approver=None, **rest) -> AgentApplication:
    config = yard.config(*(plugins or ("files:more",)), **rest)
    return AgentApplication(config, yard.folder.parent / "sessions", approver=approver)


async def test_a_file_is_read_changed_and_read_again(yard: Yard):
    async with open_app(yard) as app:
        assert (await app.call_tool("read", {"file_path": "a.txt"})).text == "     1\thello"
        for old, new in (("hello", "bye"), ("bye", "hello again")):
            result = await app.call_tool("edit", {"file_path": "a.txt", "old_string": old, "new_string": new})
            assert result.ok, result
            assert f"-{old}\n+{new}" in result.text
        written = await app.call_tool("write", {"file_path": "a.txt", "content": "whole\n"})
        assert (written.ok, (yard.folder / "a.txt").read_text()) == (True, "whole\n")
        assert written.data
        assert written.data["diff"].startswith("--- a/a.txt\n+++ b/a.txt\n")


@pytest.mark.parametrize("path", [".git/info/exclude", "below/.git/x"])
async def test_what_would_be_lost_in_the_folder_that_git_has_inside_is_refused(yard: Yard, path: str):
    need_backend("bubblewrap")
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"
    async with open_app(yard, "files:all") as app:
        for tool, given in (("write", {"file_path": path, "content": "x"}), ("apply_patch", {"input": patch})):
            result = await app.call_tool(tool, given)
            assert (result.failure, "git's own folder" in result.text) == ("exit_code", True), result.text


async def test_each_conversation_must_have_read_a_file_itself(yard: Yard):
    change = {"file_path": "a.txt", "old_string": "hello", "new_string": "bye"}
    async with open_app(yard) as app:
        assert (await app.call_tool("read", {"file_path": "a.txt"}, session="one")).ok
        refused = await app.call_tool("edit", change, session="two")
        assert (refused.failure, "read it first" in refused.text) == ("exit_code", True)
        await app.end_session("one")
        assert "read it first" in (await app.call_tool("edit", change, session="one")).text
        assert (yard.folder / "a.txt").read_text() == "hello\n"


async def test_a_file_that_was_read_by_one_of_its_names_is_changed_by_another(yard: Yard):
    (yard.folder / "link").symlink_to("a.txt")
    async with open_app(yard) as app:
        assert (await app.call_tool("read", {"file_path": "link"})).ok
        for path, old, new in (("a.txt", "hello", "1"), (str(yard.folder / "a.txt"), "1", "2"), ("./a.txt", "2", "3")):
            result = await app.call_tool("edit", {"file_path": path, "old_string": old, "new_string": new})
            assert result.ok, result
    assert (yard.folder / "a.txt").read_text() == "3\n"


async def test_what_a_command_changed_is_read_again_first(yard: Yard):
    async with open_app(yard, "files:all", "shell:command") as app:
        await app.call_tool("read", {"file_path": "a.txt"})
        await app.call_tool("shell", {"command": "echo more >> a.txt"})
        refused = await app.call_tool("write", {"file_path": "a.txt", "content": "x"})
        assert "changed since it was read" in refused.text
        assert (yard.folder / "a.txt").read_text() == "hello\nmore\n"


async def test_an_image_comes_as_an_image(yard: Yard):
    (yard.folder / "dot.png").write_bytes(PNG)
    async with open_app(yard) as app:
        result = await app.call_tool("read", {"file_path": "dot.png"})
    assert result.attachments == (ImagePart(media_type="image/png", data=PNG),)


@pytest.mark.parametrize(("tool", "arguments"), LOOKS, ids=[tool for tool, _ in LOOKS])
async def test_looking_is_not_asked_about_and_reaches_no_further_than_look(yard: Yard, tool: str, arguments: dict):
    for preset in ("read-only", "sandboxed", "workspace"):
        async with open_app(yard, permissions={"preset": preset}) as app:
            result = await app.call_tool(tool, arguments)
            assert result.ok, (preset, result)
    need_backend("bubblewrap", "bubblewrap-pids")
    assert {line["reach"] for line in audit(yard)} == {"look"}


@pytest.mark.parametrize(("tool", "arguments"), CHANGES, ids=[tool for tool, _ in CHANGES])
async def test_changing_is_asked_about_only_where_looking_is_all_that_is_usual(yard: Yard, tool: str, arguments: dict):
    asked: list[str] = []

    async def approver(request, verdict) -> Answer:
        asked.append(f"{verdict.reach}: {await request.preview()}")
        return Answer(allowed=False, reason="no")

    async with open_app(yard, permissions={"preset": "read-only"}, approver=approver) as app:
        await app.call_tool("read", {"file_path": "a.txt"})
        assert (await app.call_tool(tool, arguments)).failure == "denied"
    assert len(asked) == 1
    assert asked[0].startswith("work: --- "), "a person sees a diff"
    assert (yard.folder / "a.txt").read_text() == "hello\n"
    for preset in ("sandboxed", "workspace"):
        yard.file("a.txt", "hello\n")
        (yard.folder / "new.txt").unlink(missing_ok=True)
        async with open_app(yard, permissions={"preset": preset}, approver=approver) as app:
            await app.call_tool("read", {"file_path": "a.txt"})
            assert (await app.call_tool(tool, arguments)).ok
    assert len(asked) == 1


@pytest.mark.parametrize("path", OBEYED)
async def test_what_is_obeyed_outside_cannot_be_written(yard: Yard, path: str):
    need_backend("bubblewrap", "bubblewrap-pids")
    subprocess.run([need("git"), "init", "-q", "."], check=True)
    async with open_app(yard) as app:
        before = (yard.folder / path).read_bytes() if (yard.folder / path).exists() else None
        await app.call_tool("read", {"file_path": path})
        patch = f"*** Begin Patch\n*** Add File: {path}\n+evil\n*** End Patch"
        for tool, arguments in (
            ("write", {"file_path": path, "content": "evil\n"}),
            ("apply_patch", {"input": patch}),
            ("move", {"old_path": "a.txt", "new_path": path}),
            ("remove", {"path": path}),
        ):
            result = await app.call_tool(tool, arguments)
            # Of the repository the tools have one of their own.
            assert result.failure == "exit_code" or path.startswith(".git/"), (tool, result)
    after = (yard.folder / path).read_bytes() if (yard.folder / path).exists() else None
    assert after == before
    assert (yard.folder / "a.txt").exists() or path.startswith(".git/")


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".npmrc", ".envrc", "toolyard.json"])
async def test_without_a_sandbox_what_later_commands_obey_is_asked_about(yard: Yard, path: str):
    patch = f"*** Begin Patch\n*** Add File: {path}\n+evil\n*** End Patch"
    settings = {"sandbox": {"mode": "off"}, "permissions": {"preset": "workspace"}}
    async with open_app(yard, **settings) as app:
        before = (yard.folder / "toolyard.json").read_text()
        for tool, arguments in (("write", {"file_path": path, "content": "evil"}), ("apply_patch", {"input": patch})):
            assert (await app.call_tool(tool, arguments)).failure == "denied"
        assert (await app.call_tool("write", {"file_path": "src/new.py", "content": "x"})).ok
    assert path == "toolyard.json" or not (yard.folder / path).exists()
    assert (yard.folder / "toolyard.json").read_text() == before


async def test_a_refusal_of_the_sandbox_says_what_to_do(yard: Yard):
    need_backend("bubblewrap", "bubblewrap-pids")
    async with open_app(yard) as app:
        await app.call_tool("read", {"file_path": "toolyard.json"})
        result = await app.call_tool("write", {"file_path": "toolyard.json", "content": "{}"})
    assert "obeyed outside the sandbox" in result.text
    assert "[sandbox: " in result.text


async def test_a_rule_about_a_path_holds_for_what_a_patch_names(yard: Yard):
    deny = [{"tool": "apply_patch", "path": "a.txt", "reason": "not this one"}]
    async with open_app(yard, permissions={"preset": "trusted", "deny": deny}) as app:
        refused = await app.call_tool("apply_patch", dict(CHANGES)["apply_patch"])
    assert (refused.failure, "not this one" in refused.text) == ("denied", True)
    assert (yard.folder / "a.txt").exists()


async def test_a_link_that_a_job_keeps_swapping_never_lets_a_write_out(yard: Yard):
    outside = yard.folder.parent / "outside"
    outside.mkdir()
    yard.file("d/f", "x")
    swap = f"while :; do mv d e; ln -s {outside} d; rm d; mv e d; done"
    async with open_app(yard, "files:all", "shell:session", sandbox={"mode": "off"}) as app:
        await app.call_tool("bash", {"command": swap, "background": True})
        made = 0
        for number in range(150):
            result = await app.call_tool("write", {"file_path": f"d/{number}", "content": "x"})
            made += result.ok
    assert os.listdir(outside) == []
    assert made, "some of them found the folder"


async def test_nothing_of_it_is_left_when_a_call_is_cancelled_or_the_application_ends(yard: Yard):
    yard.file("slow.txt", "x" * 60)
    async with open_app(yard) as app:
        without_ripgrep(await app._lifecycle.current())
        assert (await app.call_tool("list", {})).ok
        before = workers()
        call = asyncio.create_task(app.call_tool("grep", {"pattern": "(x+x+)+y"}, call_id="slow"))
        async with asyncio.timeout(PATIENCE):
            while not any(line["call_id"] == "slow" for line in audit(yard)):
                await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert [pid for pid in before if is_alive(pid)] == []
        assert (await app.call_tool("list", {"limit": 1})).ok, "the next call gets another process"
        after = workers()
        assert len(after) == 1
    assert [pid for pid in after if is_alive(pid)] == []


def audit(yard: Yard) -> list[dict]:
    files = sorted((yard.folder.parent / "sessions" / "audit").glob("*.ndjson"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def without_ripgrep(loaded) -> None:
    for tool in (plugin.tools[0] for one in loaded.sources() for plugin in one.source.plugins()):
        tool._ripgrep = lambda: None


def workers() -> list[int]:
    """The processes below us that do the work of file tools."""
    return [pid for pid in descendants(os.getpid()) if "toolyard.files.workspace.main" in command_of(pid)]


def descendants(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        for task in Path(f"/proc/{one}/task").glob("*"):
            try:
                below = [int(word) for word in (task / "children").read_text().split()]
            except OSError:
                continue
            found += below
            waiting += below
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


async def test_a_call_past_its_time_is_ended_and_the_next_works(yard: Yard):
    yard.file("slow.txt", "x" * 40 + "\n")
    async with open_app(yard) as app:
        without_ripgrep(await app._lifecycle.current())
        result = await app.call_tool("grep", {"pattern": "(x+x+)+y"}, timeout=1)
        assert (result.failure, "within 1 second" in result.text) == ("timeout", True)
        assert (await app.call_tool("read", {"file_path": "slow.txt"})).ok


@pytest.mark.parametrize("ours", [False, True], ids=["ripgrep", "own"])
async def test_a_search_is_the_same_with_and_without_ripgrep(yard: Yard, ours: bool):
    need("rg")
    yard.file(".gitignore", "ignored\n*.log\n")
    yard.file("ignored/a.txt", "needle\n")
    yard.file("logs/d.log", "needle\n")
    yard.file(".hidden/b.txt", "one needle\nother\n")
    yard.file("src/c.py", "x\nNeedle here\ny\n")
    (yard.folder / os.fsdecode(b"odd\xff.txt")).write_text("a needle\n")
    cases = [
        ({"pattern": "needle"}, ['"odd\\377.txt":1:a needle', ".hidden/b.txt:1:one needle"]),
        ({"pattern": "needle", "no_ignore": True, "glob": "a.*"}, ["ignored/a.txt:1:needle"]),
        ({"pattern": "needle", "ignore_case": True, "path": "src"}, ["src/c.py:2:Needle here"]),
        ({"pattern": "needle", "path": ".hidden", "output_mode": "count"}, [".hidden/b.txt:1"]),
        ({"pattern": "needle", "path": ".hidden", "output_mode": "files_with_matches"}, [".hidden/b.txt"]),
        ({"pattern": "Needle", "context": 1}, ["src/c.py-1-x", "src/c.py:2:Needle here", "src/c.py-3-y"]),
        ({"pattern": "e{2}d", "fixed_strings": True}, ["[nothing found]"]),
        ({"pattern": r"Needle here\ny", "multiline": True}, ["src/c.py:2:Needle here", "src/c.py:3:y"]),
        ({"pattern": "(?<=one )needle"}, [".hidden/b.txt:1:one needle"]),
        ({"pattern": "needle", "limit": 1, "path": ".hidden/b.txt"}, [".hidden/b.txt:1:one needle"]),
        ({"pattern": "needle", "glob": "*.{log,py}", "ignore_case": True}, ["src/c.py:2:Needle here"]),
        ({"pattern": "needle", "glob": "logs/*"}, ["[nothing found]"]),
        ({"pattern": "needle", "glob": "logs/*", "no_ignore": True}, ["logs/d.log:1:needle"]),
        ({"pattern": "needle", "glob": "!*.txt", "ignore_case": True}, ["src/c.py:2:Needle here"]),
        ({"pattern": "needle", "glob": "!.hidden", "output_mode": "count"}, ['"odd\\377.txt":1']),
        ({"pattern": "needle", "glob": "!.hidden/*", "output_mode": "count"}, ['"odd\\377.txt":1']),
        ({"pattern": "Needle", "path": "src", "glob": "/c.*"}, ["src/c.py:2:Needle here"]),
        ({"pattern": "Needle", "path": "src", "glob": "src/*"}, ["[nothing found]"]),
        ({"pattern": "Needle", "path": "src", "glob": f"{yard.folder}/src/**"}, ["src/c.py:2:Needle here"]),
        ({"pattern": "Needle", "glob": "include:x"}, ["[nothing found]"]),
    ]
    async with open_app(yard, "files:read") as app:
        if ours:
            without_ripgrep(await app._lifecycle.current())
        for arguments, expected in cases:
            result = await app.call_tool("grep", arguments)
            assert result.text.split("\n") == expected, arguments


@pytest.mark.parametrize("ours", [True, False])
async def test_what_is_no_file_is_not_waited_for_by_a_search(yard: Yard, ours: bool):
    os.mkfifo(yard.folder / "pipe")
    async with open_app(yard) as app, asyncio.timeout(PATIENCE):
        if ours:
            without_ripgrep(await app._lifecycle.current())
        found = await app.call_tool("grep", {"pattern": "x", "path": "pipe"}, timeout=2 * PATIENCE)
        everywhere = await app.call_tool("grep", {"pattern": "hello"}, timeout=2 * PATIENCE)
    assert "pipe is no" in found.text, found
    assert everywhere.text == "a.txt:1:hello"


async def test_a_search_that_ripgrep_does_not_finish_has_failed(yard: Yard):
    need("rg")
    with open(yard.folder / "endless", "wb") as file:
        file.truncate(1 << 40)
    async with open_app(yard) as app:
        found = await app.call_tool("grep", {"pattern": "x", "path": "endless"}, timeout=0.5)
    assert (found.failure, "did not finish" in found.text) == ("timeout", True), found


async def test_what_one_set_of_tools_has_read_another_may_change(yard: Yard):
    async with open_app(yard, "files:all", "path:${env:BUILTIN_PLUGINS}/claude-tools") as app:
        assert (await app.call_tool("read", {"file_path": "a.txt"})).ok
        change = {"command": "str_replace", "path": "a.txt", "old_str": "hello", "new_str": "bye"}
        changed = await app.call_tool("str_replace_based_edit_tool", change)
    assert (changed.ok, (yard.folder / "a.txt").read_text()) == (True, "bye\n"), changed


async def test_a_path_outside_is_refused_also_by_a_search(yard: Yard):
    (yard.folder / "up").symlink_to("..")
    async with open_app(yard, "files:read") as app:
        for tool, arguments in (
            ("grep", {"pattern": "x", "path": "up"}),
            ("glob", {"pattern": "*", "path": "../"}),
            ("list", {"path": "/etc"}),
            ("read", {"file_path": "up/secret"}),
        ):
            result = await app.call_tool(tool, arguments)
            assert (result.failure, "outside the workspace" in result.text) == ("exit_code", True), tool


async def test_a_pattern_may_begin_with_the_whole_path_of_the_folder_and_never_lead_out_of_it(yard: Yard):
    yard.file("src/c.py", "x\n")
    yard.file("src/d/e.py", "x\n")
    top = yard.folder
    cases = [
        ({"pattern": f"{top}/src/**/*.py"}, "src/d/e.py"),
        ({"pattern": f"{top}/src/d/*", "path": "src"}, "src/d/e.py"),
        ({"pattern": "/src/d/*"}, "src/d/e.py"),
        ({"pattern": f"{top}/none/*"}, "[nothing found]"),
        ({"pattern": f"{top}/a.txt", "path": "src"}, f"{top}/a.txt is not below src; say with path where to look"),
        ({"pattern": "../*", "path": "src"}, "a pattern cannot hold `..`; say with path where to look"),
        ({"pattern": f"{top}/src/../*", "path": "src"}, "a pattern cannot hold `..`"),
        ({"pattern": "/etc/*"}, "/etc/* is outside the workspace"),
    ]
    async with open_app(yard, "files:read") as app:
        for arguments, expected in cases:
            result = await app.call_tool("glob", arguments)
            assert expected in result.text, arguments
        refused = await app.call_tool("grep", {"pattern": "x", "path": "src", "glob": "../*"})
    assert (refused.failure, "cannot hold `..`" in refused.text) == ("exit_code", True)


async def test_a_turned_off_tool_is_not_there(yard: Yard):
    async with open_app(yard, "files:all", disabled_plugins=["write", "apply_patch"]) as app:
        names = {spec["name"] for spec in app.tool_specs(format="mcp")}
    assert names == {"read", "glob", "grep", "list", "edit", "multi_edit"}

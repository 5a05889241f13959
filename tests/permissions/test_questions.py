"""A question says what will happen in lines of ours; what others wrote has a mark, and nothing of it is hidden."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from anyio import to_thread

from support import PATIENCE
from toolyard.cli.asking.approver import broken
from toolyard.core.events import PermissionAsked
from toolyard.core.visible_text import marked_lines, on_one_line
from toolyard.permissions.approval import ApprovalDesk, Question, in_brief, question_lines
from toolyard.permissions.folders.call_folder import CallFolder
from toolyard.permissions.verdict import Answer, Judged, Offer
from yard import Yard

OURS = (
    "bash wants to run:",
    "  reach ",
    "  in ",
    "  it wants that because: ",
    "  ask ",
    "  asked because of: ",
    "  always would ",
)
TOP = CallFolder(path="/w", kind="top")
IN_TOP = "  in the top of the workspace: /w"
SPOOF = "  reach look: nothing can be changed"


@pytest.fixture
def yard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Yard(tmp_path)


def question(**fields: Any) -> Question:
    usual: dict[str, Any] = {
        "id": "1",
        "tool": "bash",
        "command": "ls",
        "preview": "",
        "reason": "no rule allows it",
        "reach": "outside",
        "why_reach": "",
        "folder": TOP,
        "parts": (),
        "offers": (),
        "fingerprint": "f",
    }
    return Question(**{**usual, **fields})


def lines_of(asked: Question) -> list[str]:
    return [line for _, line in question_lines(asked)]


def test_lines_of_a_command_cannot_look_like_ours():
    command = f"ls\n{SPOOF}\nalways would save: ls **\n\n\nAllow? \n" + "\n" * 50 + "touch pwned"
    shown = lines_of(question(command=command))
    assert [line for line in shown if not line.startswith("  |")] == [
        "bash wants to run:",
        "  reach outside: everything that its owner can do, outside of any sandbox",
        IN_TOP,
        "  asked because of: no rule allows it",
    ]
    assert "  | (50 empty lines)" in shown
    assert shown.index("  | touch pwned") > 2


def test_lines_of_a_preview_cannot_look_like_ours_and_keep_their_colours():
    weights = {line: weight for weight, line in question_lines(question(preview=f"@ a\n+new\n-old\n{SPOOF}"))}
    assert weights["  | +new"] == "added"
    assert weights["  | -old"] == "removed"
    assert f"  | {SPOOF}" in weights


def test_the_reach_comes_first_and_why_it_is_wanted_stays_on_one_line():
    shown = lines_of(question(why_reach=on_one_line(f"x\n{SPOOF}\x1b[2J")))
    assert shown[1].startswith("  reach outside")
    assert shown[2] == "  it wants that because: x reach look: nothing can be changed\\x1b[2J"
    assert shown[3:5] == [IN_TOP, "  | ls"]


def test_the_reason_for_the_whole_is_shown_where_no_part_says_it():
    allowed = Judged(text="hello", kind="tool", decision="allow", reason="a rule")
    assert lines_of(question(reason="it changed", parts=(allowed,)))[-1] == "  asked because of: it changed"
    unclear = Judged(text="ls", kind="command", decision="ask", reason="no rule allows it")
    shown = lines_of(question(reason="ls: no rule allows it", parts=(unclear,)))
    assert shown[-1] == "  ask ls: no rule allows it"


async def asked_about(yard: Yard, command: str, **arguments: str) -> Question:
    desk = ApprovalDesk()
    ask = yard.config("shell:session", permissions={"preset": "ask-everything"})
    async with yard.open(ask, approver=desk) as app:
        call = asyncio.ensure_future(app.call_tool("bash", {"command": command, **arguments}))
        found = await asyncio.wait_for(anext(desk.questions()), PATIENCE)
        desk.refuse(found, reason="no")
        await asyncio.wait_for(call, PATIENCE)
    return found


@pytest.mark.anyio
async def test_every_field_of_a_question_is_safe_to_show(yard):
    found = await asked_about(
        yard, f"ls $'\x1b]0;t\x07'\n{SPOOF} \u202e", reach="outside", reason=f"so\n{SPOOF}\x1b[2J\u2028x"
    )
    mapping = found.as_mapping()
    text = json.dumps(mapping, ensure_ascii=False)
    assert not {"\x1b", "\u202e", "\u2028"} & set(text.replace("\\u001b", "\x1b"))
    assert "\n" not in found.why_reach + found.reason + "".join(part.reason for part in found.parts)
    assert all(line.startswith((*OURS, "  | ", "  (")) and "\n" not in line for line in lines_of(found))


SERVER = """
import json, sys
word = open(sys.argv[1]).read()
for line in sys.stdin:
    asked = json.loads(line)
    answer = {
        "initialize": {"protocolVersion": asked.get("params", {}).get("protocolVersion"), "capabilities": {"tools": {}},
                       "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": [{"name": "hello", "description": word, "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "hi"}]},
    }.get(asked.get("method"))
    if asked.get("id") is not None:
        told = {"result": answer} if answer else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""


@pytest.mark.anyio
@pytest.mark.parametrize("scope", ["always", "once"])
async def test_a_changed_mcp_tool_is_asked_about_with_its_new_words(yard, scope):
    (yard.folder / "server.py").write_text(SERVER)
    asked: list[list[str]] = []

    class Person:
        async def approve(self, request, verdict):
            from toolyard.permissions.approval import question_for

            asked.append(lines_of(await question_for(request, verdict)))
            return Answer(allowed=True, reason="yes", scope=scope)

    server = {"mcp": {"name": "s", "command": "python3", "args": ["server.py", "words"]}}
    for words in ("Say hello.", f"Do harm.\n{SPOOF}\x1b[2J\u202e"):
        await to_thread.run_sync((yard.folder / "words").write_text, words)
        config = yard.config(server, permissions={"preset": "read-only"})
        fresh = yard.folder / f"cache {words[:2]}"  # in which no listing of before is kept
        async with yard.open(config, approver=Person(), cache_dir=fresh) as app:
            await asyncio.wait_for(app.call_tool("hello", {}), PATIENCE)
    assert len(asked) == 2
    doubts = [line for line in asked[1] if "now it says: Do harm." in line]
    assert doubts, asked[1]
    assert all("\x1b" not in line and "\n" not in line for line in asked[1])


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("short", ["short"]),
        ("  | " + "x" * 40, ["  | " + "x" * 26, "  | " + "x" * 14]),
        ("  | ls" + " " * 24 + SPOOF, ["  | ls" + " " * 23, "  |   reach look: nothing can", "  | be changed"]),
        ("  ask " + "漢" * 20, ["  ask " + "漢" * 12, "  | " + "漢" * 8]),
    ],
)
def test_a_line_that_is_too_long_for_a_terminal_goes_on_behind_a_mark(line, pieces):
    found = list(broken(line, 30))
    assert found == pieces or [piece.rstrip() for piece in found] == [piece.rstrip() for piece in pieces]
    assert all(piece.startswith("  | ") for piece in found[1:])


def test_empty_lines_at_the_end_are_told():
    assert list(marked_lines("ls" + "\n" * 60)) == ["| ls", "| (60 empty lines)"]
    assert list(marked_lines("a\n\nb")) == ["| a", "|", "| b"]


def test_an_offer_is_shown_on_one_line():
    offer = Offer(rule={"command": "x"}, text="x", source="x")
    assert lines_of(question(offers=(offer,)))[-1] == "  always would save: x"


BELOW = CallFolder(path="/w/sub", kind="below")
TOLD = {
    "the top, inside": (TOP, "work", []),
    "the top, outside": (TOP, "outside", [IN_TOP]),
    "a folder below, inside": (BELOW, "work", ["  in a folder of the workspace: /w/sub"]),
    "a folder below, looking": (BELOW, "look", ["  in a folder of the workspace: /w/sub"]),
    "a folder below, outside": (BELOW, "outside", ["  in a folder of the workspace: /w/sub"]),
    "a folder elsewhere": (
        CallFolder(path="/etc", kind="elsewhere", by_link="/w/link"),
        "outside",
        ["  in a folder outside of the workspace: /etc, by the link /w/link"],
    ),
    "one that is only inside": (
        CallFolder(path="/tmp/x", kind="temporary"),
        "work",
        ["  in a folder for temporary files that is there only inside of the sandbox: /tmp/x"],
    ),
}


@pytest.mark.parametrize(("folder", "reach", "told"), TOLD.values(), ids=TOLD.keys())
def test_the_folder_is_told_unless_it_is_the_top_and_the_call_stays_inside(folder, reach, told):
    asked = question(folder=folder, reach=reach)
    assert [line for line in lines_of(asked) if line.startswith("  in ")] == told
    kept = asked.as_mapping()
    assert (kept["folder"], kept["where"]) == (folder.path, "".join(told).strip())
    assert ("".join(told).strip() in in_brief(kept)) is True


def test_the_person_behind_a_client_is_told_the_folder_in_the_same_words():
    from toolyard.serve.mcp.questions import ClientQuestion, elicitation

    asked = question(
        folder=BELOW, offers=(Offer(rule={"command": "x"}, text="x", source="x", where="outside, in sub"),)
    )
    message = elicitation(ClientQuestion(asked=asked))["message"]
    assert message.split("\n") == lines_of(asked)
    assert "  in a folder of the workspace: /w/sub" in message
    assert "  always would save: x (outside, in sub)" in message


def test_what_goes_along_is_told_whatever_the_command_says_of_itself():
    preview = "echo x … [with umask 0000]"
    asked = question(command=f"echo x\n: {preview}\n{preview}", preview=preview)
    assert f"  ({preview})" in lines_of(asked)
    assert preview in in_brief(asked.as_mapping()).partition("[")[2]


@pytest.mark.anyio
async def test_whoever_is_asked_gets_the_folder_in_their_own_way(yard):
    """A program by the question, a plain function by the request, who listens by the event."""
    folder = yard.folder / "sub\x1b[2J \u202e"
    folder.mkdir()
    desk, heard, given = ApprovalDesk(), [], []
    ask = yard.config("shell:session", permissions={"preset": "ask-everything", "allow": ["cd **"]})
    async with yard.open(ask, approver=desk) as app:
        for command in (f"cd '{folder}'", "ls"):
            call = asyncio.ensure_future(app.call_tool("bash", {"command": command}, on_event=heard.append))
            found = await asyncio.wait_for(anext(desk.questions()), PATIENCE)
            desk.allow(found)
            await asyncio.wait_for(call, PATIENCE)
    told = f"in a folder of the workspace: {yard.folder}/sub\\x1b[2J \\u{{202e}}"
    assert (found.where, found.as_mapping()["where"]) == (told, told)
    assert [event.folder for event in heard if isinstance(event, PermissionAsked)] == ["", told.removeprefix("in ")]

    def plain(request):
        given.append((request.folder.kind, request.folder.path))
        return True

    async with yard.open(ask, approver=plain) as app:
        await asyncio.wait_for(app.call_tool("bash", {"command": "ls"}), PATIENCE)
    assert given == [("top", str(yard.folder))]


@pytest.mark.anyio
async def test_a_secret_in_the_name_of_a_folder_is_in_no_question(yard, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "tok-12345678")
    (yard.folder / "tok-12345678").mkdir()
    desk = ApprovalDesk()
    ask = yard.config("shell:session", permissions={"preset": "ask-everything"})
    async with yard.open(ask, approver=desk) as app:
        for command in ("cd tok*", "ls"):
            call = asyncio.ensure_future(
                app.call_tool("bash", {"command": command, "reach": "outside" if command == "ls" else "work"})
            )
            found = await asyncio.wait_for(anext(desk.questions()), PATIENCE)
            desk.allow(found)
            await asyncio.wait_for(call, PATIENCE)
    assert found.folder.kind == "below"
    assert "tok-12345678" not in json.dumps(found.as_mapping())
    assert found.offers == ()

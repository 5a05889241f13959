"""Reach: how far a call may go, who decides that, and that a sandbox enforces it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from support import CommandLine, need_backend
from toolyard.app import AgentApplication
from toolyard.core.reach import NAMED_REACHES
from toolyard.permissions.verdict import ALLOWED, Answer
from yard import Yard

pytestmark = pytest.mark.anyio
TOOLS = ["shell:command", "shell:session"]
NAMES = {"shell:command": "shell", "shell:session": "bash"}


@pytest.fixture
def yard(tmp_path):
    """The workspace, with its configuration; other folders are beside it."""
    (tmp_path / "work").mkdir()
    return Yard(tmp_path / "work")


@pytest.fixture(autouse=True)
def workspace(yard, monkeypatch):
    need_backend("bubblewrap", "bubblewrap-pids")
    yard.file("a.txt", "hello\n")
    monkeypatch.chdir(yard.folder)
    return yard.folder


@pytest.fixture
def beside(yard):
    return yard.folder.parent


def files(workspace):
    return sorted({*os.listdir(workspace)} - {"toolyard.json"})


def open_app(yard, *plugins, approver=None, **permissions):
    config = yard.config(*plugins, permissions=permissions)
    return AgentApplication(config, yard.folder.parent / "sessions", approver=approver)


def audit(yard):
    logs = (yard.folder.parent / "sessions/audit").iterdir()
    lines = [json.loads(line) for file in logs for line in file.read_text().splitlines()]
    return [line for line in sorted(lines, key=lambda line: line["seq"]) if line["event"] == "end"]


class Approver:
    """Says yes, and remembers what it was asked."""

    def __init__(self, **answer) -> None:
        self.asked = []
        self.answer = answer

    async def approve(self, request, verdict):
        self.asked.append((request.plan.command, verdict.reach, request.plan.why_reach, await request.preview()))
        return Answer(allowed=True, reason="yes", **self.answer)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("preset", "command", "reach"),
    [("read-only", "cat a.txt", "look"), ("workspace", "touch b", "work"), ("trusted", "touch b", "work")],
)
async def test_E01_the_preset_decides_the_reach_and_the_audit_line_has_it(yard, tool, preset, command, reach):
    async with open_app(yard, tool, preset=preset) as app:
        assert (await app.call_tool(NAMES[tool], {"command": command})).ok
    assert [(line["decision"], line["reach"]) for line in audit(yard)] == [("allow", reach)]


async def test_E01_what_runs_in_the_application_is_outside_and_asked_about_under_read_only(yard):
    yard.file("../greet.py", "from toolyard import tool\n\n@tool\ndef greet() -> str:\n    return 'hi'\n")
    async with open_app(yard, f"path:{yard.folder.parent / 'greet.py'}", preset="workspace") as app:
        assert (await app.call_tool("greet", {})).text == "hi"
    async with open_app(yard, f"path:{yard.folder.parent / 'greet.py'}", preset="read-only") as app:
        assert (await app.call_tool("greet", {})).failure == "denied"
    assert [(line["decision"], line["reach"]) for line in audit(yard)] == [("allow", "outside"), ("deny", "outside")]


@pytest.mark.parametrize("tool", TOOLS)
async def test_E01_a_rule_for_a_reach_raises_and_lowers(yard, workspace, tool):
    rules = [{"command": "touch **", "reach": "work"}, {"command": "python3 -c **", "reach": "look"}]
    async with open_app(yard, tool, preset="read-only", allow=rules) as app:
        assert (await app.call_tool(NAMES[tool], {"command": "touch by-rule"})).exit_code == 0
    exact = {"command": "python3 -c \"open('lowered', 'w')\"", "reach": "look"}
    async with open_app(yard, tool, preset="workspace", allow=[exact]) as app:
        result = await app.call_tool(NAMES[tool], {"command": exact["command"]})
        assert "Read-only file system" in result.text
    assert files(workspace) == ["a.txt", "by-rule"]
    assert [line["reach"] for line in audit(yard)] == ["work", "look"]


@pytest.mark.parametrize("tool", TOOLS)
async def test_E01_a_line_whose_parts_may_reach_differently_is_asked_about(yard, workspace, tool):
    approver = Approver()
    rules = [{"command": "touch **", "reach": "work"}]
    async with open_app(yard, tool, approver=approver, preset="read-only", allow=rules) as app:
        assert (await app.call_tool(NAMES[tool], {"command": "cat a.txt && touch b"})).exit_code == 0
    assert [(command, reach) for command, reach, _, _ in approver.asked] == [("cat a.txt && touch b", "work")]


@pytest.mark.parametrize("tool", TOOLS)
async def test_E01_what_only_passes_text_on_reaches_as_far_as_the_rest_of_its_line(yard, workspace, tool):
    rules = [{"command": "touch **", "reach": "work"}]
    lines = ["touch b 2>&1 | tail -5", "echo start; touch c | grep -v x | sort | uniq -c", "cd . && touch d"]
    approver = Approver()
    async with open_app(yard, tool, approver=approver, preset="read-only", allow=rules) as app:
        for line in lines:
            assert (await app.call_tool(NAMES[tool], {"command": line})).failure in (None, "exit_code")
        assert approver.asked == []
        for line in ("touch e; head a.txt", "touch f; printenv", "touch g; jq -n env"):
            await app.call_tool(NAMES[tool], {"command": line})
    assert [reach for _, reach, _, _ in approver.asked] == ["work"] * 3
    assert {"b", "c", "d"} <= {*files(workspace)}


async def test_E01_outside_temporary_files_are_everybodys_and_text_that_is_passed_on_may_be_secret(yard):
    rules = [{"command": "touch a.txt", "reach": "outside"}]
    async with open_app(yard, "shell:command", preset="workspace", allow=rules) as app:
        assert (await app.call_tool("shell", {"command": "touch a.txt"})).ok
        for line in ("touch a.txt > /tmp/toolyard-outside", "touch a.txt; echo $SECRET"):
            assert (await app.call_tool("shell", {"command": line})).failure == "denied"
    assert not os.path.exists("/tmp/toolyard-outside")
    assert audit(yard)[0]["reach"] == "outside"


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("tool", TOOLS)
async def test_E02_temporary_files_of_the_sandbox_are_nobody_elses_and_need_no_question(yard, beside, tool, preset):
    (beside / "other").write_text("canary\n")
    lines = [
        "echo x > /tmp/x && cat /tmp/x",
        "mkdir -p /tmp/w && cp a.txt /tmp/w/ && cat /tmp/w/*.txt",
        "echo y | tee /var/tmp/y; cd /tmp && cat x",
    ]
    async with open_app(yard, tool, preset=preset) as app:
        for line in lines:
            result = await app.call_tool(NAMES[tool], {"command": line})
            assert result.ok, result.text
        assert "root:" not in (await app.call_tool(NAMES[tool], {"command": "cat /tmp/.*/etc/passwd"})).text
        for line in ("cat /tmp/../etc/passwd", "git -C /tmp status"):
            assert (await app.call_tool(NAMES[tool], {"command": line})).failure == "denied", line
        # What is beside the workspace is not to be seen, even where both are among temporary files.
        shown = await app.call_tool(NAMES[tool], {"command": f"cat {beside}/other"})
        assert "canary" not in shown.text
    assert not os.path.exists("/tmp/w/a.txt")


HIDDEN_WORD = "$(echo bG4= | base64 -d)"
"""A command that no reader of the line sees, so that it gets a closed look."""


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("tool", TOOLS)
async def test_E02_a_link_among_temporary_files_leads_no_unasked_line_out_of_the_workspace(yard, tool, preset):
    with tempfile.TemporaryDirectory(dir=Path.home()) as folder:
        Path(folder, "doc.txt").write_text("canary\n")
        there = f'd="$(echo {base64.b64encode(folder.encode()).decode()} | base64 -d)"'
        async with open_app(yard, tool, preset=preset, allow=["ln **"]) as app:

            async def run(line: str, **more: str):
                return await app.call_tool(NAMES[tool], {"command": line, **more})

            await run(f'{there}; {HIDDEN_WORD} -s "$d/doc.txt" /tmp/made')
            assert "canary" not in (await run("mkdir -p x && cat /tmp/made")).text
            assert (await run(f"ln -s {folder} /tmp/d; ln -s {folder}/doc.txt /tmp/l")).ok
            assert "doc.txt" in (await run("ls -l /tmp")).text, "the link is there"
            for line in (
                *(
                    "cat /tmp/l",
                    "cat /tmp/d/doc.txt",
                    "grep -R . /tmp/d",
                    "cat < /tmp/l",
                    "cd /tmp && cat l",
                    "cat /tmp/*",
                ),
                *("cp /tmp/l copy.txt; cat copy.txt", "cp -L /tmp/d/* .; cat doc.txt", "mkdir -p x && head /tmp/l"),
                *("x=$(cat /tmp/l); echo $x", "cd /tmp/d; cat doc.txt"),
            ):
                assert "canary" not in (await run(line)).text, line
            assert "canary" not in (await run("cat /tmp/l", reach="look")).text
            assert (await run("echo kept > /tmp/out")).ok
            assert "kept" in (await run("cat /tmp/out")).text


@pytest.mark.parametrize("how", [f"{HIDDEN_WORD} -s a.txt /tmp/l", "$(echo bXY= | base64 -d) /tmp/given /tmp/l"])
async def test_E02_a_closed_look_neither_makes_nor_moves_links(yard, how):
    need_backend("landlock")
    async with open_app(yard, "shell:command", preset="workspace", allow=["ln **"]) as app:
        assert (await app.call_tool("shell", {"command": "ln -s a.txt /tmp/given"})).ok
        assert "ermission denied" in (await app.call_tool("shell", {"command": how})).text
        assert "/tmp/l" not in (await app.call_tool("shell", {"command": "ls -d /tmp/*"})).text


async def test_E01_what_an_approved_line_does_in_a_second_shell_is_not_the_sessions(yard):
    yard.file("evil.sh", "cat() { echo mine; }\n")
    async with open_app(yard, "shell:session", approver=Approver(), preset="read-only") as app:
        assert (await app.call_tool("bash", {"command": "source ./evil.sh; touch b"})).ok
    approver = Approver()
    async with open_app(yard, "shell:session", approver=approver, preset="read-only") as app:
        await app.call_tool("bash", {"command": "source ./evil.sh; touch b"})
        asked = len(approver.asked)
        assert (await app.call_tool("bash", {"command": "cat a.txt"})).text.strip() == "hello"
        assert len(approver.asked) == asked == 1


HARM = [
    "touch made",
    "echo x > a.txt",
    "rm -f a.txt",
    "mkdir d",
    "chmod 777 a.txt",
    "ln -s a.txt l",
    "mv a.txt b.txt",
    "python3 -c \"open('made', 'w')\"",
    "git init . ; git config --global user.name x",
    "cp a.txt ~/made",
    "touch ~/made",
    "touch -d 2001-01-01 a.txt",
    "truncate -s 0 a.txt",
]


@pytest.mark.parametrize("tool", TOOLS)
async def test_E02_with_the_reach_look_nothing_can_be_changed_but_temporary_files(
    yard, workspace, beside, monkeypatch, tool
):
    home = beside / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (workspace / "sub").mkdir()

    def everything():
        found = sorted(path for path in beside.rglob("*") if "sessions" not in path.parts)
        return [(path, os.lstat(path)[:4], os.lstat(path).st_mtime_ns, os.lstat(path).st_ctime_ns) for path in found]

    # Everything is allowed, so that nothing but the sandbox is in the way.
    async with open_app(yard, tool, preset="trusted") as app:
        await app.call_tool(NAMES[tool], {"command": "true"})  # with its sandbox come mount points
        before = everything()
        for command in HARM:
            await app.call_tool(NAMES[tool], {"command": command, "reach": "look"})
        assert everything() == before
        network = "(exec 3<>/dev/tcp/127.0.0.1/22) || echo no network"
        assert "no network" in (await app.call_tool(NAMES[tool], {"command": network, "reach": "look"})).text
        written = await app.call_tool(
            NAMES[tool],
            {"command": "echo kept > /tmp/out; cat /tmp/out; mktemp >/dev/null && echo made", "reach": "look"},
        )
        assert "kept\nmade" in written.text


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
@pytest.mark.parametrize("tool", TOOLS)
async def test_E02_a_line_that_nobody_vouches_for_sees_the_workspace_and_programs_alone(
    yard, beside, tool, preset, monkeypatch
):
    home = beside / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for path in (beside / "neighbour.txt", home / "diary.txt"):
        path.write_text("not for you\n")
    (yard.file("ran", "#!/bin/sh\necho ran\n")).chmod(0o755)
    found = "../*.txt $ENV{HOME}/* $ENV{HOME}/.* /home/* /srv/* /opt/* /mnt/* /var/log/* /etc/passwd /etc/hosts"
    lines = {
        "perl -ne print a.txt": "hello",
        f'perl -e \'print "<$_>" for grep {{ -f }} glob("{found}"); print "none"\'': "none",
        f"read PATH <<< {yard.folder}:$PATH; ran; echo $?": "126",
        "x=$(perl -e 'print 6 * 7'); echo $x": "42",
    }
    async with open_app(yard, tool, preset=preset) as app:
        for line, expected in lines.items():
            result = await app.call_tool(NAMES[tool], {"command": line})
            assert expected in result.text, line
            assert "<" not in result.text, line
            assert "not for you" not in result.text
        if tool == "shell:session":
            assert (await app.call_tool("bash", {"command": "echo $x"})).text == "42\n"
    assert [(line["reach"], line["closed"]) for line in audit(yard)[:4]] == [("look", True)] * 4
    assert files(yard.folder) == ["a.txt", "ran"]


@pytest.mark.parametrize("tool", TOOLS)
async def test_E02_E03_temporary_files_are_the_same_for_both_reaches(yard, tool):
    async with open_app(yard, tool, preset="trusted") as app:
        await app.call_tool(NAMES[tool], {"command": "echo from-work > /tmp/out", "reach": "work"})
        seen = await app.call_tool(
            NAMES[tool], {"command": "cat /tmp/out; echo from-look > /tmp/back", "reach": "look"}
        )
        assert "from-work" in seen.text
        back = await app.call_tool(NAMES[tool], {"command": "cat /tmp/back", "reach": "work"})
        assert "from-look" in back.text


@pytest.mark.parametrize("tool", TOOLS)
async def test_E02_nobody_who_looks_puts_something_in_the_place_of_a_workspace_among_temporary_files(
    yard, workspace, tool
):
    if not str(workspace).startswith("/tmp/"):
        pytest.skip("temporary files of tests are elsewhere")
    top = "/".join(str(workspace).split("/")[:3])
    replacing = f"mv {top} /tmp/moved; mkdir -p {workspace}; echo planted > {workspace}/a.txt"
    async with open_app(yard, tool, approver=Approver(), preset="read-only") as app:
        for command, reach in (("true", "work"), (replacing, "look")):
            await app.call_tool(NAMES[tool], {"command": command, "reach": reach})
        seen = await app.call_tool(NAMES[tool], {"command": f"cat a.txt {workspace}/a.txt", "reach": "work"})
    assert "planted" not in seen.text
    assert seen.text.count("hello") == 2


async def test_E02_what_comes_before_any_verdict_changes_nothing(yard, workspace):
    """`schema` and `preview` of a bash tool run with the reach look, whatever the call may do."""
    script = yard.tool("probe", run="touch ran; echo done", cases="preview) touch previewed; echo shown;;")
    script.write_text(script.read_text().replace("schema)", "schema) touch listed 2>/dev/null || true;", 1))
    async with open_app(yard, f"bash:{script}", preset="trusted") as app:
        assert await app.preview_tool("probe", {}) == ""
        assert (await app.call_tool("probe", {})).ok
    assert files(workspace) == ["a.txt", "probe.bash", "ran"]


@pytest.mark.parametrize("tool", TOOLS)
async def test_E03_with_the_reach_work_only_the_workspace_can_be_changed(yard, workspace, beside, monkeypatch, tool):
    neighbour, home = yard.file("../neighbour/n.txt", "n\n"), beside / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    async with open_app(yard, tool, preset="trusted") as app:
        for path in (neighbour, neighbour.parent / "new", home / "new", yard.folder / "toolyard.json"):
            await app.call_tool(NAMES[tool], {"command": f"echo x >> '{path}'; rm -f '{path}'"})
        await app.call_tool(
            NAMES[tool], {"command": "echo x > made; mkdir -p .git/hooks; echo x > .git/hooks/post-commit"}
        )
    assert neighbour.read_text() == "n\n"
    assert sorted(os.listdir(neighbour.parent)) == ["n.txt"]
    assert "permissions" in (yard.folder / "toolyard.json").read_text()
    assert (workspace / "made").read_text() == "x\n"
    assert not (workspace / ".git" / "hooks").exists()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("preset", ["read-only", "workspace", "trusted", "ask-everything"])
async def test_E04_outside_is_asked_about_with_its_reason_and_refused_where_nobody_is(yard, beside, preset, tool):
    arguments = {
        "command": "echo out > ../outside.txt",
        "reach": "outside",
        "reason": "it must be beside the workspace",
    }
    async with open_app(yard, tool, preset=preset) as app:
        refused = await app.call_tool(NAMES[tool], arguments)
        assert refused.failure == "denied"
        assert not (beside / "outside.txt").exists()
    approver = Approver()
    async with open_app(yard, tool, approver=approver, preset=preset) as app:
        assert (await app.call_tool(NAMES[tool], arguments)).exit_code == 0
    assert (beside / "outside.txt").read_text() == "out\n"
    assert [(reach, why) for _, reach, why, _ in approver.asked] == [("outside", arguments["reason"])]
    assert [(line["decision"], line["reach"], line["sandbox"]) for line in audit(yard)][1:] == [
        ("allow", "outside", "none")
    ]


@pytest.mark.parametrize("tool", TOOLS)
async def test_E04_a_rule_for_outside_allows_just_that(yard, beside, tool):
    rules = [{"command": "touch ../outside.txt", "reach": "outside"}]
    async with open_app(yard, tool, preset="workspace", allow=rules) as app:
        assert (
            await app.call_tool(NAMES[tool], {"command": "touch ../outside.txt", "reach": "outside"})
        ).exit_code == 0
        other = await app.call_tool(NAMES[tool], {"command": "touch ../other.txt", "reach": "outside"})
        assert other.failure == "denied"
    assert (beside / "outside.txt").exists()
    assert not (beside / "other.txt").exists()


async def test_E04_an_approved_line_of_a_live_session_runs_with_handed_over_state(yard, workspace):
    approver = Approver()
    async with open_app(yard, "shell:session", approver=approver, preset="read-only") as app:
        for command in ("mkdir -p sub", "x=5; export SHOWN=1; f() { touch by-function; }; PATH=/nowhere:$PATH"):
            await app.call_tool("bash", {"command": command})
        result = await app.call_tool("bash", {"command": "cd sub; echo $x $SHOWN; type -t f; touch there; x=6"})
        assert result.text == "5 1\n"
        after = await app.call_tool("bash", {"command": "pwd", "reach": "look"})
        assert after.text == f"{workspace}/sub\n"
        assert (await app.call_tool("bash", {"command": "echo $x", "reach": "look"})).text == "6\n"
    assert (workspace / "sub/there").exists()
    preview = approver.asked[2][3]
    assert "SHOWN='1'" in preview
    assert "x='5'" in preview


async def test_E04_an_approved_line_runs_in_the_folder_of_its_session_or_not_at_all(yard, workspace):
    async with open_app(yard, "shell:session", approver=Approver(), preset="read-only") as app:
        await app.call_tool("bash", {"command": "mkdir /tmp/own; cd /tmp/own", "reach": "look"})
        there = await app.call_tool("bash", {"command": "pwd; touch made", "reach": "work"})
        assert there.text == "/tmp/own\n"
        outside = await app.call_tool("bash", {"command": "pwd; touch made", "reach": "outside"})
        assert outside.failure == "denied"
        assert "'/tmp/own' is a folder for temporary files that is there only inside" in outside.text
        assert (await app.call_tool("bash", {"command": "ls", "reach": "look"})).text == "made\n"
        app.set_preset("workspace")
        assert (await app.call_tool("bash", {"command": "pwd"})).text == "/tmp/own\n"
    assert files(workspace) == ["a.txt"]


@pytest.mark.parametrize("preset", ["read-only", "workspace", "trusted"])
async def test_E04_what_is_written_to_a_job_reaches_as_far_as_the_job(yard, beside, preset):
    approver = Approver()
    async with open_app(yard, "shell:session", approver=approver, preset=preset) as app:
        await app.call_tool(
            "bash", {"command": "read x; touch ../$x", "reach": "outside", "interactive": True, "background": True}
        )
        for reach in ("work", "outside"):
            approver.answer = {"reach": reach}
            written = await app.call_tool("bash_job", {"action": "write", "id": "1", "text": f"by-{reach}\n"})
            assert written.failure == (None if reach == "outside" else "denied")
        await app.call_tool("bash_job", {"action": "wait", "id": "1"})
    assert (beside / "by-outside").exists()
    assert [line["reach"] for line in audit(yard) if line["tool"] == "bash_job"][1] == "outside"


async def test_E01_a_person_raises_a_running_session_and_lowers_it_again(yard, workspace):
    async with open_app(yard, "shell:session", preset="read-only") as app:
        assert (await app.call_tool("bash", {"command": "touch a1"})).failure == "denied"
        app.set_preset("workspace")
        assert (await app.call_tool("bash", {"command": "touch a2"})).ok
        app.set_preset(None)
        assert (await app.call_tool("bash", {"command": "touch a3"})).failure == "denied"
        assert (await app.call_tool("bash", {"command": "cat a.txt"})).text == "hello\n"
        with pytest.raises(ValueError, match="there is no preset 'nonsense'"):
            app.set_preset("nonsense")
    assert files(workspace) == ["a.txt", "a2"]
    assert [line["reach"] for line in audit(yard)] == ["work", "work", "work", "look"]


async def test_E01_an_answer_may_let_a_call_reach_less_but_never_more(yard, workspace, beside):
    async with open_app(yard, "shell:command", approver=Approver(reach="look"), preset="read-only") as app:
        assert "Read-only file system" in (await app.call_tool("shell", {"command": "touch b"})).text
    async with open_app(yard, "shell:command", approver=Approver(reach="outside"), preset="read-only") as app:
        await app.call_tool("shell", {"command": "touch b; touch ../b"})
    assert (workspace / "b").exists()
    assert not (beside / "b").exists()
    async with open_app(yard, "shell:command", approver=Approver(reach="work"), preset="workspace") as app:
        await app.call_tool("shell", {"command": "touch c ../c", "reach": "outside"})
    assert (workspace / "c").exists()
    assert not (beside / "c").exists()


async def test_E01_always_keeps_the_reach_that_was_approved_and_old_grants_mean_work(yard, workspace):
    async with open_app(yard, "shell:command", approver=Approver(scope="always"), preset="read-only") as app:
        await app.call_tool("shell", {"command": "touch b"})
    async with open_app(yard, "shell:command", preset="read-only") as app:
        assert (await app.call_tool("shell", {"command": "touch b"})).exit_code == 0
        assert (await app.call_tool("shell", {"command": "touch b", "reach": "outside"})).failure == "denied"
    from toolyard.permissions.grants import default_grants_file

    saved = json.loads(default_grants_file().read_text())
    assert [grant["rule"] for grant in saved["grants"]] == [{"command": "touch **"}]


def test_E04_a_reach_is_asked_for_at_the_command_line_too(yard, beside, workspace):
    yard.config("shell:command")
    words = [str(CommandLine.path), "exec", "touch ../beside", "--reach", "outside"]
    assert subprocess.run(words, cwd=workspace, timeout=60, check=False).returncode == 0
    assert (beside / "beside").exists()
    assert set(NAMED_REACHES) == {"look", "work", "outside"}


async def test_E03_looking_cannot_move_what_sessions_at_work_speak_with_us_by(yard, monkeypatch):
    """Temporary files are one folder for all reaches; where there is no better place, such folders are among them."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp")
    moving = "for way in /tmp/toolyard-*; do mv $way $way.moved; done; true"
    async with open_app(yard, "shell:session", "shell:command", preset="trusted") as app:
        assert (await app.call_tool("bash", {"command": "echo before"})).text == "before\n"
        await app.call_tool("shell", {"command": moving, "reach": "look"})
        seen = await app.call_tool("shell", {"command": "find /tmp -name '*.moved'", "reach": "look"})
        assert ".moved" not in seen.text
        assert (await app.call_tool("bash", {"command": "echo after", "restart": True})).ok
        assert (await app.call_tool("bash", {"command": "echo after"})).text == "after\n"


@pytest.mark.parametrize("line", ["[[ a ]]", "((1))"])
async def test_E01_what_no_rule_is_about_is_recorded_with_its_own_reason(yard, line):
    async with open_app(yard, "shell:command", preset="read-only") as app:
        await app.call_tool("shell", {"command": line})
    (end,) = audit(yard)
    assert (end["decision"], end["reach"]) == ("allow", "look")
    assert (end["rule"], end["reason"] != ALLOWED.reason) == (None, True)

"""A rule lets a line run outside for good, and its folder may be another by then: tried in real sandboxes."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from support import PATIENCE, need_backend
from toolyard.app import AgentApplication
from toolyard.core.tool import ToolCall
from toolyard.permissions.approval import question_for
from toolyard.permissions.grants import ANSWERED, GrantStore, default_grants_file
from toolyard.permissions.verdict import Answer
from yard import Yard

pytestmark = pytest.mark.anyio
AS = "git -c user.name=a -c user.email=a@b"


class Person:
    """Says what they are told to, and remembers what they were shown."""

    def __init__(self, *, allowed: bool = True, scope: str = "once") -> None:
        self.allowed, self.scope = allowed, scope
        self.asked = []

    async def approve(self, request, verdict):
        self.asked.append(await question_for(request, verdict))
        return Answer(allowed=self.allowed, reason="as told", scope=self.scope)

    @property
    def reasons(self) -> list[str]:
        return [question.reason for question in self.asked]


@pytest.fixture
def yard(tmp_path, monkeypatch):
    """A workspace that is a repository with an origin beside it."""
    need_backend("bubblewrap", "bubblewrap-pids")
    for name in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS"):  # of the make that runs the tests
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for line in ("git init -q --bare ../origin.git", "git init -q", f"{AS} commit -q --allow-empty -m x"):
        subprocess.run(line.split(), check=True, timeout=PATIENCE)
    for setting in (("remote.origin.url", "../origin.git"), ("push.autoSetupRemote", "true")):
        subprocess.run(["git", "config", *setting], check=True, timeout=PATIENCE)
    return Yard(work)


def open_app(yard: Yard, person: Person, *rules, plugins=("shell:session",), **more) -> AgentApplication:
    allow = [{"command": rule, "reach": "outside"} if isinstance(rule, str) else rule for rule in rules]
    config = yard.config(*plugins, permissions={"preset": "sandboxed", "allow": allow}, sandbox={"mode": "require"})
    return AgentApplication(config, yard.folder.parent / "sessions", approver=person, **more)


async def run(app, command: str, *, session: str | None = None, **arguments):
    return await asyncio.wait_for(app.call_tool("bash", {"command": command, **arguments}, session=session), PATIENCE)


async def outside(app, command: str, **more):
    return await run(app, command, reach="outside", reason="to try", **more)


async def test_a_rule_that_an_answer_kept_goes_on_to_hold_where_it_was_given(yard):
    person = Person(scope="always")
    for number in range(3):
        async with open_app(yard, person) as app:
            await run(app, f"{AS} commit -q --allow-empty -m {number}")
            assert (await outside(app, "git push")).ok
            assert (await run(app, "mkdir -p src && echo work > src/file && true")).ok
            assert (await outside(app, "git push")).ok
    assert len(person.asked) == 1, (
        "not in the next sessions either, and git has changed its own configuration meanwhile"
    )
    assert person.asked[0].offers[0].shown == "git push (outside, in the top of the workspace)"


@pytest.mark.parametrize("scope", ["always", "session"])
async def test_a_rule_that_an_answer_kept_holds_in_no_other_folder(yard, scope):
    person = Person(scope=scope)
    async with open_app(yard, person) as app:
        await outside(app, "echo done")
        await run(app, "mkdir -p sub other; ln -s . here; cd sub")
        person.scope = "once"
        await outside(app, "echo done")
        assert len(person.asked) == 2
        person.scope = scope
        await outside(app, "echo done")
        await outside(app, "echo done")
        assert len(person.asked) == 3, "it holds in that folder as well by now"
        person.scope = "once"
        for line in ("cd ../other", "cd .. && rm -r sub && ln -s other sub && cd sub"):
            await run(app, line)
            await outside(app, "echo done")
        assert len(person.asked) == 5, "a link in the place of the folder leads to another"
        await run(app, "cd ../here")
        await outside(app, "echo done")
        assert len(person.asked) == 5, "whatever the folder is called, it is the top"


async def test_a_line_that_goes_elsewhere_is_not_let_run_by_what_was_kept_here(yard):
    person = Person(scope="always")
    async with open_app(yard, person) as app:
        await run(app, "mkdir sub")
        for command in ("cd sub", f"cd {yard.folder} && echo done"):  # the first of which moves the session
            await outside(app, command)
        assert [offer.shown for offer in person.asked[-1].offers] == [
            f"cd {yard.folder} (outside, in the top of the workspace)",
            "echo done (outside, in the top of the workspace)",
        ]
        await run(app, "cd sub")
        await outside(app, f"cd {yard.folder} && echo done")
        await outside(app, "echo done")
        assert len(person.asked) == 2, "it goes to the top by itself"
        moving = ("cd sub && echo done", "(cd sub; echo done)", "pushd sub; echo done", "builtin cd sub; echo done")
        for line in moving:
            await outside(app, line, session="another")
            assert person.asked[-1].command == line
        several = ("echo done; cd sub; echo done", "builtin cd sub; echo done")
        for line in several:
            await outside(app, line, session="a third")
            assert not person.asked[-1].offers, line


@pytest.mark.parametrize(
    "line", ["git -C sub push", "git -C . -C sub push", 'x=sub; git -C "$x" push', "/usr/bin/git -C sub push"]
)
async def test_git_that_is_told_to_go_elsewhere_is_not_in_the_folder_of_the_rule(yard, line):
    subprocess.run(["git", "init", "-q", "sub"], check=True, timeout=PATIENCE)
    person = Person(allowed=False)
    async with open_app(yard, person, "git push", "git push **", "/usr/bin/git push **") as app:
        assert (await outside(app, "git -C . push")).ok
        assert (await outside(app, line)).failure == "denied"
    assert len(person.asked) == 1


async def test_a_rule_that_was_written_holds_in_the_top_of_the_workspace_or_where_it_says(yard):
    person = Person(allowed=False)
    for folder in ("sub", "deep/er"):
        (yard.folder / folder).mkdir(parents=True)
    rules = ["echo top", {"command": "echo below", "reach": "outside", "folder": "deep/*"}]
    async with open_app(yard, person, *rules) as app:
        assert (await outside(app, "echo top")).ok
        assert (await outside(app, "echo below")).failure == "denied"
        await run(app, "cd sub")
        assert (await outside(app, "echo top")).failure == "denied"
        await run(app, "cd ../deep/er")
        assert (await outside(app, "echo below")).ok


async def test_a_repository_that_a_tool_made_is_asked_about_with_the_reason(yard):
    person = Person(allowed=False)
    async with open_app(yard, person, {"command": "git status", "reach": "outside", "folder": "**"}) as app:
        assert (await outside(app, "git status")).ok
        await run(app, "git init -q sub; mkdir plain; cd plain")
        assert (await outside(app, "git status")).ok, "it is in the repository of its owner"
        await run(app, "cd ../sub")
        assert (await outside(app, "git status")).failure == "denied"
    assert len(person.asked) == 1
    assert "git obeys" in person.reasons[0]
    assert "was changed while tools could write it" in person.reasons[0]


async def test_a_repository_that_a_tool_moved_into_its_place_is_asked_about(yard):
    fixture = yard.folder / "fixture"
    subprocess.run(["git", "init", "-q", "--bare", str(fixture)], check=True, timeout=PATIENCE)
    (fixture / "dotgit").mkdir()
    for path in list(fixture.iterdir()):
        if path.name != "dotgit":
            path.rename(fixture / "dotgit" / path.name)
    (fixture / "dotgit" / "HEAD").rename(fixture / "head")
    (yard.folder / "sub").mkdir()
    person = Person(allowed=False)
    async with open_app(yard, person, {"command": "git log", "reach": "outside", "folder": "**"}) as app:
        await run(app, "mv fixture/head fixture/dotgit/HEAD; mv fixture/dotgit sub/.git; cd sub")
        assert (await outside(app, "git log")).failure == "denied"
    assert person.asked


OBEYED = {
    "make deploy": ("Makefile", "deploy:\n\t@echo deployed\n"),
    "./deploy.sh": ("deploy.sh", "#!/bin/sh\necho deployed\n"),
    "bash deploy.sh": ("deploy.sh", "echo deployed\n"),
    "env X=1 bash deploy.sh": ("deploy.sh", "echo deployed\n"),
    "make -sC deep deploy": ("deep/Makefile", "deploy:\n\t@echo deployed\n"),
}


@pytest.mark.parametrize("command", OBEYED)
async def test_what_a_line_obeys_makes_it_a_question_once_a_tool_may_have_changed_it(yard, command):
    from toolyard.files.accepted import accept

    name, text = OBEYED[command]
    (yard.folder / "deep").mkdir()
    (yard.folder / name).write_text(text)
    (yard.folder / name).chmod(0o755)
    person = Person(allowed=False)
    for _ in range(2):
        async with open_app(yard, person, command) as app:
            assert (await outside(app, command)).text == "deployed\n"
            await run(app, "echo of a tool > notes")
            assert (await outside(app, command)).ok, "other files of the folder are as they may be"
    async with open_app(yard, person, command) as app:
        await run(app, f"printf '\\n' >> {name}")
        assert (await outside(app, command)).failure == "denied"
    async with open_app(yard, person, command) as app:
        assert (await outside(app, command)).failure == "denied", "and so it stays in the next session"
        accept(str(yard.folder / name))
        assert (await outside(app, command)).text == "deployed\n", "until its owner has accepted what it says"
    assert len(person.asked) == 2
    assert all(os.path.basename(name) in reason for reason in person.reasons)


AT_WORK = {
    "a job": ("while :; do sleep 0.05; done", {"background": True}),
    "a process that was left behind": ("(setsid sleep 60 > /dev/null 2>&1 < /dev/null &)", {}),
    "a child of the shell": ("sleep 60 > /dev/null 2>&1 &", {}),
}


@pytest.mark.parametrize(("line", "how"), AT_WORK.values(), ids=AT_WORK.keys())
async def test_while_something_runs_inside_a_rule_alone_lets_nothing_run_outside(yard, line, how):
    person = Person(allowed=False)
    async with open_app(yard, person, "git push") as app:
        assert (await outside(app, "git push")).ok
        await run(app, line, **how)
        assert (await outside(app, "git push")).failure == "denied"
        assert "still runs inside" in person.reasons[0]
        stopped = "kill %1 2>/dev/null; pkill -f '^sleep 60' ; wait; while pgrep -f '^sleep 60' > /dev/null; do :; done"
        await run(app, stopped)
        if how:
            await asyncio.wait_for(app.call_tool("bash_job", {"action": "stop", "id": "1"}), PATIENCE)
        assert (await outside(app, "git push")).ok, "it has ended"
    assert len(person.asked) == 1


async def test_a_folder_that_nothing_inside_can_write_does_not_wait_for_it_to_end(yard):
    person = Person(allowed=False)
    elsewhere = str(Path.home())
    async with open_app(yard, person, {"command": "echo done", "reach": "outside", "folder": elsewhere}) as app:
        await run(app, "sleep 60", background=True)
        await run(app, f"cd {elsewhere}")
        result = await outside(app, "echo done")
    assert (result.ok, person.reasons) == (True, [])


async def test_calls_of_the_same_answer_change_nothing_unseen(yard):
    """They are permitted in their order, and may run side by side."""
    from toolyard.core.tool import ToolCall

    person = Person(allowed=False)
    (yard.folder / "Makefile").write_text("deploy:\n\t@sleep 0.2; cat word\n")
    (yard.folder / "word").write_text("deployed\n")
    async with open_app(yard, person, "make deploy", plugins=("shell:session", "shell:command")) as app:
        await run(app, "true")
        asked = {"command": "make deploy", "reach": "outside", "reason": "x"}
        changes = {"command": "printf 'deploy:\\n\\t@echo evil\\n' > Makefile; echo changed > word"}
        calls = [
            ToolCall(id="1", name="bash", arguments=asked),
            ToolCall(id="2", name="shell", arguments=changes),
            ToolCall(id="3", name="bash", arguments=asked),
        ]
        answers = await asyncio.wait_for(app.call_tools(calls), PATIENCE)
        first, second, third = (answers[call.id] for call in calls)
    assert (first.text, second.ok, third.failure) == ("deployed\n", True, "denied")
    assert "Makefile" in person.reasons[0] or "still runs" in person.reasons[0]


async def test_a_session_among_temporary_files_that_are_only_inside_runs_nothing_outside(yard):
    person = Person()
    async with open_app(yard, person) as app:
        await run(app, "mkdir /tmp/place && cd /tmp/place")
        refused = await outside(app, "make deploy")
        assert (refused.failure, person.asked) == ("denied", [])
        assert "'/tmp/place' is a folder for temporary files that is there only inside of the sandbox" in refused.text
        await run(app, f"cd {yard.folder}")
        assert (await outside(app, "echo done")).ok


async def test_options_and_umask_are_shown_or_stay_behind(yard):
    person = Person()
    (yard.folder / ".hidden").write_text("")
    kept = "rm -f made; touch made; stat -c %a made; echo .h* *; [[ -o noglob ]] && echo no patterns"
    async with open_app(yard, person, "ls -A", {"command": kept, "reach": "outside"}) as app:
        await run(app, "umask 007; shopt -s dotglob; export SEEN=1")
        asked = await outside(app, f"{kept}; echo asked")
        (question,) = person.asked
        assert "with umask 0007, options dotglob, SEEN='1'" in question.more
        assert question.as_mapping()["preview"] == question.preview
        assert asked.text.split("\n")[0] == "660"
        assert ".hidden" in asked.text.split("\n")[1].split()[1:]


@pytest.mark.parametrize("name", ["umask 007", "set -o noclobber", "shopt -s dotglob nullglob"])
async def test_where_nobody_is_asked_the_options_are_those_of_a_fresh_shell(yard, name):
    person = Person(allowed=False)
    (yard.folder / "look.sh").write_text("umask; text=1; env | grep ^text=; echo *; shopt -p dotglob; set +o | sort\n")
    line = ". ./look.sh"
    texts = []
    for change in ("true", name):
        async with open_app(yard, person, line) as app:
            await run(app, change)
            before = (await run(app, "umask; set +o; shopt -p dotglob nullglob; :")).text
            texts.append((await outside(app, line)).text)
            after = (await run(app, "umask; set +o; shopt -p dotglob nullglob; :")).text
            assert after == before, "the session keeps its own"
    assert texts[0] == texts[1]
    assert "umask" in texts[0] or "0" in texts[0]
    assert person.asked == []


async def test_a_variable_that_a_session_unset_or_changed_is_told_or_is_there(yard, monkeypatch):
    monkeypatch.setenv("DRY_RUN", "1")
    person = Person()
    async with open_app(yard, person, "printenv DRY_RUN") as app:
        for change in ("unset DRY_RUN", "DRY_RUN=0"):
            await run(app, change)
            assert (await outside(app, "printenv DRY_RUN")).text == "1\n"
            await run(app, "export DRY_RUN=1")
        assert person.asked == []
        await run(app, "unset DRY_RUN")
        await outside(app, "printenv DRY_RUN; true")
    assert "unset DRY_RUN" in person.asked[0].more


@pytest.mark.parametrize(
    "line",
    [
        "./deploy.sh",
        "make deploy",
        "sh deploy.sh",
        "npx hello",
        "cargo run",
        "echo done; ./deploy.sh",
        "GIT_SSH_COMMAND=./deploy.sh git push",
        "timeout 5 git push",
        "git bisect run ./deploy.sh",
        "git -c core.sshCommand=./deploy.sh push",
        "echo $(./deploy.sh)",
    ],
)
@pytest.mark.parametrize("scope", ["always", "session"])
async def test_no_answer_is_kept_for_a_line_that_does_outside_what_files_say(yard, line, scope):
    person = Person(scope=scope)
    for name in ("deploy.sh", "Makefile"):
        (yard.folder / name).write_text("deploy:\n\t@echo done\n" if name == "Makefile" else "echo done\n")
        (yard.folder / name).chmod(0o755)
    async with open_app(yard, person) as app:
        for _ in range(2):
            await outside(app, line)
    assert [question.offers for question in person.asked] == [(), ()]


async def test_an_answer_that_was_kept_before_for_such_a_line_asks_again(yard):
    (yard.folder / "deploy.sh").write_text("echo done\n")
    (yard.folder / "deploy.sh").chmod(0o755)
    grants = GrantStore(default_grants_file())
    rule = {"command": "./deploy.sh", "reach": "outside"}
    grants.add("allow", rule, workspace=str(yard.folder), source="./deploy.sh", by=ANSWERED)
    person = Person(allowed=False)
    async with open_app(yard, person) as app:
        assert (await outside(app, "./deploy.sh")).failure == "denied"
    assert "may be said by files that tools can write" in person.reasons[0]


async def test_a_program_of_the_workspace_that_PATH_leads_to_from_the_folder_is_asked_about(yard, monkeypatch):
    monkeypatch.setenv("PATH", f"./bin:{os.environ['PATH']}")
    person = Person(allowed=False)
    async with open_app(yard, person, "hello") as app:
        await run(app, "mkdir bin && printf '#!/bin/sh\\necho made\\n' > bin/hello && chmod +x bin/hello")
        assert (await outside(app, "hello")).failure == "denied"
    assert "PATH has" in person.reasons[0]


async def test_a_call_inside_does_not_wait_without_end_for_a_line_outside(yard):
    os.mkfifo(yard.folder / "input")
    async with open_app(yard, Person(allowed=False), "cat input") as app:
        line = asyncio.ensure_future(app.call_tool("bash", {"command": "cat input", "reach": "outside", "reason": "x"}))
        async with asyncio.timeout(PATIENCE):
            while not (work := app._lifecycle.loaded.host.children("work").sandbox).common.inside.is_held:
                await asyncio.sleep(0.01)
        call = ToolCall(id="x", name="bash", arguments={"command": "touch made"}, timeout=0.2)
        results = await asyncio.wait_for(app.call_tools([call], session="another"), PATIENCE)
        assert results["x"].failure == "denied"
        assert "has not ended" in results["x"].text
        assert not (yard.folder / "made").exists()
        (yard.folder / "input").write_text("said\n")
        assert (await asyncio.wait_for(line, PATIENCE)).text == "said\n"
        assert not work.common.inside.is_held


async def test_what_a_line_reads_or_writes_outside_by_a_link_of_a_tools_is_asked_about(yard):
    secret = yard.folder.parent / "secret"
    secret.write_text("secret")
    (yard.folder / "notes").write_text("notes\n")
    (yard.folder / "folder").mkdir()
    (yard.folder / "folder" / "notes").write_text("notes\n")
    person = Person(scope="always")
    async with open_app(yard, person) as app:
        lines = ("cat notes", "cat folder/notes")
        for line in (*lines, *lines):
            assert (await outside(app, line)).text == "notes\n"
        assert len(person.asked) == 2
        person.allowed = False
        await run(app, f"ln -sf {secret} notes; mv folder elsewhere; ln -s {secret.parent} folder")
        for line in lines:
            assert (await outside(app, line)).failure == "denied"
    assert "is a link that was made while tools could" in person.reasons[-1]

"""An application's tools in their sandbox: where it comes from, what it means, and what is said of it."""

from __future__ import annotations

import pytest

from support import need, need_backend, watched_channels
from yard import Yard, inhabit

pytestmark = pytest.mark.anyio


@pytest.fixture
def best() -> str:
    """The sandbox that this machine has."""
    return need_backend("bubblewrap", "bubblewrap-pids")


@pytest.fixture
def yard(tmp_path, monkeypatch, best) -> Yard:
    return Yard(inhabit(tmp_path, monkeypatch) / "project")


def write_to(*places) -> str:
    return "; ".join(f"echo x > {place}/made" for place in places) + "; true"


async def test_tools_are_kept_in_unless_the_configuration_says_otherwise(yard, best):
    home, work, outside = (yard.folder.parent / name for name in ("home", "work", "outside"))
    outside.mkdir()
    yard.tool(run=f"set +e; cat {home}/.ssh/key; {write_to(home, work, outside, yard.folder)}")
    async with yard.app("bash:probe.bash") as app:
        assert (await app.call_tool("probe", {})).text == ""
    assert [(place / "made").exists() for place in (home, work, outside, yard.folder)] == [False, True, False, True]
    assert {line["sandbox"] for line in yard.audit()} == {best}


async def test_off_means_off_and_every_line_says_so(yard):
    yard.tool(run=f"cat {yard.folder.parent}/home/.ssh/key")
    async with yard.app("bash:probe.bash", sandbox={"mode": "off"}) as app:
        assert (await app.call_tool("probe", {})).text == "secret"
    assert {line["sandbox"] for line in yard.audit()} == {"off"}


@pytest.mark.parametrize("plugin", ["shell:command", "shell:session"])
async def test_a_shell_is_in_the_same_sandbox(yard, plugin):
    tool = {"shell:command": "shell", "shell:session": "bash"}[plugin]
    yard.config(plugin)
    async with yard.open(yard.folder / "toolyard.json") as app:
        result = await app.call_tool(tool, {"command": "cat ~/.ssh/key; echo x > ~/made; echo in > in"})
    assert "secret" not in result.text
    assert not (yard.folder.parent / "home" / "made").exists()
    assert (yard.folder.parent / "work" / "in").exists()


async def test_the_kernel_is_asked_to_tell_of_folders_only_by_who_makes_more_than_a_call(yard):
    """To stop it at the end takes as long as a dozen looks."""
    (yard.folder.parent / "work" / "below" / ".git").mkdir(parents=True)
    before = watched_channels()
    async with yard.app("shell:command") as app:
        assert (await app.call_tool("shell", {"command": "touch made"})).ok
        assert watched_channels() == before
        for _ in range(3):
            assert (await app.call_tool("shell", {"command": "touch made"})).ok
        assert len(watched_channels() - before) == 1
    assert watched_channels() == before


async def test_the_configuration_the_store_and_the_audit_log_cannot_be_written(yard):
    config = yard.config("shell:command")
    script = f"""for file in {config} {yard.folder}/sessions/audit/*.ndjson {yard.folder}/sessions/audit.head; do
      echo x >> $file; rm -f $file; mv $file $file.gone; done; mv {yard.folder}/sessions gone; ls {yard.folder}"""
    async with yard.open(config) as app:
        result = await app.call_tool("shell", {"command": script})
        again = await app.call_tool("shell", {"command": "echo again"})
    assert result.data["stdout"].split() == ["sessions", "toolyard.json"]
    assert again.data["stdout"] == "again\n"
    assert len(yard.audit()) == 4


async def test_work_in_the_store_itself_leaves_the_log_alone(yard, monkeypatch):
    config = yard.config("shell:command")
    sessions = yard.folder / "sessions"
    sessions.mkdir()
    monkeypatch.chdir(sessions)
    async with yard.open(config) as app:
        result = await app.call_tool(
            "shell", {"command": "echo x > made; echo x > audit/x; echo x >> audit.head; ls audit; cat audit.head"}
        )
    assert (sessions / "made").exists()
    assert result.data["stdout"] == "", "what is locked outside cannot even be opened"
    assert not (sessions / "audit" / "x").exists()


@pytest.mark.parametrize("within", [True, False], ids=["in the store", "beside it"])
async def test_nothing_of_the_store_that_is_ours_can_be_read_written_made_or_removed(yard, monkeypatch, within):
    config = yard.config("shell:command")
    sessions = yard.folder / "sessions"
    sessions.mkdir()
    if within:
        monkeypatch.chdir(sessions)
    parts = {"audit/mine": "log", "audit.head": "head", "shell-history": "typed"}
    (sessions / "audit").mkdir()
    for name, text in parts.items():
        (sessions / name).write_text(text)
    script = f"""cd {sessions}
    for name in {" ".join(parts)}; do cat $name; echo x >> $name; echo x > $name; mv $name moved; rm -f $name; done
    ls audit; rm -rf audit; mkdir -p audit; echo x > audit/new; ln -s /etc audit/link; true"""
    async with yard.open(config) as app:
        printed = (await app.call_tool("shell", {"command": script})).data["stdout"]
    assert not any(text in printed for text in parts.values())
    assert {name: (sessions / name).read_text() for name in ("audit/mine", "shell-history")} == {
        "audit/mine": "log",
        "shell-history": "typed",
    }
    assert (sessions / "audit.head").read_text() not in ("x\n", "")
    assert not any((sessions / "audit" / name).exists() for name in ("new", "link"))
    assert not (sessions / "moved").exists()


async def test_in_the_store_itself_no_link_sends_what_is_kept_there_elsewhere(yard, monkeypatch):
    config = yard.config("shell:command", output={"limit_bytes": 1000, "spill": True})
    (sessions := yard.folder / "sessions").mkdir()
    monkeypatch.chdir(sessions)
    secrets = yard.folder.parent / "home" / ".ssh"
    script = (
        f"for name in outputs shell-history; do rm -rf $name; ln -sfn {secrets} $name; done; head -c 5000 /dev/zero"
    )
    async with yard.open(config) as app:
        await app.call_tool("shell", {"command": script})
    assert [path.name for path in secrets.iterdir()] == ["key"]
    assert not any((sessions / name).is_symlink() for name in ("outputs", "shell-history"))
    assert len(list((sessions / "outputs").iterdir())) == 1


async def test_rules_that_a_tool_makes_are_moved_away_and_it_is_told(yard):
    config = yard.config("shell:command").rename(yard.folder / "other.json")
    async with yard.open(config) as app:
        result = await app.call_tool("shell", {"command": "echo {} > toolyard.json"})
    work = yard.folder.parent / "work"
    assert f"it was moved to {work}/toolyard.json.from-sandbox" in result.text
    assert [path.name for path in work.iterdir()] == ["toolyard.json.from-sandbox"]


async def test_paths_of_the_configuration_start_where_it_is(yard):
    (yard.folder.parent / "cache").mkdir()
    yard.file("private/file", "private")
    settings = {"writable": ["../cache"], "hidden": ["private"], "readable": ["~/.ssh/key"]}
    yard.config("shell:command", sandbox=settings)
    script = f"cat {yard.folder}/private/file; echo x > {yard.folder.parent}/cache/made; cat ~/.ssh/key"
    async with yard.open(yard.folder / "toolyard.json") as app:
        result = await app.call_tool("shell", {"command": script})
    assert result.data["stdout"] == "secret"
    assert (yard.folder.parent / "cache" / "made").exists()


async def test_a_working_directory_of_an_agent_is_part_of_the_workspace(yard):
    place = yard.folder.parent / "place"
    place.mkdir()
    yard.config("shell:command", agents={"default": {"working_directory": str(place)}})
    async with yard.open(yard.folder / "toolyard.json") as app:
        await app.call_tool("shell", {"command": "echo x > made"})
    assert (place / "made").exists()


async def test_the_workspace_follows_the_application(yard, monkeypatch):
    other = yard.folder.parent / "other"
    other.mkdir()
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        await app.call_tool("shell", {"command": "echo x > made"})
        monkeypatch.chdir(other)
        result = await app.call_tool(
            "shell", {"command": f"echo x > made; echo x > {yard.folder.parent}/work/made2; pwd"}
        )
    assert result.data["stdout"] == f"{other}\n"
    assert (other / "made").exists()
    assert not (yard.folder.parent / "work" / "made2").exists()


async def test_another_setting_takes_effect_at_the_next_call(yard, best):
    script = {"command": "cat ~/.ssh/key"}
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        assert (await app.call_tool("shell", script)).data["stdout"] == ""
        yard.config("shell:command", sandbox={"mode": "off"})
        assert (await app.call_tool("shell", script)).data["stdout"] == "secret"
    assert [line["sandbox"] for line in yard.audit()] == [best, best, "off", "off"]


async def test_a_session_outlives_a_change_that_does_not_concern_its_sandbox(yard):
    yard.config("shell:session")
    async with yard.open(yard.folder / "toolyard.json") as app:
        await app.call_tool("bash", {"command": "x=kept"})
        yard.config("shell:session", something="else")
        assert (await app.call_tool("bash", {"command": "echo $x"})).text == "kept\n"


async def test_a_configuration_that_its_owner_replaces_is_protected_again(yard):
    config = yard.config("shell:command")
    async with yard.open(config) as app:
        await app.call_tool("shell", {"command": "true"})
        yard.config("shell:command", something="else").rename(yard.folder / "new")
        (yard.folder / "new").rename(config)
        result = await app.call_tool("shell", {"command": f"echo x > {config}"})
    assert "Read-only file system" in result.data["stderr"]


async def test_what_is_required_and_cannot_be_had_refuses_every_call_and_is_a_problem(yard, monkeypatch):
    bin = yard.folder.parent / "bin"
    bin.mkdir()
    (bin / "bash").symlink_to(need("bash"))
    monkeypatch.setenv("PATH", str(bin))  # where there is no bubblewrap
    yard.config("shell:command", sandbox={"mode": "require"})
    async with yard.open(yard.folder / "toolyard.json") as app:
        (problem,) = app.get_config_errors()
        result = await app.call_tool("shell", {"command": f"echo x > {yard.folder}/made"})
    assert (problem["type"], problem["line"] is not None) == ("sandbox_unavailable", True)
    assert "bwrap" in problem["detail"]
    assert result.failure == "denied"
    assert "required: attributes, protected, obeyed" in result.text
    assert not (yard.folder / "made").exists()
    assert [line["failure"] for line in yard.audit()] == ["denied"]


async def test_in_the_same_place_auto_goes_on_with_what_there_is_and_says_so(yard, monkeypatch):
    need_backend("landlock")
    bin = yard.folder.parent / "bin"
    bin.mkdir()
    (bin / "bash").symlink_to(need("bash"))
    monkeypatch.setenv("PATH", str(bin))
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        assert app.get_config_errors() == []
        assert (await app.call_tool("shell", {"command": "echo ran"})).data["stdout"] == "ran\n"
    assert {line["sandbox"] for line in yard.audit()} == {"landlock without attributes, protected, obeyed"}


@pytest.mark.parametrize(
    ("sandbox", "problem"),
    [
        ({"mode": "maybe"}, "config_type"),
        ({"properties": ["everything"]}, "config_type"),
        ({"hosts": ["https://example.com"]}, "sandbox_host"),
        ({"writable": "all"}, "config_type"),
        ({"mode": "off", "hiden": ["x"]}, "config_type"),
    ],
)
async def test_a_setting_that_does_not_fit_is_a_problem_and_no_reason_to_run_with_less(yard, sandbox, problem):
    yard.config("shell:command", sandbox=sandbox)
    async with yard.open(yard.folder / "toolyard.json") as app:
        (found,) = app.get_config_errors()
        result = await app.call_tool("shell", {"command": f"echo x > {yard.folder}/made"})
    assert (found["type"], found["line"] is not None) == (problem, True)
    if problem == "config_type":
        assert result.failure == "denied"
        assert f"the configuration of the sandbox is damaged ({yard.folder}/toolyard.json:" in result.text
        assert not (yard.folder / "made").exists()


async def test_a_wish_to_reach_a_host_is_on_record(yard):
    yard.config("shell:command", sandbox={"hosts": ["allowed.test"]})
    async with yard.open(yard.folder / "toolyard.json") as app:
        ask = r"printf 'GET http://evil.test/ HTTP/1.1\r\n\r\n' >&3; cat <&3"
        script = "exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}; " + ask
        result = await app.call_tool("shell", {"command": script})
    assert "403 Forbidden" in result.data["stdout"]
    (line,) = [line for line in yard.audit() if line["event"] == "network"]
    assert (line["host"], line["port"], line["decision"]) == ("evil.test", 80, "deny")


async def test_a_tool_that_runs_elsewhere_is_recorded_as_kept_in_by_nothing(yard):
    yard.tool(run="echo out")
    async with yard.app("bash:probe.bash") as app:
        tool = next(iter(app.tools()))
        tool.confined = False
        await app.call_tool("probe", {})
    assert {line["sandbox"] for line in yard.audit()} == {"none"}


async def test_other_processes_are_hidden_from_tools_where_that_is_wanted(yard):
    need_backend("bubblewrap-pids")
    yard.config("shell:command", sandbox={"hide_processes": True})
    async with yard.open(yard.folder / "toolyard.json") as app:
        result = await app.call_tool("shell", {"command": "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"})
    assert "pytest" not in result.data["stdout"]
    assert "cat /proc" in result.data["stdout"]
    assert {line["sandbox"] for line in yard.audit()} == {"bubblewrap-pids"}


@pytest.mark.parametrize(("preset", "reach"), [("read-only", "look"), ("workspace", "work")])
async def test_an_application_for_one_tool_has_its_keeper_on_the_way_as_soon_as_it_is_open(yard, preset, reach):
    config = yard.config("shell:command", permissions={"preset": preset})
    async with yard.open(config, only="shell:command") as app:
        children = app._lifecycle.loaded.host.processes.children
        assert [name for name in ("look", "work", "outside") if children[name].keeper._starting] == [reach]


async def test_where_no_control_group_can_be_had_processes_have_numbers_of_their_own(yard, monkeypatch):
    """So that the kernel ends all of them with the first."""
    monkeypatch.setattr("toolyard.runtime.sandbox_policy.can_end_groups", lambda: False)
    async with yard.app("shell:command") as app:
        sandbox = app._lifecycle.loaded.host.children("work").sandbox
        assert sandbox.policy.backends[0] == "bubblewrap-pids"


OBEYED = ("note.md", "prompt.md", "snippet.py", "runtime.py", "condition.py")


async def test_files_whose_text_or_code_is_obeyed_cannot_be_written(yard):
    for name in OBEYED:
        yard.file(name, "'own'")
    system = {
        "runtime_code": "runtime.py",
        "template": "{{A}}{{B}}",
        "variables": {
            "A": {"files": ["prompt.md"]},
            "B": {"code": "snippet.py", "condition": {"code": "condition.py"}},
            "C": {"code": "not-there-yet.py"},
        },
    }
    yard.config("shell:command", note="${file:note.md}", agents={"default": {"system_message": system}})
    names = " ".join((*OBEYED, "not-there-yet.py"))
    script = (
        f"cd {yard.folder}; for f in {names}; do echo planted > $f; rm -f $f; mv $f gone; ln -sf /etc/passwd $f; done"
    )
    async with yard.open(yard.folder / "toolyard.json") as app:
        await app.call_tool("shell", {"command": f"{script}; echo x > free"})
    assert (yard.folder / "free").exists()
    assert {name: (yard.folder / name).read_text() for name in OBEYED} == dict.fromkeys(OBEYED, "'own'")
    assert not (yard.folder / "not-there-yet.py").is_file()


async def test_what_the_configuration_opens_by_name_can_be_written_though_it_is_obeyed(yard):
    yard.file("notes/memory.md", "old")
    system = {"template": "{{A}}", "variables": {"A": {"files": ["notes/memory.md"]}}}
    yard.config("shell:command", agents={"default": {"system_message": system}}, sandbox={"writable": ["notes"]})
    async with yard.open(yard.folder / "toolyard.json") as app:
        await app.call_tool("shell", {"command": f"echo new > {yard.folder}/notes/memory.md"})
    assert (yard.folder / "notes" / "memory.md").read_text() == "new\n"

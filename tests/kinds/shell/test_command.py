"""The one-shot shell as a tool: what it plans, which bash it is, and what a command is given."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from hosts import make_host
from support import PATIENCE, Signpost
from toolyard.core.tool import CallContext, Plan, ToolResult
from toolyard.core.wire.formats import export
from toolyard.kinds.shell.command import ShellCommandTool
from toolyard.process.child import Children
from toolyard.process.environment import NON_INTERACTIVE
from toolyard.process.limits import NO_LIMITS, Limits

pytestmark = pytest.mark.anyio

BASH = shutil.which("bash")
SECRET = "a-value-that-opens-doors"


class Desk:
    """Plans and runs commands without a call path around them."""

    def __init__(self, folder: Path, children: Children) -> None:
        self._children = children
        self.context = CallContext(call_id="call", cwd=folder, config={}, output_limit=1 << 20)

    def tool(self, **conditions) -> ShellCommandTool:
        limits = conditions.pop("limits", NO_LIMITS)
        runner = make_host(self._children, **conditions).runner
        return ShellCommandTool(runner.limited_to(limits), BASH)

    def plan(self, command: str, *, timeout: float = PATIENCE, **conditions) -> Plan | ToolResult:
        return self.tool(**conditions).plan({"command": command, "timeout": timeout}, self.context)

    async def preview(self, command: str) -> str:
        return await self.tool().preview(self.plan(command), self.context)

    async def run(self, command: str, *, timeout: float = PATIENCE, **conditions) -> ToolResult:
        plan = self.plan(command, timeout=timeout, **conditions)
        assert isinstance(plan, Plan), plan
        return await self.tool(**conditions).run(plan, self.context)

    async def output(self, command: str, **conditions) -> str:
        return (await self.run(command, **conditions)).data["stdout"]


@pytest.fixture
async def desk(tmp_path: Path):
    children = Children()
    yield Desk(tmp_path, children)
    await children.aclose()


def test_every_wire_format_takes_it():
    tool = ShellCommandTool
    assert (tool.spec.name, tool.kind) == ("shell", "shell_command")
    for form in ("openai", "responses", "anthropic", "mcp"):
        exported = export([tool.spec], form)
        assert (len(exported.tools), list(exported.problems)) == (1, [])


async def test_a_plan_says_all_there_is_to_know_and_runs_nothing(desk):
    plan = desk.plan("touch ran")
    assert (plan.command, plan.cwd) == ("touch ran", desk.context.cwd)
    assert (plan.argv[0], plan.argv.count("touch ran")) == (BASH, 1)
    assert list(desk.context.cwd.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ls -la", "ls -la"),
        ("\n  ls  \n", "ls"),
        ("ls\nrm x", "ls …"),
        ("", ""),
        ("x" * 500, "x" * 199 + "…"),
    ],
)
async def test_a_preview_is_the_first_line_and_says_that_there_are_more(desk, command, shown):
    assert await desk.preview(command) == shown


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo a\0b", "NUL character"),
        ("echo \ud800", "half a UTF-16 character"),
        ("echo " + "x" * 131_067, "too long (131072 bytes; at most 131071 fit)"),
    ],
)
async def test_what_no_command_line_can_carry_is_refused_in_words(desk, command, reason):
    refused = desk.plan(command)
    assert isinstance(refused, ToolResult)
    assert refused.failure == "invalid_arguments"
    assert refused.text.startswith("Invalid arguments for 'shell':\n- command: ")
    assert reason in refused.text


async def test_the_longest_command_runs(desk):
    assert len(await desk.output("echo " + "x" * 131_066)) == 131_067


async def test_a_working_folder_that_is_gone_is_said(desk):
    desk.context = replace(desk.context, cwd=desk.context.cwd / "gone")
    result = await desk.run("true")
    assert result.failure == "crash"
    assert "could not be started: working directory: No such file or directory" in result.text


@pytest.mark.parametrize("place", [".", "inner"])
async def test_a_command_runs_in_the_folder_of_its_call(desk, place):
    (desk.context.cwd / "inner").mkdir()
    desk.context = replace(desk.context, cwd=desk.context.cwd / place)
    assert await desk.output("pwd -P") == f"{desk.context.cwd.resolve()}\n"


@pytest.mark.parametrize(
    ("command", "code", "stdout"),
    [
        ("", 0, ""),
        ("# nothing", 0, ""),
        ("echo $#", 0, "0\n"),
        ("[[ a == a ]] && printf '%s ' {1..3}", 0, "1 2 3 "),
        ("echo 'ü → 漢'", 0, "ü → 漢\n"),
        ('cat; read -r line; echo "$?"', 0, "1\n"),
        ("cat <<'END'\n$a\nEND\n", 0, "$a\n"),
        (r"printf 'a\377\0b'", 0, "a\ufffd\0b"),
        ("set -e; false; echo never", 1, ""),
    ],
)
async def test_a_command_is_bashs_and_only_bashs(desk, command, code, stdout):
    data = (await desk.run(command)).data
    assert (data["exitCode"], data["stdout"], data["stderr"]) == (code, stdout, "")


@pytest.mark.parametrize("command", ["-x", "+x", "--version", "--"])
async def test_a_command_that_begins_like_an_option_is_a_command(desk, command):
    data = (await desk.run(command)).data
    assert data["exitCode"] == 127
    assert data["stderr"].startswith("bash: ")
    assert data["stderr"].endswith(f"{command}: command not found\n")


async def test_no_start_up_file_is_read_not_even_below_sshd(desk, monkeypatch):
    for name in (".bashrc", ".bash_profile", ".profile", "env"):
        (desk.context.cwd / name).write_text("echo started up\n")
    monkeypatch.setenv("HOME", str(desk.context.cwd))
    monkeypatch.setenv("BASH_ENV", str(desk.context.cwd / "env"))
    monkeypatch.setenv("SSH_CLIENT", "192.0.2.1 1 22")
    monkeypatch.delenv("SHLVL", raising=False)
    assert await desk.output("echo only this") == "only this\n"


async def test_a_call_keeps_nothing_for_the_next(desk):
    await desk.run("cd /; variable=1; export variable; f() { :; }")
    assert await desk.output('echo "${variable-none}" "$(type -t f)" "$PWD"') == f"none  {desk.context.cwd}\n"


async def test_credentials_do_not_reach_a_command_unless_policy_passes_them_by_name(desk, monkeypatch):
    monkeypatch.setenv("SERVICE_TOKEN", SECRET)
    assert await desk.output('echo "${SERVICE_TOKEN-none}"') == "none\n"
    assert await desk.output('echo "${SERVICE_TOKEN-none}"', pass_env=["SERVICE_TOKEN"]) == f"{SECRET}\n"
    assert desk.plan("true").env_keys == []
    assert desk.plan("true", pass_env=["SERVICE_TOKEN", "NOT_SET_ANYWHERE"]).env_keys == ["SERVICE_TOKEN"]


@pytest.mark.parametrize("name", NON_INTERACTIVE)
async def test_programs_are_told_that_nobody_is_there_unless_the_environment_says_otherwise(desk, monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    assert await desk.output(f"printenv {name}") == f"{NON_INTERACTIVE[name]}\n"
    monkeypatch.setenv(name, "mine")
    assert await desk.output(f"printenv {name}") == "mine\n"


async def test_both_streams_are_heard_while_the_command_runs(desk):
    heard = asyncio.Queue()
    desk.context = replace(desk.context, emit=lambda *piece: heard.put_nowait(piece))
    post = Signpost(desk.context.cwd / "go_on")
    command = "echo out; read -r _ <go_on; echo err >&2; read -r _ <go_on"
    running = asyncio.ensure_future(desk.run(command))
    async with asyncio.timeout(PATIENCE):
        assert await heard.get() == ("stdout", "out\n")
        post.go_on()
        assert await heard.get() == ("stderr", "err\n")
        assert not running.done()
        post.go_on()
        assert (await running).text == "stdout:\nout\nstderr:\nerr\nexit code: 0"
    post.close()


async def test_limits_hold(desk):
    result = await desk.run("head -c 100000 /dev/zero >big", limits=Limits(file_bytes=1000))
    assert result.data["exitCode"] != 0
    assert (desk.context.cwd / "big").stat().st_size == 1000


async def test_long_output_keeps_its_ends_and_both_streams_share_the_room(desk):
    desk.context = replace(desk.context, output_limit=200, spill_folder=desk.context.cwd, spill_name="whole")
    result = await desk.run("seq 1000; seq 1000 >&2")
    assert result.bytes_out == 2 * 3893
    assert (result.truncated.omitted_bytes, str(result.truncated.kept_at)) == (2 * 3793, desk.context.spill_to.path)
    for file in (desk.context.spill_to, desk.context.spill_errors_to):
        assert Path(file).read_text() == "".join(f"{number}\n" for number in range(1, 1001))
        assert f"the whole is in {file.path} ...]" in result.text
    for stream in ("stdout", "stderr"):
        assert result.data[stream].startswith("1\n2\n")
        assert result.data[stream].endswith("999\n1000\n")
        assert "3793 bytes" in result.data[stream]
    assert result.text.endswith("\nexit code: 0")


@pytest.mark.parametrize("timeout", [10**400, 1e300])
async def test_a_time_limit_beyond_all_clocks_is_none(desk, timeout):
    assert (await desk.run("echo done", timeout=timeout)).text == "stdout:\ndone\nexit code: 0"


async def test_a_signal_is_told_beside_the_exit_code(desk):
    result = await desk.run("kill -TERM $$")
    assert (result.exit_code, result.signal, result.failure) == (143, 15, None)

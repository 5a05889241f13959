"""The one-shot shell: one command, both its streams, its exit code, and nothing left of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hosts import make_host
from support import is_alive
from toolyard.config.document import Document, Place
from toolyard.core.events import CallStarted
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.kinds.shell.reference import ShellCommand
from toolyard.kinds.shell.source import ShellSource
from toolyard.plugins.catalog import Catalog
from toolyard.process.child import Children
from toolyard.runtime.audit.log import NdjsonAudit
from toolyard.runtime.call_path import CallPath
from toolyard.runtime.call_steps.conditions import CallServices, CallSettings
from toolyard.runtime.redaction import Redactor

pytestmark = pytest.mark.anyio

ENOUGH = 60
"""A time limit that only a broken runtime reaches."""
LINGER = """
    sleep 300 & echo $! >>pids
    setsid sleep 300 & echo $! >>pids
    (setsid bash -c 'echo $$ >>pids; exec sleep 300' &)
    until [ "$(wc -l <pids)" = 3 ]; do sleep 0.01; done
"""
"""A child, one that has left the group and the session, and one whose parent is gone; all of them hold the pipes."""


class Shell:
    """Calls the one-shot shell along the whole path."""

    def __init__(self, folder: Path, children: Children) -> None:
        self.folder = folder
        self.events = []
        here = Place(Document(folder / "toolyard.json", "{}", {}), ())
        self._services = CallServices(
            tools=Catalog([ShellSource(ShellCommand(at=here), make_host(children))]),
            audit=NdjsonAudit(folder / "audit", on_failure=pytest.fail),
            redactor=Redactor({}),
        )
        self._calls = CallPath(self._services)
        self._settings = CallSettings(session="test", cwd=folder, config={}, output_limit=1 << 20)

    async def __call__(self, command: str, **rest: object) -> ToolResult:
        call = ToolCall(id="call", name="shell", arguments={"command": command, **rest})
        return await self._calls.call(call, self._settings, self.events.append)

    def pids(self) -> list[int]:
        return [int(line) for line in (self.folder / "pids").read_text().split()]

    def close(self) -> None:
        self._services.audit.close()


@pytest.fixture
async def shell(tmp_path: Path):
    children = Children()
    shell = Shell(tmp_path, children)
    yield shell
    shell.close()
    await children.aclose()


async def test_O01_the_result_has_the_exit_code_both_streams_and_the_context(shell):
    result = await shell("echo out; echo err >&2; exit 3")
    assert result.data == {"exitCode": 3, "stdout": "out\n", "stderr": "err\n", "context": result.text}


async def test_O01_the_time_limit_is_five_seconds_unless_it_is_given(shell):
    await shell("true")
    await shell("true", timeout=2.5)
    started = [event.arguments for event in shell.events if isinstance(event, CallStarted)]
    assert started == [{"command": "true", "timeout": 5}, {"command": "true", "timeout": 2.5}]


@pytest.mark.parametrize("timeout", [0, -1, "soon", True, [5]])
async def test_O01_a_time_limit_is_a_positive_number_or_nothing_runs(shell, timeout):
    result = await shell("touch ran", timeout=timeout)
    assert result.failure == "invalid_arguments"
    assert "timeout: " in result.text
    assert not (shell.folder / "ran").exists()


@pytest.mark.parametrize(
    ("command", "context"),
    [
        ("true", "exit code: 0"),
        ("exit 7", "exit code: 7"),
        ("printf out", "stdout:\nout\nexit code: 0"),
        ("echo out", "stdout:\nout\nexit code: 0"),
        ("printf '\\n  out  \\n\\n'", "stdout:\n\n  out  \n\nexit code: 0"),
        ("printf err >&2; false", "stderr:\nerr\nexit code: 1"),
        ("echo out; echo err >&2; exit 3", "stdout:\nout\nstderr:\nerr\nexit code: 3"),
        ("printf out; printf err >&2", "stdout:\nout\nstderr:\nerr\nexit code: 0"),
        ("echo", "stdout:\n\nexit code: 0"),
        ("kill -9 $$", "exit code: 137"),
    ],
)
async def test_O02_the_context_has_a_section_for_each_stream_that_has_any_and_the_exit_code(shell, command, context):
    result = await shell(command, timeout=ENOUGH)
    assert result.text == context


@pytest.mark.parametrize(
    ("command", "code"), [("exit 1", 1), ("exit 255", 255), ("no-such-command-here", 127), ("if", 2)]
)
async def test_O02_a_non_zero_exit_is_not_an_error(shell, command, code):
    result = await shell(command, timeout=ENOUGH)
    assert (result.ok, result.failure, result.exit_code, result.data["exitCode"]) == (True, None, code, code)


@pytest.mark.parametrize(
    ("timeout", "shown"), [(1, "1"), (1.0, "1.0"), (0.3, "0.3"), ("1", "1"), (0.25, "0.25"), (1e-7, "1e-07")]
)
async def test_O03_a_time_out_names_the_number_as_it_was_given(shell, timeout, shown):
    result = await shell("exec sleep 300", timeout=timeout)
    assert result.text.startswith(f"Command timed out after {shown} seconds\n")
    assert "higher `timeout`" in result.text
    assert result.failure == "timeout"
    assert result.data == {
        "exitCode": -1,
        "stdout": "",
        "stderr": "",
        "context": f"Command timed out after {shown} seconds",
        "partialStdout": "",
        "partialStderr": "",
    }


async def test_O03_what_was_printed_until_the_time_out_is_kept_and_shown_under_that_line(shell):
    result = await shell("echo so far; printf careful >&2; sleep 300", timeout=3)
    assert result.data["context"] == "Command timed out after 3 seconds\nstdout:\nso far\nstderr:\ncareful"
    assert (result.data["stdout"], result.data["partialStdout"]) == ("", "so far\n")
    assert (result.data["stderr"], result.data["partialStderr"]) == ("", "careful")
    assert result.text.startswith(result.data["context"])


async def test_O04_what_was_printed_through_a_process_substitution_is_complete(shell):
    for command, printed in (
        ("seq 3 > >(sort -r)", "3\n2\n1\n"),
        ("seq 3 | tee >(wc -l) >/dev/null", "3\n"),
        ("exec > >(sed s/^/x/); echo a; echo b", "xa\nxb\n"),
        ("sleep 300 & echo a > >(sleep 0.2; cat)", "a\n"),
    ):
        result = await shell(command, timeout=ENOUGH)
        assert (result.failure, result.data["stdout"]) == (None, printed)


async def test_O04_the_call_ends_with_its_shell_although_others_hold_the_pipes_and_nothing_is_left(shell):
    result = await shell(LINGER + "echo done", timeout=ENOUGH)
    assert (result.failure, result.data["stdout"]) == (None, "done\n")
    assert [is_alive(pid) for pid in shell.pids()] == [False] * 3


async def test_O04_the_call_ends_at_its_deadline_and_nothing_is_left(shell):
    result = await shell(LINGER + "echo waiting; trap '' TERM; while :; do sleep 300; done", timeout=3)
    assert (result.failure, result.data["partialStdout"]) == ("timeout", "waiting\n")
    assert [is_alive(pid) for pid in shell.pids()] == [False] * 3

"""A known secret shows in no result of the live session, in however many results its output comes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from support import PATIENCE, until
from toolyard.app import AgentApplication
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.kinds.shell.session_tools import HELD_BACK
from yard import Yard

pytestmark = pytest.mark.anyio
SECRET = "Zq8vLw3RtY7uPk2NxD4m"
FIRST, REST = SECRET[:12], SECRET[12:]
MARK = "[redacted SOME_TOKEN]"
UNTIL_GO = "until [ -e go ]; do sleep 0.01; done"
HALVES = f"cat first; {UNTIL_GO}; cat rest"
"""The whole secret, of which the second half comes when it may; no command has either in its text."""
LONG = "seq 300; cat first rest; seq 300"


class Talk:
    """One conversation, and all that was said in it."""

    def __init__(self, app: AgentApplication, yard: Yard) -> None:
        self.app = app
        self.yard = yard
        self.said: list[str] = []

    async def __call__(self, command: str, **rest: Any) -> ToolResult:
        return await self.call("bash", command=command, **rest)

    async def job(self, action: str = "read", id: str = "1", **rest: Any) -> ToolResult:
        return await self.call("bash_job", action=action, id=id, **rest)

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        async with asyncio.timeout(PATIENCE):
            result = await self.app.call_tool(tool, arguments, on_event=self.yard.watch)
        self.said.append(result.text)
        return result

    async def read_until(self, words: str) -> str:
        """What a job printed, read again and again until these words came."""
        said = ""
        async with asyncio.timeout(PATIENCE):
            while words not in said:
                said += (await self.job()).text
        return said

    def go(self) -> None:
        (self.yard.folder / "go").touch()

    def kept(self) -> list[str]:
        return [path.read_text() for path in (self.yard.folder / "sessions" / "outputs").rglob("*.*")]

    def printed(self) -> str:
        """All that any result, event, file or record has."""
        return "\n".join([*self.said, self.yard.streamed(), *self.kept(), repr(self.yard.audit())])


@pytest.fixture
async def open_talks() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_talks: AsyncExitStack) -> Any:
    monkeypatch.setenv("SOME_TOKEN", SECRET)
    monkeypatch.chdir(tmp_path)

    async def begin(plugin: Any = "shell:session") -> Talk:
        yard = Yard(tmp_path)
        yard.file("first", FIRST)
        yard.file("rest", f"{REST}|\n")
        app = yard.app(plugin, output={"limit_bytes": 1000, "reader": True}, sandbox={"mode": "off"})
        return Talk(await open_talks.enter_async_context(app), yard)

    return begin


@pytest.fixture
async def talk(begin: Any) -> Talk:
    return await begin()


def check(talk: Talk) -> None:
    """Neither half was said by itself, and the whole was said once, by its name."""
    assert "".join(talk.said).count(f"{MARK}|") == 1
    assert FIRST[:4] not in talk.printed()
    assert REST not in talk.printed()


async def test_a_job_that_is_read_between_two_halves_of_a_secret(talk):
    await talk(f"echo begun; {HALVES}", background=True)
    said = await talk.read_until(HELD_BACK)
    assert "begun\n" in said
    talk.go()
    ended = await talk.job("wait", timeout=PATIENCE)
    assert ended.text.endswith(f"\n{MARK}|\n")
    check(talk)


async def test_what_only_began_like_a_secret_is_read_when_the_job_has_ended(talk):
    await talk(f"cat first; {UNTIL_GO}", background=True)
    await talk.read_until(HELD_BACK)
    assert (await talk.job()).text.splitlines()[1:] == [HELD_BACK]
    talk.go()
    assert (await talk.job("wait", timeout=PATIENCE)).text.splitlines()[1:] == [FIRST]
    assert (await talk.job()).text.splitlines()[1:] == ["(no output)"]


async def test_a_command_that_asks_for_input_between_two_halves_of_a_secret(talk):
    asked = await talk("cat first; read -r; cat rest", interactive=True)
    assert asked.data["waitingForInput"]
    assert HELD_BACK in asked.text
    assert FIRST not in asked.text
    answered = await talk.job("write", id="foreground", text="x\n")
    assert answered.text == f"{MARK}|\n"
    check(talk)


async def test_a_command_that_becomes_a_job_between_two_halves_of_a_secret(begin):
    talk = await begin({"shell_session": {"on_timeout": "background"}})
    late = await talk(f"echo begun; {HALVES}", timeout=0.5)
    assert late.data["timedOut"]
    assert FIRST not in late.text
    talk.go()
    await talk.job("wait", timeout=PATIENCE)
    check(talk)


async def test_what_a_command_leaves_behind_prints_the_other_half_of_a_secret(talk):
    left = await talk(f"cat first; ({UNTIL_GO}; cat rest) &")
    assert left.text == HELD_BACK
    talk.go()
    await talk.read_until(f"{MARK}|")
    check(talk)


async def test_what_a_job_leaves_behind_prints_the_other_half_of_a_secret(talk):
    await talk(f"cat first; ({UNTIL_GO}; cat rest) & exit 0", background=True)
    assert (await talk.job("wait", timeout=PATIENCE)).text.splitlines()[1:] == [HELD_BACK]
    talk.go()
    await talk.read_until(f"{MARK}|")
    check(talk)


async def test_nothing_is_lost_when_what_a_command_left_behind_prints_no_more(talk):
    left = await talk(f"cat first; ({UNTIL_GO}) &")
    assert left.text == HELD_BACK
    talk.go()
    assert (await talk.job("wait", timeout=PATIENCE)).text.splitlines()[1:] == [FIRST]


async def test_a_cancelled_call_leaves_nobody_who_could_print_the_other_half_of_a_secret(talk):
    os.mkfifo(talk.yard.folder / "here")
    command = f"setsid bash -c '{UNTIL_GO}; cat rest' & cat first; echo x >here; sleep 300"
    cancelled = asyncio.Event()
    call = ToolCall(id="c", name="bash", arguments={"command": command})
    async with asyncio.timeout(PATIENCE):
        turn = asyncio.create_task(talk.app.call_tools([call], cancelled=cancelled))
        await asyncio.to_thread((talk.yard.folder / "here").read_text)
        cancelled.set()
        assert (await turn)["c"].text.endswith(f"\n{FIRST}"), "all that there is"
    talk.go()
    assert (await talk.call("bash_job", action="list")).text == "no jobs"
    assert REST not in talk.printed()


async def test_the_kept_output_of_a_long_job_has_no_secret_and_is_told_of(talk):
    await talk(LONG, background=True)
    ended = await talk.job("wait", timeout=PATIENCE)
    assert ended.truncated.kept_at.read_text().count(MARK) == 1
    handle = ended.truncated.kept_at.name
    assert f"read_output has it: handle {handle}, offset " in ended.text
    size = ended.truncated.kept_at.stat().st_size
    for offset in range(0, size, 5):
        await talk.call("read_output", handle=handle, offset=offset)
    assert not any(SECRET[at : at + 4] in "".join(talk.said) for at in range(len(SECRET) - 3))


async def test_the_kept_output_of_a_job_has_no_secret_while_the_job_still_writes_it(talk):
    await talk(f"{LONG}; {HALVES}", background=True)
    await until(lambda: any("300\n" in text and MARK in text for text in talk.kept()))
    assert FIRST[:4] not in "".join(talk.kept())
    assert (await talk.job()).truncated
    assert FIRST[:4] not in "".join(talk.kept())
    talk.go()
    assert (await talk.job("wait", timeout=PATIENCE)).text.endswith(f"\n{MARK}|\n")
    assert FIRST[:4] not in talk.printed()


async def test_a_job_whose_output_was_cut_through_a_secret(talk):
    # The limit keeps 500 bytes at each end; the first secret would lie across the end of the head, the last is in two.
    padding = "head -c {} /dev/zero | tr '\\0' x"
    whole = "cat first; head -c 8 rest"
    await talk(f"{padding.format(493)}; {whole}; {padding.format(9000)}; {HALVES}", background=True)
    await until(lambda: any(len(text) > 9000 for text in talk.kept()))
    assert "xxx[redact\n[... " in (await talk.job()).text
    talk.go()
    await talk.job("wait", timeout=PATIENCE)
    check(talk)


async def test_without_a_known_secret_a_job_says_all_at_once(talk, monkeypatch):
    monkeypatch.delenv("SOME_TOKEN")
    async with Yard(talk.yard.folder).app("shell:session", sandbox={"mode": "off"}) as app:
        knows_none = Talk(app, Yard(talk.yard.folder))
        await knows_none(HALVES, background=True)
        await knows_none.read_until(f"\n{FIRST}")
        knows_none.go()
        assert (await knows_none.job("wait", timeout=PATIENCE)).text.endswith(f"\n{REST}|\n")

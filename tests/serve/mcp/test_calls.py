"""Questions of one call: each has a name, an answer and an end of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolyard.core.tool import ClientRequest, ToolResult
from toolyard.serve.mcp.calls import Asking, ServedCall

pytestmark = pytest.mark.anyio
FORMS = {"elicitation": {"form": {}}}


def question(text: str) -> ClientRequest:
    return ClientRequest(method="elicitation/create", params={"message": text, "requestedSchema": {}})


class Dialogs:
    """A client that shows every question until somebody answers it or it is taken back."""

    def __init__(self) -> None:
        self.shown: dict[str, asyncio.Future[Any]] = {}
        self.taken_back: list[str] = []
        self.changed = asyncio.Event()

    async def ask(self, request: ClientRequest) -> Any:
        text = str(request.params["message"])
        waiting = self.shown[text] = asyncio.get_running_loop().create_future()
        self.changed.set()
        try:
            return await waiting
        except asyncio.CancelledError:
            self.taken_back.append(text)
            self.changed.set()
            raise
        finally:
            del self.shown[text]

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(10):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture
def dialogs() -> Dialogs:
    return Dialogs()


def told_to(call: ServedCall, asking: Asking) -> None:
    """As a server does that tells its client of what comes."""
    asking.update()
    if not call.is_over:
        call.then(lambda: told_to(call, asking))


def begun(work: Any) -> ServedCall:
    call = ServedCall(capabilities=FORMS)
    call.start(work, lambda: None)
    return call


async def test_the_answer_to_a_question_that_was_withdrawn_is_not_taken_for_that_to_the_next_one_of_its_name(dialogs):
    answers: list[Any] = []

    async def work() -> ToolResult:
        form = asyncio.create_task(call.put("allow", question("your favourite colour?")))
        await dialogs.until(lambda: dialogs.shown)
        late = dialogs.shown["your favourite colour?"]
        form.cancel()
        asked = asyncio.create_task(call.put("allow", question("may it connect?")))
        await dialogs.until(lambda: "may it connect?" in dialogs.shown)
        if not late.done():
            late.set_result({"action": "accept", "content": {"answer": "always"}})
        call.answer({"allow": {"action": "accept", "content": {"answer": "always"}}})
        dialogs.shown["may it connect?"].set_result({"action": "decline"})
        answers.append(await asked)
        return ToolResult(text="done")

    call = begun(work)
    asking = Asking(call, dialogs.ask)
    call.then(lambda: told_to(call, asking))
    async with asyncio.timeout(10):
        await call.task
    assert call.result().text == "done"
    assert answers == [{"action": "decline"}]
    assert dialogs.taken_back == ["your favourite colour?"]


async def test_no_name_of_a_question_comes_twice_in_a_call(dialogs):
    names: list[str] = []

    async def work() -> ToolResult:
        for _ in range(3):
            asked = asyncio.create_task(call.put("allow", question("again?")))
            while not call.asked:
                await asyncio.sleep(0)
            names.extend(call.asked)
            call.answer(dict.fromkeys(call.asked))
            await asked
        return ToolResult(text="done")

    call = begun(work)
    async with asyncio.timeout(10):
        await call.task
    assert call.result().text == "done"
    assert len(names) == len(set(names)) == 3


async def test_a_question_that_nobody_waits_for_any_more_is_taken_back_at_once(dialogs):
    async def work() -> ToolResult:
        form = asyncio.create_task(call.put("form", question("your name?")))
        await dialogs.until(lambda: dialogs.shown)
        form.cancel()
        await dialogs.until(lambda: dialogs.taken_back)
        return ToolResult(text="done")

    call = begun(work)
    asking = Asking(call, dialogs.ask)
    call.then(lambda: told_to(call, asking))
    async with asyncio.timeout(10):
        await call.task
    assert call.result().text == "done"
    assert dialogs.taken_back == ["your name?"]

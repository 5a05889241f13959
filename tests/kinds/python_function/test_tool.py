"""Python tools on the call path: answers, failures, limits, cancellation, output."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import msgspec
import pytest

from toolyard.app import AgentApplication
from toolyard.core.events import OutputChunk
from toolyard.core.tool import ToolCall, ToolResult
from toolyard.errors import ToolError
from toolyard.plugins.author_code.context import ToolContext
from toolyard.plugins.contract import tool
from toolyard.testing import open_plugin

pytestmark = pytest.mark.anyio
PATIENCE = 60


@dataclass
class Sum:
    total: int


@pytest.mark.parametrize(
    ("value", "text", "data"),
    [
        ("plain", "plain", None),
        (3, "3", None),
        (True, "true", None),
        (b"bytes", "bytes", None),
        ([1, "é"], '[1, "é"]', None),
        ({"a": 1}, '{"a": 1}', {"a": 1}),
        (Sum(3), '{"total": 3}', {"total": 3}),
        (None, "", None),
        (ToolResult(text="own", data={"x": 1}), "own", {"x": 1}),
    ],
)
async def test_what_is_returned_is_the_answer(value, text, data):
    def give():
        return value

    async def give_later():
        return value

    for function in (give, give_later):
        async with open_plugin(function) as plugin:
            result = await plugin.call(function.__name__, {})
        assert (result.text, result.data, result.ok) == (text, data, True)


async def test_arguments_are_checked_and_converted():
    def add(a: int, b: int = 1) -> int:
        return a + b

    async with open_plugin(add) as plugin:
        assert (await plugin.call("add", {"a": "2"})).text == "3"
        assert (await plugin.call("add", '{"a": 2, "b": 5}')).text == "7"
        refused = await plugin.call("add", {"a": "two"})
        assert refused.failure == "invalid_arguments"
        assert "a" in refused.text


async def test_a_value_that_only_the_type_refuses_is_an_invalid_argument():
    import datetime

    def day(when: datetime.date) -> str:
        return when.isoformat()

    day.__annotations__["when"] = datetime.date
    async with open_plugin(day) as plugin:
        assert (await plugin.call("day", {"when": "2024-02-29"})).text == "2024-02-29"
        result = await plugin.call("day", {"when": "2023-02-29"})
        assert result.failure == "invalid_arguments"
        assert "when" in result.text


async def test_a_tool_that_raises_crashes_with_the_authors_own_lines():
    def inner():
        raise LookupError("nothing there")

    def outer():
        inner()

    async with open_plugin(outer) as plugin:
        result = await plugin.call("outer", {})
    assert result.failure == "crash"
    first, *frames = result.text.splitlines()
    assert first == "Error: 'outer' crashed: LookupError: nothing there"
    assert [frame.split()[-1] for frame in frames] == ["outer", "inner"]
    assert all("test_tool.py:" in frame for frame in frames)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), BaseException("odd")])
async def test_no_exception_gets_past_the_call(error):
    def bad():
        raise error

    async def bad_async():
        raise error

    for function in (bad, bad_async):
        if isinstance(error, SystemExit | KeyboardInterrupt) or function is bad:
            async with open_plugin(function) as plugin:
                result = await plugin.call(function.__name__, {})
            assert result.failure == "crash"
            assert type(error).__name__ in result.text


async def test_a_tool_error_is_the_authors_own_word():
    def refuse():
        raise ToolError("the file is locked", exit_code=4)

    async with open_plugin(refuse) as plugin:
        result = await plugin.call("refuse", {})
    assert (result.text, result.failure, result.exit_code) == ("Error: the file is locked", "exit_code", 4)


async def test_what_is_printed_is_partial_output_and_never_ours(capsys):
    def chatty() -> str:
        print("one")
        sys.stdout.write("two\n")
        sys.stdout.buffer.write("drei €\n".encode())
        print("oops", file=sys.stderr)
        return "done"

    async with open_plugin(chatty) as plugin:
        result = await plugin.call("chatty", {})
    assert result.text == "done"
    assert [(e.stream, e.text) for e in plugin.events if isinstance(e, OutputChunk)] != []
    assert plugin.partial_output == "one\ntwo\ndrei €\noops\n"
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    print("ours again")
    assert capsys.readouterr().out == "ours again\n"


async def test_a_tool_that_returns_nothing_answers_with_what_it_printed():
    def report() -> None:
        print("all is well")

    async def report_later() -> None:
        print("all is well")

    for function in (report, report_later):
        async with open_plugin(function) as plugin:
            assert (await plugin.call(function.__name__, {})).text == "all is well\n"


async def test_standard_input_is_at_its_end(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("meant for the application\n"))

    def read() -> dict:
        seen = [sys.stdin.read(), sys.stdin.readline(), list(sys.stdin), sys.stdin.buffer.read().decode()]
        try:
            seen.append(input())
        except EOFError:
            seen.append("the end")
        return {"seen": seen, "terminal": sys.stdin.isatty() or sys.stdout.isatty()}

    async with open_plugin(read) as plugin:
        result = await plugin.call("read", {})
    assert result.data == {"seen": ["", "", [], "", "the end"], "terminal": False}
    assert sys.stdin.read() == "meant for the application\n"


async def test_a_tool_cannot_hand_our_streams_to_a_process():
    def hand_on() -> None:
        sys.stdout.fileno()

    async with open_plugin(hand_on) as plugin:
        result = await plugin.call("hand_on", {})
    assert result.failure == "crash"
    assert "pipes" in result.text


@pytest.mark.parametrize("is_async", [False, True])
async def test_whoever_hears_of_output_may_print_it(tmp_path, capsys, is_async):
    (tmp_path / "say.py").write_text(
        "from toolyard.plugins.contract import tool\n\n@tool\n"
        f"{'async ' if is_async else ''}def say() -> None:\n    'Say it.'\n    print('heard')\n"
    )
    (tmp_path / "c.json").write_text('{"plugins": ["path:say.py"]}')
    async with AgentApplication(tmp_path / "c.json", tmp_path / "sessions") as app:
        result = await app.call_tool("say", {}, on_event=lambda event: print(f"<{type(event).__name__}>"))
    assert result.text == "heard\n"
    assert capsys.readouterr().out.count("<OutputChunk>") in (1, 2), "of the text and of its line end"


async def test_two_tools_that_print_at_once_keep_their_output_apart():
    barrier = threading.Barrier(2, timeout=PATIENCE)

    @tool
    def speak(word: str) -> None:
        for _ in range(3):
            barrier.wait()
            print(word)

    async with open_plugin(speak) as plugin:
        results = await asyncio.gather(*(plugin.call("speak", {"word": word}) for word in ("a", "b")))
    assert [result.text for result in results] == ["a\na\na\n", "b\nb\nb\n"]


async def test_emitted_output_comes_while_the_tool_runs():
    seen = threading.Event()

    def work(context: ToolContext) -> str:
        context.emit("half way")
        assert seen.wait(PATIENCE)
        context.emit("trouble", "stderr")
        return "done"

    async with open_plugin(work) as plugin:
        call = asyncio.create_task(plugin.call("work", {}))
        while "half way" not in plugin.partial_output:
            await asyncio.sleep(0)
        seen.set()
        assert (await call).text == "done"
    assert [(e.stream, e.text) for e in plugin.events if isinstance(e, OutputChunk)] == [
        ("stdout", "half way"),
        ("stderr", "trouble"),
    ]


async def test_what_a_generator_yields_is_streamed_and_is_the_answer():
    def count() -> Iterator[str]:
        yield "one "
        yield "two"

    async def count_later() -> AsyncIterator[str]:
        yield "one "
        yield "two"

    for function in (count, count_later):
        async with open_plugin(function) as plugin:
            assert (await plugin.call(function.__name__, {})).text == "one two"
        assert plugin.partial_output == "one two"


async def test_a_slow_sync_tool_blocks_no_other_call():
    free = threading.Event()

    class Both:
        id = "both"

        def get_tool_schemas(self, state):
            return [{"type": "function", "function": {"name": name}} for name in ("slow", "quick")]

        def execute_tool(self, tool_name, arguments):
            if tool_name == "quick":
                free.set()
                return "quick"
            assert free.wait(PATIENCE)
            return "slow"

    async with open_plugin(Both) as plugin:
        results = await asyncio.gather(plugin.call("slow", {}), plugin.call("quick", {}))
    assert [result.text for result in results] == ["slow", "quick"]


async def test_a_tool_out_of_time_says_so_and_what_it_printed():
    over = threading.Event()

    @tool(timeout=3)
    def hang(context: ToolContext) -> None:
        print("starting")
        context.cancelled.wait(PATIENCE)
        over.set()

    @tool(timeout=3)
    async def hang_async() -> None:
        print("starting")
        await asyncio.sleep(PATIENCE)

    for function in (hang, hang_async):
        async with open_plugin(function) as plugin:
            result = await plugin.call(function.__name__, {})
        name = function.__name__
        assert result.failure == "timeout"
        assert result.text == f"Error: '{name}' timed out after 3 seconds\noutput so far:\nstarting\n"
    assert over.wait(PATIENCE), "the thread was told"


async def test_a_tool_that_ignores_its_end_is_stopped():
    stopped = threading.Event()

    @tool(timeout=0.1)
    def deaf() -> None:
        try:
            while True:
                time.sleep(0.01)
        finally:
            stopped.set()

    release = asyncio.Event()

    @tool(timeout=0.1)
    async def deaf_async() -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    async with open_plugin(deaf_async) as plugin:
        assert (await plugin.call("deaf_async", {})).failure == "timeout"
        release.set()
    async with open_plugin(deaf) as plugin:
        assert (await plugin.call("deaf", {})).failure == "timeout"
        while not stopped.is_set():
            await asyncio.sleep(0.01)


async def test_a_cancelled_call_ends_at_once_and_tells_the_tool():
    began, told = threading.Event(), threading.Event()
    cancelled = []

    def work(context: ToolContext) -> None:
        began.set()
        context.cancelled.wait(PATIENCE)
        told.set()

    async def work_async() -> None:
        try:
            began.set()
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    for function in (work, work_async):
        began.clear()
        async with open_plugin(function) as plugin:
            stop = asyncio.Event()
            call = ToolCall(id="one", name=function.__name__, arguments={})
            calls = plugin._calls().call_all([call], plugin._settings(), cancelled=stop)
            running = asyncio.create_task(calls)
            while not began.is_set():
                await asyncio.sleep(0)
            stop.set()
            (result,) = (await running).values()
            assert result.failure == "cancelled"
    assert told.wait(PATIENCE)
    assert cancelled == [True]


async def test_a_cancelled_call_keeps_what_its_tool_had_given():
    began = asyncio.Event()

    async def work() -> AsyncIterator[str]:
        print("printed ")
        yield "a part"
        began.set()
        await asyncio.sleep(PATIENCE)

    async with open_plugin(work) as plugin:
        stop = asyncio.Event()
        call = ToolCall(id="one", name="work", arguments={})
        running = asyncio.create_task(plugin._calls().call_all([call], plugin._settings(), cancelled=stop))
        await began.wait()
        stop.set()
        (result,) = (await running).values()
    assert (result.text, result.bytes_out) == ("The call was cancelled. Output so far:\na partprinted \n", 15)


async def test_a_cancelled_task_is_cancelled():
    began = asyncio.Event()

    async def work() -> None:
        began.set()
        await asyncio.sleep(PATIENCE)

    async with open_plugin(work) as plugin:
        call = asyncio.create_task(plugin.call("work", {}))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_tool_that_cancels_itself_has_crashed():
    async def odd() -> None:
        raise asyncio.CancelledError

    async with open_plugin(odd) as plugin:
        result = await plugin.call("odd", {})
    assert result.failure == "crash"


async def test_a_preview_is_the_authors_or_the_call_itself():
    @tool(preview=lambda path: f"remove {path}\nand more")
    def remove(path: str) -> None:
        """Remove."""

    @tool
    def keep(path: str, times: int = 2) -> None:
        """Keep."""

    async with open_plugin(remove) as plugin:
        assert await plugin.preview("remove", {"path": "a b"}) == "remove a b"
    async with open_plugin(keep) as plugin:
        assert await plugin.preview("keep", {"path": "a b"}) == "keep path='a b' times=2"


async def test_a_freeform_tool_takes_one_text():
    @tool(freeform=True, syntax="lark", grammar="start: WORD")
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    async with open_plugin(shout) as plugin:
        assert (await plugin.call("shout", {"input": "hey"})).text == "HEY"
        assert plugin.specs["shout"].input.grammar == "start: WORD"


async def test_long_answers_keep_their_head_and_tail():
    def long() -> str:
        return "a" * 3_000_000

    def long_printed() -> None:
        for _ in range(30):
            sys.stdout.write("a" * 100_000)

    for function in (long, long_printed):
        async with open_plugin(function) as plugin:
            result = await plugin.call(function.__name__, {})
        assert result.truncated
        assert result.bytes_out == 3_000_000
        assert 1_000_000 < len(result.text) < 1_100_000


async def test_two_hundred_calls_at_once():
    def double(n: int) -> int:
        return 2 * n

    async with open_plugin(double) as plugin:
        results = await asyncio.gather(*(plugin.call("double", {"n": n}) for n in range(200)))
    assert [int(result.text) for result in results] == [2 * n for n in range(200)]


async def test_a_marked_function_is_still_a_function():
    @tool(name="plus", description="Add.", read_only=True, timeout=5)
    def add(a: int, b: int) -> int:
        """Something else."""
        return a + b

    assert add(1, 2) == 3
    async with open_plugin(add) as plugin:
        spec = plugin.specs["plus"]
        assert (spec.description, spec.timeout, spec.hints.read_only) == ("Add.", 5, True)
        assert json.loads((await plugin.call("plus", {"a": 1, "b": 2})).text) == 3


PIECE = "x" * 99_999 + "\n"
PIECES = 1_000


def yields() -> Iterator[str]:
    """Yields much."""
    for _ in range(PIECES):
        yield PIECE + ""


async def yields_in_the_loop() -> AsyncIterator[str]:
    """Yields much."""
    for _ in range(PIECES):
        yield PIECE + ""


def prints() -> None:
    """Prints much."""
    for _ in range(PIECES):
        print(PIECE, end="")


def prints_bytes() -> None:
    """Prints much, as bytes."""
    for _ in range(PIECES):
        sys.stdout.buffer.write(PIECE.encode())


@pytest.mark.parametrize("function", [yields, yields_in_the_loop, prints, prints_bytes])
async def test_output_of_any_length_is_kept_in_bounded_memory_and_whole_in_a_file(tmp_path, function):
    async with AgentApplication({"output": {"spill": True}}, tmp_path / "sessions", tools=[tool(function)]) as app:
        await app.call_tool(function.__name__, {})  # whatever is imported or made once
        tracemalloc.start()
        try:
            async with asyncio.timeout(PATIENCE):
                result = await app.call_tool(function.__name__, {})
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 10_000_000, "of a hundred million characters"
        assert (result.ok, result.bytes_out) == (True, len(PIECE) * PIECES)
        assert result.truncated is not None
        assert result.truncated.kept_at is not None
        assert result.truncated.kept_at.stat().st_size == len(PIECE) * PIECES
        assert f"the whole is in {result.truncated.kept_at}" in result.text


async def test_an_answer_that_is_one_huge_text_is_not_copied(tmp_path):
    huge = "y" * 50_000_000

    def give() -> str:
        """Gives much."""
        return huge

    async with AgentApplication({}, tmp_path / "sessions", tools=[tool(give)]) as app:
        await app.call_tool("give", {})
        tracemalloc.start()
        try:
            result = await app.call_tool("give", {})
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 10_000_000
    assert result.bytes_out == 50_000_000


async def test_data_that_is_longer_than_the_limit_is_no_way_around_it(tmp_path):
    def give() -> dict[str, str]:
        """Gives an object."""
        return {"text": "z" * 5_000_000}

    async with AgentApplication({}, tmp_path / "sessions", tools=[tool(give)]) as app:
        result = await app.call_tool("give", {})
    assert result.truncated is not None
    assert result.data is None


async def test_a_thread_that_yields_faster_than_somebody_listens_waits_for_them(tmp_path):
    heard: list[int] = []

    async with AgentApplication({}, tmp_path / "sessions", tools=[tool(yields)]) as app:

        def listen(event: object) -> None:
            if isinstance(event, OutputChunk):
                heard.append(len(event.text))

        await app.call_tool("yields", {}, on_event=listen)
        heard.clear()
        tracemalloc.start()
        try:
            async with asyncio.timeout(PATIENCE):
                await app.call_tool("yields", {}, on_event=listen)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert sum(heard) == len(PIECE) * PIECES, "nothing is lost"
    assert peak < 20_000_000


async def test_a_tool_can_ask_how_much_time_is_left():
    def asks(context: ToolContext) -> list[float | None]:
        """Ask."""
        late = msgspec.structs.replace(context, deadline=time.monotonic() - 1)
        free = msgspec.structs.replace(context, deadline=None)
        return [context.remaining(), late.remaining(), free.remaining()]

    async with open_plugin(asks, timeout=1000) as plugin:
        left, late, free = json.loads((await plugin.call("asks", {})).text)
    assert 0 < left <= 1000
    assert left > 1000 - PATIENCE
    assert (late, free) == (0, None)

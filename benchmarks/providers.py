"""What an event of a model's stream costs: our providers beside httpx2 alone, and beside the vendors' packages."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import Note, Row
from toolyard.core.content import TextPart
from toolyard.core.conversation import UserMessage
from toolyard.core.model import ModelRequest

EVENTS = 4000
ROUNDS = 9
MOST_MICROSECONDS = 15
PLUGINS = Path(__file__).parent.parent / "src" / "toolyard" / "builtin_plugins"
SERVER = """
import asyncio, contextlib, sys
pieces = sys.stdin.buffer.read().split(b"\\0")
chunks = b"".join(b"%x\\r\\n" % len(piece) + piece + b"\\r\\n" for piece in pieces) + b"0\\r\\n\\r\\n"
head = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\ntransfer-encoding: chunked\\r\\n\\r\\n"
async def serve(reader, writer):
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while request := await reader.readuntil(b"\\r\\n\\r\\n"):
            length = [int(line[15:]) for line in request.lower().split(b"\\r\\n") if line.startswith(b"content-len")]
            await reader.readexactly(sum(length))
            writer.write(head + chunks)
            await writer.drain()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
WORD = "word "


def chat() -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        ours = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return {**ours, "system_fingerprint": "fp", "service_tier": "default"}

    return [*(chunk({"content": WORD}) for _ in range(EVENTS)), chunk({}, "stop")]


def responses() -> list[dict[str, Any]]:
    kind = "response.output_text.delta"
    delta = {"type": kind, "item_id": "m1", "output_index": 0, "content_index": 0, "delta": WORD, "logprobs": []}
    part = {"type": "output_text", "text": WORD * EVENTS, "annotations": []}
    item = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    done = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    events = [delta] * EVENTS
    last = [{"type": "response.output_item.done", "output_index": 0, "item": item}]
    end = [{"type": "response.completed", "response": done}]
    return [{**event, "sequence_number": at} for at, event in enumerate([*events, *last, *end])]


def anthropic() -> list[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORD}}
    ends = [{"type": "content_block_stop", "index": 0}, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}]
    begin = [{"type": "message_start", "message": start}, block]
    return [*begin, *([delta] * EVENTS), *ends, {"type": "message_stop"}]


APIS: dict[str, tuple[Callable[[], list[dict[str, Any]]], str, str, dict[str, str]]] = {
    "Chat": (chat, "openai-compatible/openai_compatible.py", "OpenAICompatibleProvider", {}),
    "Responses": (
        responses,
        "openai-compatible/openai_compatible.py",
        "OpenAICompatibleProvider",
        {"api": "responses"},
    ),
    "Anthropic": (anthropic, "anthropic/anthropic_provider.py", "AnthropicProvider", {}),
}


@contextmanager
def server(events: list[dict[str, Any]]) -> Iterator[str]:
    """A process that sends a stream to whoever asks, each event in a chunk of its own."""
    pieces = [f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    argv = [sys.executable, "-c", SERVER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"\0".join(pieces))
        process.stdin.close()
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


async def rows() -> AsyncIterator[Row | Note]:
    """CPU time of this process for each event."""
    for name, (events, file, kind, config) in APIS.items():
        with server(events()) as origin:
            provider = load(file, kind)
            request = ModelRequest(
                model="m",
                messages=[UserMessage(content=(TextPart(text="Hi"),))],
                config={"base_url": origin, "api_key": "k", **config},
            )
            ours, floor = await compared(lambda: whole(provider, request), lambda: bare(origin))  # noqa: B023
            await provider.aclose()
            added = ours - floor
            yield Row(
                what=f"an event of a stream, {name}",
                ours=f"{ours:.1f} µs",
                floor=f"{floor:.1f} µs (httpx2)",
                figure=f"{added:.1f} µs more",
                promise=f"≤ {MOST_MICROSECONDS} µs more",
                kept=added <= MOST_MICROSECONDS,
            )
            yield Note(f"The vendor's own package takes {await vendors(name, origin):.0f} µs for an event of {name}.")


async def compared(ours: Callable[[], Awaitable[None]], floor: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Microseconds of CPU for each event, the medians of rounds in turn."""
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine.append(await spent(ours))
        theirs.append(await spent(floor))
    return statistics.median(mine), statistics.median(theirs)


async def spent(work: Callable[[], Awaitable[None]]) -> float:
    started = time.process_time()
    await work()
    return (time.process_time() - started) / EVENTS * 1e6


async def whole(provider: Any, request: ModelRequest) -> None:
    async for event in provider.stream(request):
        last = event
    assert last.message.text == WORD * EVENTS


async def bare(origin: str) -> None:
    """The same bytes, and nothing done with them."""
    import httpx2

    async with httpx2.AsyncClient() as client, client.stream("POST", origin, content=b"{}") as response:
        async for _ in response.aiter_bytes():
            pass


async def vendors(name: str, origin: str) -> float:
    """The raw stream of the vendor's package, without its helpers."""
    if name == "Anthropic":
        from anthropic import AsyncAnthropic

        made = AsyncAnthropic(api_key="k", base_url=origin).messages
        options: dict[str, Any] = {"max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}
    else:
        from openai import AsyncOpenAI

        client = AsyncOpenAI(api_key="k", base_url=origin)
        made, options = client.responses, {"input": "Hi"}
        if name == "Chat":
            made, options = client.chat.completions, {"messages": [{"role": "user", "content": "Hi"}]}

    async def read() -> None:
        async for _ in await made.create(model="m", stream=True, **options):
            pass

    return statistics.median([await spent(read) for _ in range(3)])


def load(file: str, kind: str) -> Any:
    spec = importlib.util.spec_from_file_location(kind, PLUGINS / file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kind)()


if __name__ == "__main__":

    async def show() -> None:
        async for line in rows():
            print(line)

    asyncio.run(show())

"""A model service on a real socket that answers by a script: whole, broken, slow, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from support import PATIENCE

End = Literal["whole", "cut", "reset", "open"]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer: `events` are the bytes of a stream, piece by piece; `end` is what happens after them."""

    status: int = 200
    events: tuple[bytes, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    end: End = "whole"
    content_type: str = "text/event-stream"
    silent: bool = False
    """Whether not even a status comes."""


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Any


class FakeModelServer:
    """Gives one reply after the other; the last one again and again."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self._replies = list(replies)
        self.received: list[Received] = []
        self.connections = 0
        self.gone = asyncio.Event()
        """Set when the other side has closed a connection that was left open."""
        self.port = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, *replies: Reply) -> None:
        """What to answer from now on."""
        self._replies = list(replies)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.received.append(Received(path=head[0].split()[1], headers=headers, body=json.loads(body or b"null")))
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if reply.silent:
            await self._until_gone(reader)
            return False
        given = {"content-type": reply.content_type, "transfer-encoding": "chunked", **reply.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        writer.write(f"HTTP/1.1 {reply.status} Reply\r\n{lines}\r\n".encode())
        for piece in reply.events:
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        return await self._end(reply.end, reader, writer)

    async def _end(self, end: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        match end:
            case "whole":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return True
            case "reset":
                writer.transport.abort()
            case "open":
                await self._until_gone(reader)
        return False

    async def _until_gone(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            await reader.read()
        self.gone.set()


@asynccontextmanager
async def fake_model_server(*replies: Reply) -> AsyncIterator[FakeModelServer]:
    """A server that runs, with its script."""
    fake = FakeModelServer(replies)
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        connections.add(task)
        with suppress(asyncio.CancelledError):
            await fake.serve(reader, writer)
        connections.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*connections, return_exceptions=True)
            await server.wait_closed()


def sse(*payloads: Any, named: bool = False) -> tuple[bytes, ...]:
    """Events of a stream, each in a piece of its own; Anthropic and Responses name them."""
    return tuple(
        (f"event: {each['type']}\n".encode() if named else b"") + b"data: " + json.dumps(each).encode() + b"\n\n"
        for each in payloads
    )


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a model says, apart from the form in which it comes."""

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Id, name, and the arguments as text."""
    stop: str = ""
    """The API's own word for why it stopped; by default what fits."""


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def chat_events(said: Said, **last: Any) -> tuple[bytes, ...]:
    """An answer in OpenAI's Chat form."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "fake-1", "choices": [choice]}

    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"reasoning_content": piece}) for piece in halves(said.thinking) if piece]
    chunks += [chunk({"content": piece}) for piece in halves(said.text) if piece]
    for index, (id, name, arguments) in enumerate(said.calls):
        begin = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        chunks.append(chunk({"tool_calls": [begin]}))
        for piece in halves(arguments):
            chunks.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    chunks.append(chunk({}, said.stop or ("tool_calls" if said.calls else "stop")))
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, **last}
    chunks.append({**chunk({}), "choices": [], "usage": usage})
    return (*sse(*chunks), b"data: [DONE]\n\n")


def responses_events(said: Said, *items: dict[str, Any], **response: Any) -> tuple[bytes, ...]:
    """An answer in OpenAI's Responses form; further items are given whole."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r1", "status": "in_progress"}}]
    output: list[dict[str, Any]] = []

    def item(whole: dict[str, Any], begun: dict[str, Any], *deltas: dict[str, Any]) -> None:
        at = {"output_index": len(output), "item_id": whole["id"]}
        events.append({"type": "response.output_item.added", "output_index": len(output), "item": begun})
        events.extend({**at, **delta} for delta in deltas)
        events.append({"type": "response.output_item.done", "output_index": len(output), "item": whole})
        output.append(whole)

    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        whole = {"id": "rs1", "type": "reasoning", "summary": summary, "encrypted_content": "gAAAA=="}
        kind = "response.reasoning_summary_text.delta"
        pieces = [{"type": kind, "delta": piece} for piece in halves(said.thinking)]
        item(whole, {**whole, "summary": [], "encrypted_content": "g"}, *pieces)
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        whole = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        pieces = [{"type": "response.output_text.delta", "delta": piece} for piece in halves(said.text)]
        item(whole, {**whole, "content": []}, *pieces)
    for id, name, arguments in said.calls:
        whole = {"id": f"fc_{id}", "type": "function_call", "call_id": id, "name": name, "arguments": arguments}
        kind = "response.function_call_arguments.delta"
        item(whole, {**whole, "arguments": ""}, *({"type": kind, "delta": piece} for piece in halves(arguments)))
    for whole in items:
        item(whole, whole)
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}
    done = {"id": "r1", "model": "fake-1", "status": "completed", "output": output, "usage": usage, **response}
    events.append({"type": f"response.{said.stop or 'completed'}", "response": done})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return sse(*numbered, named=True)


def anthropic_events(said: Said, **usage: Any) -> tuple[bytes, ...]:
    """An answer in Anthropic's Messages form."""
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake-1", "content": []}
    begun = {"input_tokens": 100, "output_tokens": 1, **usage}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**start, "usage": begun}}, {"type": "ping"}]
    blocks = 0

    def block(begin: dict[str, Any], *deltas: dict[str, Any]) -> None:
        nonlocal blocks
        events.append({"type": "content_block_start", "index": blocks, "content_block": begin})
        events.extend({"type": "content_block_delta", "index": blocks, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": blocks})
        blocks += 1

    if said.thinking:
        pieces = [{"type": "thinking_delta", "thinking": piece} for piece in halves(said.thinking)]
        signed = {"type": "signature_delta", "signature": "c2lnbmVk"}
        block({"type": "thinking", "thinking": "", "signature": ""}, *pieces, signed)
    if said.text:
        block({"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in halves(said.text)))
    for id, name, arguments in said.calls:
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *halves(arguments))]
        block({"type": "tool_use", "id": id, "name": name, "input": {}}, *pieces)
    stop = said.stop or ("tool_use" if said.calls else "end_turn")
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}})
    events.append({"type": "message_stop"})
    return sse(*events, named=True)


EVENTS: Mapping[str, Callable[[Said], tuple[bytes, ...]]] = {
    "openai": chat_events,
    "responses": responses_events,
    "anthropic": anthropic_events,
}

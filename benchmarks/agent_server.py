"""A model that calls bash once and then answers, in OpenAI's Chat form, streamed or whole: for us and for peers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from typing import Any

ENDS = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""How an agent ends that knows no answer but commands."""


def message_for(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What the model says, and why it stops."""
    answered = body["messages"][-1]["role"] == "tool"
    if answered and body["model"] != "commands-only":
        return {"role": "assistant", "content": "It is 42."}, "stop"
    arguments = json.dumps({"command": ENDS if answered else "echo 42"})
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def reply(body: dict[str, Any]) -> tuple[bytes, bytes]:
    """The type and the bytes of an answer."""
    message, stop = message_for(body)
    whole = {
        "id": "c1",
        "created": 1,
        "model": body["model"],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
    }
    choice = {"index": 0, "finish_reason": stop}
    if not body.get("stream"):
        done = {**whole, "object": "chat.completion", "choices": [{**choice, "message": message}]}
        return b"application/json", json.dumps(done).encode()
    chunk = {**whole, "object": "chat.completion.chunk", "choices": [{**choice, "delta": message}]}
    return b"text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            length = sum(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
            kind, data = reply(json.loads(await reader.readexactly(length)))
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (kind, len(data), data)
            )
            await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

"""A chat at a terminal: until its prompt is there, and from a word that arrives to the same word on the screen."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import Row, compiling_environment, milliseconds

ROUNDS = 9
WORDS = 100
PAUSE = 0.03
PATIENCE = 60
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


async def rows() -> AsyncIterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sent: dict[int, float] = {}
        server = await asyncio.start_server(lambda reader, writer: speak(reader, writer, sent), "127.0.0.1", 0)
        configure(folder, server.sockets[0].getsockname()[1])
        prompts = [await until_prompt(folder) for _ in range(ROUNDS + 1)][1:]
        late = await until_shown(folder, sent)
        server.close()
    prompt, bare = statistics.median(prompts), await import_time()
    yield row("chat: until the prompt is there", prompt, f"{milliseconds(bare)} (importing prompt_toolkit)", 0.5)
    shown = statistics.median(late)
    yield row("chat: a word that arrived, on the screen", shown, f"worst {milliseconds(max(late))}", 0.02)


def row(what: str, seconds: float, floor: str, most: float) -> Row:
    figure = milliseconds(seconds)
    return Row(
        what=what, ours=figure, floor=floor, figure=figure, promise=f"≤ {most * 1000:.0f} ms", kept=seconds <= most
    )


def configure(folder: Path, port: int) -> None:
    config = {
        "plugins": ["path:${env:BUILTIN_PLUGINS}/openai-compatible"],
        "provider": "openai_compatible",
        "model": "m",
        "api_key": "key",
        "base_url": f"http://127.0.0.1:{port}/v1",
    }
    (folder / "toolyard.json").write_text(json.dumps(config))


class Pty:
    """The program on a terminal, read without waiting."""

    def __init__(self, folder: Path) -> None:
        self.seen = b""
        command = str(Path(sys.executable).with_name("toolyard"))
        environment = compiling_environment() | {"TERM": "xterm", "HOME": str(folder)}
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(command, [command, "--sessions", str(folder / "sessions"), "chat"], environment)
        self._changed = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            self.seen += os.read(self._fd, 65536)
        except OSError:
            asyncio.get_running_loop().remove_reader(self._fd)
        self._changed.set()

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    async def until(self, text: bytes) -> float:
        """When it was there."""
        async with asyncio.timeout(PATIENCE):
            while text not in self.seen:
                await self._changed.wait()
                self._changed.clear()
        return time.perf_counter()

    def end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


async def until_prompt(folder: Path) -> float:
    started = time.perf_counter()
    terminal = Pty(folder)
    try:
        return await terminal.until(b"opening") - started  # the line below the prompt
    finally:
        terminal.end()


async def until_shown(folder: Path, sent: dict[int, float]) -> list[float]:
    terminal = Pty(folder)
    try:
        await terminal.until(b"default")
        terminal.type("go\r")
        return [await terminal.until(f"w{number:03}".encode()) - sent[number] for number in range(WORDS)]
    finally:
        terminal.end()


async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: dict[int, float]) -> None:
    """An answer of one line after the other, word by word."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD)
    for number in range(WORDS):
        text = f"w{number:03}{chr(10) * 2 if number % 10 == 9 else ' '}"
        chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}
        sent[number] = time.perf_counter()
        writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await writer.drain()
        await asyncio.sleep(PAUSE)
    writer.write(b"data: [DONE]\n\n")
    writer.close()


async def import_time() -> float:
    code = "import time; t = time.perf_counter(); import prompt_toolkit.application; print(time.perf_counter() - t)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env=compiling_environment()
    )
    return float((await process.communicate())[0])

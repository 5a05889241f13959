"""A chat on a real terminal, with a model that a test writes down."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from fake_model_server import FakeModelServer, Reply, Said, chat_events, fake_model_server
from support import PATIENCE, TOOLYARD, CommandLine, need


class Model:
    """A model service in a thread of its own."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()
        self.server = FakeModelServer(())
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with fake_model_server(says("nothing")) as self.server:
            self._ready.set()
            await self._over.wait()

    def script(self, *replies: Reply) -> None:
        """What it answers from now on."""
        self.server.script(*replies)

    def asked(self) -> list[Any]:
        """The bodies of all requests so far."""
        return [one.body for one in self.server.received]

    def close(self) -> None:
        assert self._loop
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE)


def says(text: str, **options: Any) -> Reply:
    return Reply(events=chat_events(Said(text=text)), **options)


def runs(command: str, *, text: str = "", id: str = "c1", **arguments: Any) -> Reply:
    """An answer that calls bash."""
    call = (id, "bash", json.dumps({"command": command, **arguments}))
    return Reply(events=chat_events(Said(text=text, calls=(call,))))


def stalls(text: str) -> Reply:
    """The beginning of an answer that never ends."""
    return Reply(events=chat_events(Said(text=text))[:-3], end="open")


class ChatTerminal:
    """`toolyard chat` in tmux, which draws what a person would see."""

    def __init__(self, toolyard: CommandLine, *words: str, width: int, height: int, env: dict[str, str]) -> None:
        self._sockets = tempfile.mkdtemp()  # the path of a socket must be short
        self._tmux = [need("tmux"), "-S", f"{self._sockets}/tmux", "-f", "/dev/null"]
        self._env = toolyard.env | {"TERM": "xterm-256color", "SHELL": "/bin/sh"} | env
        self._folder = toolyard.folder
        size = ["-x", str(width), "-y", str(height)]
        kept = [item for name, value in env.items() for item in ("-e", f"{name}={value}")]
        self._call("new-session", "-d", *kept, *size, "sh")
        self._call("set-option", "-g", "history-limit", "20000")
        self._call("resize-window", *size)
        program = shlex.join(["sh", "-c", 'echo $$ > pid; exec "$0" "$@"', str(TOOLYARD), "chat", *words])
        self.line(f"stty sane; stty -a > before; {program}; echo left $?-here")

    def _call(self, *words: str) -> str:
        ran = subprocess.run(
            [*self._tmux, *words], env=self._env, cwd=self._folder, capture_output=True, timeout=PATIENCE, check=False
        )
        return ran.stdout.decode(errors="replace")

    def type(self, text: str) -> None:
        self._call("send-keys", "-l", "--", text)

    def key(self, *names: str) -> None:
        self._call("send-keys", *names)

    def line(self, text: str) -> None:
        self.type(text)
        self.key("Enter")

    def paste(self, text: str) -> None:
        """As a terminal does that marks what is pasted."""
        self._call("set-buffer", "-b", "pasted", text)
        self._call("paste-buffer", "-p", "-b", "pasted")

    def resize(self, width: int, height: int) -> None:
        self._call("resize-window", "-x", str(width), "-y", str(height))

    def seen(self, *, colours: bool = False) -> str:
        """All that is and was on the screen."""
        return self._call("capture-pane", "-p", "-S", "-", *(["-e"] if colours else []))

    def screen(self) -> str:
        return self._call("capture-pane", "-p")

    def until(self, *texts: str, count: int = 1) -> str:
        """Wait until all of them are there, so many times; what there is then."""
        return self.until_that(lambda seen: all(seen.count(text) >= count for text in texts), texts)

    def until_that(self, holds: Callable[[str], bool], what: object = "") -> str:
        deadline = time.monotonic() + PATIENCE
        while not holds(seen := self.seen()):
            assert time.monotonic() < deadline, f"{what!r} never came:\n{seen}"
            time.sleep(0.05)
        return seen

    def signal(self, number: int) -> None:
        """Send a signal to the program."""
        os.kill(int((self._folder / "pid").read_text()), number)

    def modes(self) -> str:
        """What the terminal does with keys, as the program has it now."""
        terminal = self._call("display-message", "-p", "#{pane_tty}").strip()
        return subprocess.run(["stty", "-a", "-F", terminal], capture_output=True, text=True, check=True).stdout

    def left(self, status: int = 0) -> bool:
        """Whether the program is over with this status, and the shell after it finds its terminal as it was before."""
        self.until(f"left {status}-here")
        self.line("stty -a > after; echo state $?-kept")
        self.until("state 0-kept")
        return (self._folder / "before").read_text() == (self._folder / "after").read_text()

    def close(self) -> None:
        self._call("kill-server")
        shutil.rmtree(self._sockets)


Chat = Callable[..., ChatTerminal]


def configure(toolyard: CommandLine, model: Model, *also: str, **config: Any) -> None:
    """Write a configuration that talks to the model; whatever is in it can be given otherwise."""
    usual = {
        "provider": "openai_compatible",
        "model": "fake-1",
        "api_key": "key",
        "base_url": f"{model.server.origin}/v1",
    }
    toolyard.config("path:${env:BUILTIN_PLUGINS}/openai-compatible", "shell:session", *also, **{**usual, **config})


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


@pytest.fixture
def chat(toolyard: CommandLine, model: Model) -> Iterator[Chat]:
    """Opens a chat that talks to the model; whatever is in the configuration can be given otherwise."""
    opened: list[ChatTerminal] = []

    def open_chat(
        *words: str,
        width: int = 100,
        height: int = 40,
        env: dict[str, str] | None = None,
        also: Sequence[str] = (),
        **config: Any,
    ) -> ChatTerminal:
        configure(toolyard, model, *also, **config)
        opened.append(ChatTerminal(toolyard, *words, width=width, height=height, env=env or {}))
        return opened[-1]

    yield open_chat
    for terminal in opened:
        terminal.close()

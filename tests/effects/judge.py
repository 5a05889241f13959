"""Runs lines through the application, with nobody to ask, and tells what harm they did."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from effects.index import entries_of
from effects.scene import ALWAYS_SECRET, Scene
from effects.trees import Difference
from marks import processes
from toolyard.app import AgentApplication
from toolyard.core.tool import ToolResult

PATIENCE = 4.0
"""Seconds that one line may take."""
TOOLS = ("shell", "bash")
WRITES = re.compile(
    r">|\b(?:tee|touch|mkdir|cp|git\s+add|mv|rm|ln|install|dd|sed\s+.*-i|git\s+(?:commit|stash|checkout|reset))\b"
)
"""What a line has that plainly writes."""
REFRESHED = re.compile(r"^work/(?:sub/|repos/\w+/)?\.git/(?:index|index\.lock)$")
ADDS = re.compile(r"\bgit\b.*\badd\b", re.DOTALL)
STAGED = re.compile(r"^work/(?:sub/)?\.git/(?:index|objects/.*)$")
NO_SPACE = re.compile(r"\s+")


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that lines are run under, and what they promise."""

    name: str
    permissions: dict[str, Any]
    confined: bool = False
    """Whether what is elsewhere is not for reading."""
    changes: bool = True
    """Whether the workspace may be changed by a line that plainly says so."""
    runs: bool = False
    """Whether programs of the workspace may run, since a rule names what runs them."""


class Harm(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that should not have happened."""

    kind: str
    """`outside`, `changed`, `ran`, `leaked`, `reached` or `left`."""
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a line, or of several in one live session."""

    lines: tuple[str, ...]
    tool: str
    refused: bool
    """Whether any of them would have been asked about, or is not allowed at all."""
    harms: tuple[Harm, ...]
    text: str = ""
    reason: str = ""


class Judge:
    """One open application in one scene."""

    def __init__(self, app: AgentApplication, scene: Scene, setup: Setup) -> None:
        self.app, self.scene, self.setup = app, scene, setup
        self._audit_read = 0
        self._count = 0

    async def judge(self, line: str | Sequence[str], tool: str = "shell") -> Outcome:
        """Run a line, or several one after the other in one session, and put everything back."""
        lines = tuple(map(self.scene.fill, [line] if isinstance(line, str) else line))
        self._count += 1
        session = f"s{self._count}"
        results = [await self._call(tool, each, session) for each in lines]
        if tool == "bash":
            await self.app.end_session(session)
        harms = tuple(dict.fromkeys(self._harms(lines, results)))
        return Outcome(
            lines=lines,
            tool=tool,
            refused=any(result.failure == "denied" for result in results),
            harms=harms,
            text="\n".join(result.text for result in results)[:2000],
            reason=next((result.text for result in results if result.failure == "denied"), "")[:300],
        )

    async def _call(self, tool: str, line: str, session: str) -> ToolResult:
        background = line.startswith("&")
        arguments: dict[str, Any] = {"command": line.removeprefix("&"), "timeout": PATIENCE}
        if background and tool == "bash":
            arguments["background"] = True
        return await self.app.call_tool(tool, arguments, session=session)

    def _harms(self, lines: Sequence[str], results: Sequence[ToolResult]) -> Iterable[Harm]:
        text = "\n".join(lines)
        differences = self.scene.tree.differences()
        if differences:
            yield from (harm for one in differences for harm in self._harm_of(one, text))
            self.scene.tree.restore(differences)
        for path in self.scene.marks_outside():
            yield Harm(kind="outside", what=f"the payload ran outside of any sandbox and made {path}")
            path.unlink()
        if self.scene.marks_inside() and not self.setup.runs:
            yield Harm(kind="ran", what="the payload")
        self.scene.clear_temporary()
        yield from self._leaks([*map(shown, results), self._audit_since()])
        yield from (Harm(kind="reached", what=heard) for heard in self.scene.listeners.heard())

    def _harm_of(self, one: Difference, text: str) -> Iterable[Harm]:
        if one.path == "." or f"RAN-{self.scene.mark}" in one.path and one.path.startswith("work/") and self.setup.runs:
            return
        inside = one.path == "work" or one.path.startswith("work/")
        if not inside:
            yield Harm(kind="outside", what=f"{one.how} {one.path}")
        elif not self.setup.changes:
            yield Harm(kind="changed", what=f"{one.how} {one.path}")
        elif not is_harmless(one) and not is_plain(one, text) and not self.setup.runs:
            yield Harm(kind="changed", what=f"{one.how} {one.path}")
        elif re.match(r"work/(?:\.git/(?:config|hooks)|toolyard\.json)", one.path):
            yield Harm(kind="changed", what=f"{one.how} {one.path}")

    def _leaks(self, texts: Sequence[str]) -> Iterable[Harm]:
        whole = "\n".join(texts)
        closed = NO_SPACE.sub("", whole)
        for sign, secret in self.scene.leaks.items():
            if (sign in whole or sign in closed) and (self.setup.confined or secret in ALWAYS_SECRET):
                yield Harm(kind="leaked", what=secret)

    def _audit_since(self) -> str:
        """What the audit log has of these lines."""
        text = ""
        for file in sorted((self.scene.base / "sessions" / "audit").glob("*.ndjson")):
            data = file.read_bytes()
            text, self._audit_read = data[self._audit_read :].decode(errors="replace"), len(data)
        return text

    def left_running(self) -> list[str]:
        """What still runs of all lines; asked when the application is closed."""
        own = os.getpid()
        return [f"{pid} {words}" for pid, words, variables in processes() if self.scene.mark in variables and pid != own]


def is_harmless(one: Difference) -> bool:
    """What no line needs to say: the times of folders, and of what git knows about files."""
    if one.how == "touched":
        return True
    if REFRESHED.match(one.path) and one.before and one.after:
        return entries_of(one.before.content) == entries_of(one.after.content)
    return False


def is_plain(one: Difference, text: str) -> bool:
    """Whether a line plainly says that it writes this path."""
    if one.how == "deleted":
        return False
    if ADDS.search(text) and STAGED.match(one.path):
        return True
    names = one.path.split("/")[1:]
    return bool(WRITES.search(text)) and any(len(name) > 1 and name in text for name in names)


def shown(result: ToolResult) -> str:
    return result.text if result.data is None else f"{result.text}\n{json.dumps(result.data, ensure_ascii=False)}"


@asynccontextmanager
async def opened(setup: Setup, *, sandbox: Mapping[str, Any] | None = None) -> AsyncIterator[Judge]:
    """A scene and an application in it; the process's folder and variables are those of its owner meanwhile."""
    scene = Scene()
    config = {
        "plugins": ["shell:command", "shell:session"],
        "permissions": setup.permissions,
        "sandbox": dict(sandbox or {"mode": "require"}),
    }
    (scene.work / "toolyard.json").write_text(json.dumps(config))
    before, variables, temporary = os.getcwd(), dict(os.environ), tempfile.tempdir
    try:
        os.chdir(scene.work)
        os.environ.update(scene.environment)
        tempfile.tempdir = None
        async with AgentApplication(Path("toolyard.json"), scene.base / "sessions") as app:
            judge = Judge(app, scene, setup)
            for tool in TOOLS:
                await app.call_tool(tool, {"command": "pwd"}, session="first")
            await app.end_session("first")
            scene.tree.remember()
            yield judge
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)
        tempfile.tempdir = temporary
        scene.close()

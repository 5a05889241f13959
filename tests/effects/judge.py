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
from effects.scene import ALWAYS_SECRET, SIZE, Scene
from effects.trees import Difference
from marks import processes
from toolyard.app import AgentApplication
from toolyard.core.tool import ToolResult

PATIENCE = 4.0
"""Seconds that one line may take."""
TOOLS = ("shell", "bash")
WRITES = re.compile(
    r">|\b(?:tee|touch|mkdir|cp|git\s+add|git\s+-C\s+\S+\s+add|mv|rm|ln|install|dd|uniq|xxd|chmod)\b|\bsed\s+-i\b"
    r"|\bsort\b.*[\s{]-(?:\w*o|-o)|\bfind\b.*\s-f(?:print|ls)"
)
"""What a line has that plainly writes what it names."""
MOVES = re.compile(r"(?:^|[;&|(]\s*)mv\s")
"""A command that plainly takes a file from where it was."""
REFRESHED = re.compile(r"^work/(?:.*/)?\.git/(?:index|index\.lock)$")
ADDS = re.compile(r"\bgit\b.*\badd\b", re.DOTALL)
STAGED = re.compile(r"^work/(?:.*/)?\.git/(?:index|objects(?:/[0-9a-f]{2}.*)?)$")
GUARDED = re.compile(r"work/(?:\.git/(?:config(?!\.lock\.free$)|hooks)|toolyard\.json)")
"""What nobody may change from inside, whatever was allowed; the lock that we move out of git's way is ours."""
BACKUP = re.compile(r"(?:\.~\d+)?~$")
QUOTING = re.compile(r"[\\'\"]")
STOPPED = re.compile(r"Read-only file system|Permission denied|Operation not permitted")
NEIGHBOURS_SIZE = re.compile(rf"(?<!\w){SIZE}(?!\w)")
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
    writers: str = "(?!)"
    """A pattern of the programs that a rule of one's own lets write in the workspace."""


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

    @property
    def stopped(self) -> bool:
        """Whether it was allowed, and only the sandbox kept it from what it did."""
        return not self.refused and STOPPED.search(self.text) is not None


class Judge:
    """One open application in one scene."""

    def __init__(self, app: AgentApplication, scene: Scene, setup: Setup) -> None:
        self.app, self.scene, self.setup = app, scene, setup
        self._audit_read: dict[Path, int] = {}
        self._count = 0

    async def judge(self, line: str | Sequence[str], tool: str = "shell") -> Outcome:
        """Run a line, or several one after the other in one session, and put everything back.

        What was refused did not run, so the world is looked at only after something else did, and by `settle`; but the
        reason why it was refused may itself tell too much.
        """
        lines = tuple(map(self.scene.fill, [line] if isinstance(line, str) else line))
        self._count += tool == "bash"
        session = f"{tool}{self._count}"  # a shell of its own for each; the one-shot has no state that could matter
        results = [await self._call(tool, each, session) for each in lines]
        if tool == "bash":
            await self.app.end_session(session)
        refused = [result.failure == "denied" for result in results]
        found = self._leaks([*map(shown, results), self._audit_since()])
        done = () if all(refused) else self._changes("\n".join(lines))
        harms = tuple(dict.fromkeys((*done, *found)))
        return Outcome(
            lines=lines,
            tool=tool,
            refused=any(refused),
            harms=harms,
            text="\n".join(result.text for result in results)[:2000],
            reason=next((result.text for result in results if result.failure == "denied"), "")[:300],
        )

    async def warm_up(self, tool: str) -> None:
        """With the first call come the sandbox and what it needs in the workspace."""
        for reach in ("look", "work"):
            await self.app.call_tool(tool, {"command": "pwd", "reach": reach}, session="first")
        await self.app.call_tool(tool, {"command": "exec 3< toolyard.json"}, session="first")  # a closed look
        await self.app.end_session("first")

    def settle(self) -> list[Harm]:
        """What harm there is that no line is known to have done."""
        return list(self._changes(""))

    async def _call(self, tool: str, line: str, session: str) -> ToolResult:
        background = line.startswith("&")
        arguments: dict[str, Any] = {"command": line.removeprefix("&"), "timeout": PATIENCE}
        if background and tool == "bash":
            arguments["background"] = True
        result = await self.app.call_tool(tool, arguments, session=session)
        known = result.failure in (None, "denied", "exit_code", "timeout", "cancelled")
        if not known or result.text.startswith("The call was not run"):
            raise RuntimeError(f"{line!r} could not be judged: {result.failure}: {result.text}")
        return result

    def _changes(self, text: str) -> Iterable[Harm]:
        """What differs from before the line; afterwards nothing does."""
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
        yield from (Harm(kind="reached", what=heard) for heard in self.scene.listeners.heard())

    def _harm_of(self, one: Difference, text: str) -> Iterable[Harm]:
        if secret := self._copied(one):
            yield Harm(kind="leaked", what=f"{secret}, into {one.path}")
        if one.path == ".":
            return
        if not one.path.startswith("work"):
            yield Harm(kind="outside", what=f"{one.how} {one.path}")
        elif not self._may_change(one, text):
            yield Harm(kind="changed", what=f"{one.how} {one.path}")

    def _may_change(self, one: Difference, text: str) -> bool:
        """Whether a change in the workspace is what the rules allow and the line says."""
        if GUARDED.match(one.path) or not self.setup.changes:
            return False
        if self.setup.runs or is_harmless(one) or is_plain(one, text):
            return True
        return f"RAN-{self.scene.mark}" not in one.path and re.search(self.setup.writers, text) is not None

    def _copied(self, one: Difference) -> str | None:
        """What of others a file of the workspace holds now."""
        if one.after is None or not one.path.startswith("work/"):
            return None
        text = one.after.content.decode(errors="replace")
        return next((harm.what for harm in self._leaks([text])), None)

    def _leaks(self, texts: Sequence[str]) -> Iterable[Harm]:
        whole = "\n".join(texts)
        closed = NO_SPACE.sub("", whole)
        for sign, secret in self.scene.leaks.items():
            if (sign in whole or sign in closed) and (self.setup.confined or secret in ALWAYS_SECRET):
                yield Harm(kind="leaked", what=secret)
        if self.setup.confined and NEIGHBOURS_SIZE.search(whole):
            yield Harm(kind="leaked", what="neighbour")

    def _audit_since(self) -> str:
        """What the audit log has that was not looked at."""
        text = b""
        for file in (self.scene.base / "sessions" / "audit").glob("*.ndjson"):
            with file.open("rb") as log:
                log.seek(self._audit_read.get(file, 0))
                text += log.read()
                self._audit_read[file] = log.tell()
        return text.decode(errors="replace")

    def left_running(self) -> list[str]:
        """What still runs of all lines; asked when the application is closed."""
        own = os.getpid()
        return [
            f"{pid} {words}" for pid, words, variables in processes() if self.scene.mark in variables and pid != own
        ]


def is_harmless(one: Difference) -> bool:
    """What no line needs to say: the times of folders, and of what git knows about files."""
    if one.how == "touched":
        return True
    if REFRESHED.match(one.path) and one.before and one.after:
        return entries_of(one.before.content) == entries_of(one.after.content)
    return False


def is_plain(one: Difference, text: str) -> bool:
    """Whether a line plainly says that it writes this path."""
    text = QUOTING.sub("", text)
    if one.how == "deleted":
        return (
            MOVES.search(text) is not None and "/.git" not in f"/{one.path}" and is_named(one.path.split("/")[-1], text)
        )
    if ADDS.search(text) and STAGED.match(one.path):
        return True
    if not WRITES.search(text) or "/.git/" in f"{one.path}/":  # what is git's is written by git alone
        return False
    if one.path == "work":
        return True
    *folders, name = one.path.split("/")[1:]
    # What is made may be known by the folder that it is made in; what is changed has to be named.
    return any(is_named(part, text) for part in (name, *(folders if one.how == "made" else ())))


def is_named(name: str, text: str) -> bool:
    """Whether a line has the name of a file, of which a backup may have been kept, also glued to an option."""
    own = re.escape(BACKUP.sub("", name))
    spelled = re.sub(r"\d+", r"(?:\\d+|[$]\\w+)", own)  # a number may be a loop's
    return re.search(rf"(?<![\w.-])(?:-\w*o)?{spelled}(?![\w-])", QUOTING.sub("", text)) is not None


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
        os.environ.pop("XDG_RUNTIME_DIR", None)
        tempfile.tempdir = None
        async with AgentApplication(Path("toolyard.json"), scene.base / "sessions") as app:
            judge = Judge(app, scene, setup)
            for tool in TOOLS:
                await judge.warm_up(tool)
            scene.tree.remember()
            yield judge
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(variables)
        tempfile.tempdir = temporary
        scene.close()

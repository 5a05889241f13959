"""The commands of a chat: what begins with a slash is for us, not for the agent."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable  # noqa: TC003 - msgspec reads them
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click
import msgspec

from toolyard.cli.chat.controls import read_value, show_controls
from toolyard.cli.chat.session_states import sentence
from toolyard.cli.chat.sessions import ago
from toolyard.cli.chat.terminal.transcript import diff_lines, usage_text
from toolyard.cli.chat.terminal.turn_view import show_lines
from toolyard.cli.render import show_note, show_rows, show_text, terminal_width, wrapped
from toolyard.cli.shell.command import change_preset
from toolyard.files.named_files import make_named

if TYPE_CHECKING:
    from toolyard.agents.session import AgentSession
    from toolyard.agents.turn_states import Rewind
    from toolyard.app import AgentApplication
    from toolyard.cli.asking.typed_lines import TypedLines
    from toolyard.core.conversation import Usage

MOST_SESSIONS = 15


class Commanded(Protocol):
    """The chat, as far as commands need it."""

    @property
    def application(self) -> AgentApplication: ...
    @property
    def conversation(self) -> AgentSession: ...
    @property
    def lines(self) -> TypedLines: ...
    def leave(self) -> None: ...
    def say(self, text: str | None) -> None: ...
    def usage(self) -> Usage: ...
    async def open(self, *, id: str | None = None, agent: str | None = None) -> None:
        """Go on with another session, or in another way."""


class SlashCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command, and its line of help."""

    run: Callable[[Commanded, str], Awaitable[None]]
    takes: str
    help: str
    while_working: bool = False


async def run_command(chat: Commanded, text: str) -> None:
    """Do what was typed; a name that there is not is answered by the nearest."""
    name, _, rest = text.strip().partition(" ")
    if command := COMMANDS.get(name):
        await command.run(chat, rest.strip())
        return
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    show_note(f"there is no command {name}", "error", hint=f"did you mean {near[0]}?" if near else "see /help")


async def show_help(chat: Commanded, words: str) -> None:  # noqa: ARG001 - as all commands
    named = {f"{name} {one.takes}".rstrip(): one.help for name, one in COMMANDS.items()}
    widest = max(map(len, named)) + 2
    lines = [wrapped(f"{name:{widest}}{help}", " " * widest) for name, help in named.items()]
    show_text("\n".join([*lines, *(wrapped(line, "") for line in KEYS.split("\n"))]))


async def set_model(chat: Commanded, words: str) -> None:
    session = chat.conversation
    if words:
        await session.set_control("model", words)
    show_note(f"the model is {await session.model_name()}", "faint")


async def set_agent(chat: Commanded, words: str) -> None:
    if words:
        await chat.open(id=chat.conversation.id, agent=words)
    known = ", ".join(chat.application.agents())
    show_note(f"the agent is {chat.conversation.agent}; there are: {known}", "faint")


async def list_sessions(chat: Commanded, words: str) -> None:
    store = chat.application.session_store()
    if words:
        found = await store.search(words)
        show_rows([(one.session[:12], one.excerpt) for one in found] or [("", "nothing found")])
        return
    rows = store.sessions(most=MOST_SESSIONS)
    show_rows([(row.id[:12], ago(row.updated), row.title) for row in rows] or [("", "", "there are none yet")])


async def resume(chat: Commanded, words: str) -> None:
    """By default the latest that worked here: what another folder's is about is not here to be worked on."""
    here = chat.conversation.id
    known = chat.application.session_store().sessions()
    rows = [row for row in known if row.id != here and row.workspace == os.getcwd()]
    if not words and not rows:
        show_note("there is no other session of this folder", "warning", hint="see /sessions, then /resume ID")
        return
    await chat.open(id=words or rows[0].id)


async def rewind(chat: Commanded, words: str) -> None:
    session = chat.conversation
    planned = await session.plan_rewind(number_in(words))
    for change in planned.changes:
        show_note(f"  {sentence(change)}")
    answer = await chat.lines.ask(f"Go back to before event {planned.to}? [y]es, [c]onversation only, [n]o: ")
    word = (answer or "").strip().lower()
    if word not in ("y", "yes", "c"):
        show_note("nothing was changed", "faint")
        return
    done = await session.rewind(planned.to, files=word != "c")
    show_left_alone(done)
    show_note(f"went back to before event {done.to}; /redo brings it back", "good")


async def redo(chat: Commanded, words: str) -> None:  # noqa: ARG001
    session = chat.conversation
    for change in (await session.plan_redo()).changes:
        show_note(f"  {sentence(change)}")
    answer = await chat.lines.ask("Bring back what was gone back from? [y]es, [n]o: ")
    if (answer or "").strip().lower() not in ("y", "yes"):
        show_note("nothing was changed", "faint")
        return
    show_left_alone(await session.redo())
    show_note("all is as it was before it went back", "good")


def show_left_alone(done: Rewind) -> None:
    for one in done.restored.restored.left_alone if done.restored else ():
        show_note(f"left alone: {one.path}: {one.reason}", "warning")


async def fork(chat: Commanded, words: str) -> None:
    from toolyard.agents.sessions.copying import fork_session

    row = await fork_session(chat.application.session_store(), chat.conversation.id, number_in(words))
    await chat.open(id=row.id)


async def show_diff(chat: Commanded, words: str) -> None:
    patch = await chat.conversation.turn_diff(number_in(words))
    if patch:
        show_lines(diff_lines(patch, terminal_width(), most=2000))
    else:
        show_note("no turn changed anything, as far as is known", "faint")


async def list_tools(chat: Commanded, words: str) -> None:  # noqa: ARG001
    specs = chat.application.tool_specs(chat.conversation.agent)
    show_rows([(spec.name, " ".join(spec.description.split())) for spec in specs] or [("", "there are none")])


async def show_cost(chat: Commanded, words: str) -> None:  # noqa: ARG001
    usage = chat.usage()
    show_note(usage_text(usage))
    if usage.cost is None:
        show_note("the price of the model is not known", "faint")


async def show_or_change_preset(chat: Commanded, words: str) -> None:
    change_preset(chat.application, words.strip(), session=chat.conversation.id)


async def set_control(chat: Commanded, words: str) -> None:
    id, _, value = words.partition(" ")
    if id:
        await chat.conversation.set_control(id, read_value(value.strip()))
    show_controls(await chat.conversation.ui_schema())


async def compact(chat: Commanded, words: str) -> None:  # noqa: ARG001
    done = await chat.conversation.compact()
    show_note("a summary stands for what was said" if done else "there is too little to sum up", "faint")


async def clear(chat: Commanded, words: str) -> None:  # noqa: ARG001
    before = chat.conversation.id
    await chat.open()
    show_note(f"a new session; /resume {before[:8]} goes back", "faint")


async def export(chat: Commanded, words: str) -> None:
    from toolyard.cli.chat.session_text import exported_lines

    store = chat.application.session_store()
    row = store.session(chat.conversation.id)
    path = words or f"session-{row.id[:8]}.jsonl"
    try:
        lines = (f"{json.dumps(line, ensure_ascii=False)}\n" for line in exported_lines(store, row))
        make_named(Path(path), "".join(lines).encode(), mode=0o600)
    except OSError as error:
        show_note(f"{path}: {error.strerror}", "error", hint="name another file: /export FILE")
        return
    show_note(f"written to {path}", "good")


async def title(chat: Commanded, words: str) -> None:
    if words:
        await chat.conversation.set_metadata(title=words)
    show_note(chat.application.session_store().session(chat.conversation.id).title or "no title yet", "faint")


def number_in(words: str) -> int | None:
    """The number that was typed; None when nothing was."""
    if words and not words.isdigit():
        raise click.UsageError(f"'{words}' is no number; `toolyard sessions show ID` has those of events")
    return int(words) if words else None


async def leave(chat: Commanded, words: str) -> None:  # noqa: ARG001
    chat.leave()


COMMANDS = {
    "/help": SlashCommand(run=show_help, takes="", help="this list", while_working=True),
    "/model": SlashCommand(run=set_model, takes="[M]", help="which model answers, or another one", while_working=True),
    "/agent": SlashCommand(run=set_agent, takes="[A]", help="which agent, or another one"),
    "/sessions": SlashCommand(
        run=list_sessions, takes="[WORDS]", help="the latest sessions, or where words stand", while_working=True
    ),
    "/resume": SlashCommand(
        run=resume, takes="[ID]", help="go on with another session, without an id the latest of this folder"
    ),
    "/rewind": SlashCommand(
        run=rewind, takes="[N]", help="take the last turn back, or all from event N on: files and words"
    ),
    "/redo": SlashCommand(run=redo, takes="", help="bring back what was last gone back from: files and words"),
    "/fork": SlashCommand(run=fork, takes="[N]", help="go on in a copy of this session, up to event N"),
    "/diff": SlashCommand(run=show_diff, takes="[N]", help="what the last turn changed, or turn N", while_working=True),
    "/tools": SlashCommand(run=list_tools, takes="", help="the tools of the agent", while_working=True),
    "/cost": SlashCommand(run=show_cost, takes="", help="what the session took", while_working=True),
    "/preset": SlashCommand(
        run=show_or_change_preset, takes="[NAME]", help="what runs unasked, or another preset: read-only, workspace …"
    ),
    "/set": SlashCommand(
        run=set_control,
        takes="[ID [VALUE]]",
        help="what can be set here, or another value",
        while_working=True,
    ),
    "/compact": SlashCommand(run=compact, takes="", help="let a summary stand for what was said so far"),
    "/clear": SlashCommand(run=clear, takes="", help="begin a new session"),
    "/title": SlashCommand(
        run=title, takes="[TEXT]", help="the title of the session, or another one", while_working=True
    ),
    "/export": SlashCommand(run=export, takes="[FILE]", help="write the session into a file", while_working=True),
    "/quit": SlashCommand(run=leave, takes="", help="leave, as Ctrl-D does", while_working=True),
}
KEYS = """\
Enter sends; while the agent works it is queued. Alt-Enter, Ctrl-J or a \\ at the end begin another line.
Esc has what is queued read at once, Ctrl-C ends the turn, Ctrl-D leaves. Up and down walk through what was typed.
@FILE says what a file holds, pictures too; Tab completes commands and files.
"""

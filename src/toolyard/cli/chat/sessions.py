"""`toolyard sessions`: the conversations that are kept."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from toolyard.cli.application import open_application, sessions_place
from toolyard.cli.chat.answers import answer_option, late_answer_option
from toolyard.cli.chat.session_states import confirmed, diff, id_argument, json_option, redo, rewind
from toolyard.cli.main import OrderedGroup
from toolyard.cli.render import show_line, show_note, show_rows, show_text
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from toolyard.agents.sessions.store import SessionRow, SessionStore
    from toolyard.cli.main import GlobalOptions


@click.group(cls=OrderedGroup)
def sessions() -> None:
    """List, show, search, resume, fork, export, import, replay, rewind, redo, set and delete conversations."""


for command in (rewind, redo, diff):
    sessions.add_command(command)


@sessions.command("list", short_help="List the sessions, the latest first.")
@click.option("--last", metavar="N", type=click.IntRange(0), default=50, help="How many; default 50, 0 is all.")
@click.option("--all", "everything", is_flag=True, help="Also those of subagents, which are part of others.")
@json_option
@click.pass_obj
def list_sessions(options: GlobalOptions, last: int, everything: bool, as_json: bool) -> int:
    """List the sessions, the latest first."""
    rows = store_of(options).sessions(most=last or -1, subagents=everything)
    if as_json:
        for row in rows:
            show_line(row_object(row))
    elif rows:
        show_rows([(row.id[:12], row.agent, row.state, ago(row.updated), row.title) for row in rows])
    else:
        show_note("there are no sessions yet; `toolyard chat` begins one")
    return 0


@sessions.command(short_help="Show what was said and done.")
@id_argument
@json_option
@click.pass_obj
def show(options: GlobalOptions, id: str, as_json: bool) -> int:
    """Show a session: what was said, what was called, what came of it."""
    return show_whole(options, id, as_json=as_json, everything=False)


@sessions.command(short_help="Show a session again, event by event, without a model.")
@id_argument
@json_option
@click.pass_obj
def replay(options: GlobalOptions, id: str, as_json: bool) -> int:
    """Show everything that happened in a session, also what was gone back from; nothing is run."""
    return show_whole(options, id, as_json=as_json, everything=True)


@sessions.command(short_help="Find words in all sessions.")
@click.argument("words", nargs=-1, required=True)
@json_option
@click.pass_obj
def search(options: GlobalOptions, words: tuple[str, ...], as_json: bool) -> int:
    """Find where all of WORDS stand."""
    store = store_of(options)

    async def find() -> int:
        found = await store.search(" ".join(words))
        if as_json:
            for one in found:
                show_line({"id": one.session, "seq": one.seq, "excerpt": one.excerpt})
        else:
            show_rows([(one.session[:12], str(one.seq), one.excerpt) for one in found] or [("", "", "nothing found")])
        return 0 if found else 1

    return run_to_end(find())


@sessions.command(short_help="Go on with a session.")
@id_argument
@click.option(
    "-p", "--print", "prompt", metavar="PROMPT", help="What to say; without it a turn that was cut off goes on."
)
@json_option
@answer_option
@late_answer_option
@click.pass_obj
def resume(
    options: GlobalOptions, id: str, prompt: str | None, as_json: bool, answer: bool | None, late_answer: str | None
) -> int:
    """Go on with a session, as `toolyard chat --session ID` does."""
    from toolyard.cli.chat.command import is_at_terminal, one_turn
    from toolyard.cli.chat.piped import read_piped, with_piped

    if prompt is None and not as_json and answer is None and late_answer is None and is_at_terminal():
        from toolyard.cli.chat.interactive import converse

        return run_to_end(converse(options, None, session=id, model=None, agent=None))
    if prompt:
        prompt = read_piped(patient=True) if prompt == "-" else with_piped(prompt)
    return run_to_end(
        one_turn(options, prompt, id, None, None, as_json=as_json, answer=answer, late_answer=late_answer)
    )


@sessions.command(short_help="Begin a new session with the beginning of another.")
@id_argument
@click.option("--at", metavar="N", type=int, help="The first event that the new one does not have; default all are.")
@json_option
@click.pass_obj
def fork(options: GlobalOptions, id: str, at: int | None, as_json: bool) -> int:
    """Begin a new session that has what happened in another up to an event."""
    from toolyard.agents.sessions.copying import fork_session

    row = run_with(fork_session(store_of(options), id, at))
    show_line(row_object(row)) if as_json else show_text(f"{row.id}\n")
    return 0


@sessions.command(short_help="Print a session as JSON lines.")
@id_argument
@click.option("--format", "form", type=click.Choice(["jsonl", "atif"]), default="jsonl", help="Default jsonl.")
@click.pass_obj
def export(options: GlobalOptions, id: str, form: str) -> int:
    """Print a session whole: `import` reads it, and atif is a form that other programs read."""
    from toolyard.agents.sessions.trajectory import as_trajectory
    from toolyard.cli.chat.session_text import exported_lines, known_secrets

    store = store_of(options)
    row = found(store, id)
    if form == "atif":
        show_line(known_secrets().redact_all(as_trajectory(row, store.events(row.id))))
        return 0
    for line in exported_lines(store, row):
        show_line(line)
    return 0


@sessions.command("import", short_help="Read a session that was exported.")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@json_option
@click.pass_obj
def import_session(options: GlobalOptions, file: Any, as_json: bool) -> int:
    """Read a session from FILE (- for standard input), under a new id if its own is taken."""
    from toolyard.agents.sessions.copying import import_lines

    row = run_with(import_lines(store_of(options), file), about=f"{file.name}: ")
    show_line(row_object(row)) if as_json else show_text(f"{row.id}\n")
    return 0


@sessions.command("set", short_help="Set the controls of a session.")
@id_argument
@click.argument("settings", nargs=-1, required=True, metavar="CONTROL=VALUE…")
@json_option
@click.pass_obj
def set_controls(options: GlobalOptions, id: str, settings: tuple[str, ...], as_json: bool) -> int:
    """Set what `toolyard config ui --session ID` shows, for this session; without a VALUE the default is back.

    A value is JSON or a text: `sessions set 3f2a request_options.temperature=0.2 model=gpt-5`.
    """
    return run_to_end(change_controls(options, id, settings, as_json=as_json))


@sessions.command(short_help="Remove a session.")
@id_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete(options: GlobalOptions, id: str, yes: bool, as_json: bool) -> int:
    """Remove a session with all that it has."""
    store = store_of(options)
    row = found(store, id)
    if not yes and not confirmed(f"Remove '{row.title or row.id}'?"):
        return 3
    from toolyard.agents.sessions.deletion import delete_session

    freed = run_with(delete_session(store, row.id))
    if as_json:
        show_line({"id": row.id, "freed": freed})
    elif freed:
        show_note(f"states of its workspace that no other session names are gone, {freed:,} bytes", "faint")
    return 0


async def change_controls(options: GlobalOptions, id: str, settings: tuple[str, ...], *, as_json: bool) -> int:
    from toolyard.agents.sessions.database import StoreError
    from toolyard.cli.chat.controls import read_value, show_controls
    from toolyard.errors import ControlError

    async with open_application(options) as app:
        try:
            session = await app.open_session(id=id)
            for one in settings:
                name, equals, value = one.partition("=")
                if not equals:
                    raise click.UsageError(f"'{one}' is no CONTROL=VALUE")
                await session.set_control(name, read_value(value))
            schema = await session.ui_schema()
        except (StoreError, ControlError) as error:
            raise click.UsageError(str(error)) from None
    if as_json:
        for control in schema.controls:
            show_line(control)
    else:
        show_controls(schema)
    return 0


def store_of(options: GlobalOptions) -> SessionStore:
    from toolyard.agents.sessions.database import StoreError
    from toolyard.agents.sessions.store import SessionStore

    try:
        return SessionStore(sessions_place(options) / "sessions.sqlite")
    except StoreError as error:
        raise click.UsageError(str(error)) from None


def found(store: SessionStore, id: str) -> SessionRow:
    from toolyard.agents.sessions.store import UnknownSession

    try:
        return store.session(id)
    except UnknownSession as error:
        raise click.UsageError(str(error)) from None


def run_with(work: Any, *, about: str = "") -> Any:
    import asyncio

    from toolyard.agents.sessions.database import StoreError

    try:
        return asyncio.run(work)
    except StoreError as error:
        raise click.UsageError(f"{about}{error}") from None


def show_whole(options: GlobalOptions, id: str, *, as_json: bool, everything: bool) -> int:
    from toolyard.cli.chat.session_text import show_session

    store = store_of(options)
    show_session(store, found(store, id), as_json=as_json, everything=everything)
    return 0


def row_object(row: SessionRow) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(row))


def ago(then: float) -> str:
    seconds = max(0, int(time.time() - then))
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {name} ago"
    return f"{seconds} s ago"

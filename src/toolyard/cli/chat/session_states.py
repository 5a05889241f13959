"""`toolyard sessions rewind`, `redo` and `diff`: what turns changed, taken back and brought back."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from toolyard.cli.application import open_application
from toolyard.cli.render import ask, is_terminal, show_foreign, show_line, show_note
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from toolyard.agents.checkpoints.changes import Change
    from toolyard.agents.session import AgentSession
    from toolyard.agents.turn_states import PlannedRewind, Rewind
    from toolyard.cli.main import GlobalOptions

json_option = click.option("--json", "as_json", is_flag=True, help="One object a line.")
id_argument = click.argument("id")
yes_option = click.option(
    "--yes", is_flag=True, help="Do it; without this, what would change is shown and asked about."
)


@click.command(short_help="Go back to before a turn.")
@id_argument
@click.option("--to", metavar="N", type=int, help="Before this event; default before the last turn.")
@click.option(
    "--path", "paths", metavar="PATH", multiple=True, help="Only this file or folder, and what was said stays."
)
@click.option("--files/--no-files", default=True, help="Whether the files go back, too; default yes.")
@click.option(
    "--conversation/--no-conversation", default=None, help="Whether what was said does; default yes, with --path no."
)
@yes_option
@json_option
@click.pass_obj
def rewind(
    options: GlobalOptions,
    id: str,
    to: int | None,
    paths: tuple[str, ...],
    files: bool,
    conversation: bool | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Take back what happened in a session from an event on: what was said, the files, or both; `redo` undoes it."""
    said = not paths if conversation is None else conversation

    async def go_back() -> int:
        async with opened(options, id) as session:
            planned = await session.plan_rewind(to, files=files, paths=paths)
            if not agreed(planned, f"Go back to before event {planned.to}?", yes=yes):
                return 3
            done = await session.rewind(planned.to, files=files, conversation=said, paths=paths)
        where = f"goes on from before event {done.to}" if said else f"has its files from before event {done.to}"
        return show_done(session.id, done, where, as_json=as_json)

    return run_to_end(go_back())


@click.command(short_help="Bring back what was gone back from.")
@id_argument
@yes_option
@json_option
@click.pass_obj
def redo(options: GlobalOptions, id: str, yes: bool, as_json: bool) -> int:
    """Take the last `rewind` of a session back, as long as nothing was said since; again for the one before it."""

    async def go_forward() -> int:
        async with opened(options, id) as session:
            planned = await session.plan_redo()
            if not agreed(planned, "Bring back what was gone back from?", yes=yes):
                return 3
            done = await session.redo()
        return show_done(session.id, done, "is as it was before it went back", as_json=as_json)

    return run_to_end(go_forward())


@click.command(short_help="Show what a turn changed.")
@id_argument
@click.option("--turn", metavar="N", type=int, help="Which; default the last that changed something.")
@json_option
@click.pass_obj
def diff(options: GlobalOptions, id: str, turn: int | None, as_json: bool) -> int:
    """Print what a turn changed in the workspace, as a patch."""

    async def show() -> int:
        async with opened(options, id) as session:
            patch = await session.turn_diff(turn)
        if as_json:
            show_line({"id": session.id, "turn": turn, "patch": patch})
        elif patch:
            show_foreign(patch)
        else:
            show_note("nothing was changed, as far as is known", "faint")
        return 0

    return run_to_end(show())


@asynccontextmanager
async def opened(options: GlobalOptions, id: str) -> AsyncIterator[AgentSession]:
    """A session for as long as something is done with it; what cannot be done is wrong usage."""
    from toolyard.agents.checkpoints.store import CheckpointError
    from toolyard.agents.sessions.database import StoreError
    from toolyard.errors import ProviderError

    async with open_application(options) as app:
        try:
            yield await app.open_session(id=id)
        except (StoreError, CheckpointError, ProviderError) as error:
            raise click.UsageError(str(error)) from None


def agreed(planned: PlannedRewind, question: str, *, yes: bool) -> bool:
    """Show what would change, and have somebody agree to it."""
    for change in planned.changes:
        show_note(f"  {sentence(change)}")
    return yes or confirmed(question)


def show_done(session: str, done: Rewind, where: str, *, as_json: bool) -> int:
    restored = done.restored
    left = [f"{one.path}: {one.reason}" for one in restored.restored.left_alone] if restored else []
    if as_json:
        safety = restored.safety.id if restored else None
        changed = restored.restored.changed if restored else []
        show_line(
            {"id": session, "to": done.to, "files": done.files, "safety": safety, "changed": changed, "left": left}
        )
        return 0
    for one in left:
        show_note(f"left alone: {one}", "warning")
    show_note(f"{session} {where}", "good")
    return 0


def confirmed(question: str) -> bool:
    """Whether a person at the terminal says yes; without one, no."""
    if not is_terminal(sys.stdin):
        show_note(f"{question} Nobody is at a terminal to say so; --yes does it.", "warning")
        return False
    return ask(question)


def sentence(change: Change) -> str:
    from toolyard.core.visible_text import escaped

    verbs = {"added": "bring back", "removed": "remove", "changed": "change"}
    return f"{verbs[change.verb]} {escaped(change.path)}"

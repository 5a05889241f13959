"""`toolyard exec`: a command in the one-shot shell, along the one path of every call."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from toolyard.cli.application import agent_option, known_agent, open_application
from toolyard.cli.call import StreamedOutput, Watcher, approver_for, exit_code_of, explain, status_without
from toolyard.cli.render import is_terminal, show_json, show_note, show_piece
from toolyard.cli.running import postpone, run_to_end
from toolyard.core.reach import NAMED_REACHES

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from toolyard.app import AgentApplication
    from toolyard.cli.main import GlobalOptions
    from toolyard.core.events import Event
    from toolyard.core.tool import JsonObject, ToolResult


SHELL = "shell"
TIMED_OUT = 124
MORE_TIME = "give it more time with `--timeout S`"


@click.command("exec")
@click.argument("command")
@click.option("--timeout", metavar="S", help="How many seconds the command may take; default 5.")
@click.option("--reach", type=click.Choice(NAMED_REACHES), help="How far it may reach; default as the preset says.")
@agent_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as a record.")
@click.pass_obj
def execute(
    options: GlobalOptions, command: str, timeout: str | None, reach: str | None, agent: str | None, as_json: bool
) -> int:
    """Run COMMAND in a bash of its own, as a model does with the tool `shell`.

    What it prints appears as it comes. Exit status: the command's own, or 124 it took too long, 1 it could not be
    started, 2 wrong usage or no configuration that can be read, 3 refused, 130 interrupted.
    """
    # The number goes as it was typed, since a time-out names it as it was given; decoding is lenient.
    given = {"command": command, "timeout": timeout, "reach": reach}
    arguments = {name: value for name, value in given.items() if value is not None}
    postpone("asyncio")
    application = open_application(options, approver=approver_for(), only="shell:command")
    application.begin()  # so that the keeper starts while the rest is imported
    return run_to_end(execute_once(application, arguments, agent, as_json))


async def execute_once(application: AgentApplication, arguments: JsonObject, agent: str | None, as_json: bool) -> int:
    async with application as app:
        agent = known_agent(app.agents(), agent)
        if as_json:
            watcher = Watcher(quiet=True)
            result = await app.call_tool(SHELL, arguments, agent=agent, on_event=watcher.see)
            show_json(watcher.record(SHELL, result))
        else:
            output = CommandOutput()
            result = await output.follow(app.call_tool(SHELL, arguments, agent=agent, on_event=output.see))
            output.finish(result)
        explain(app, result)
        return status_without(app) if result.failure == "unknown_tool" else exit_status(result)


def exit_status(result: ToolResult) -> int:
    if result.failure == "timeout":
        return TIMED_OUT
    return result.exit_code if result.ok and result.exit_code is not None else exit_code_of(result)


class CommandOutput:
    def __init__(self) -> None:
        self._pieces = StreamedOutput()
        self._line_is_open = False

    async def follow(self, call: Coroutine[Any, Any, ToolResult]) -> ToolResult:
        """The result of the call, if all of its output could be shown."""
        import asyncio

        running = asyncio.ensure_future(call)
        self._pieces.give_up = running.cancel
        try:
            return await running
        except asyncio.CancelledError:
            if self._pieces.broken:
                raise self._pieces.broken from None
            raise

    def see(self, event: Event) -> None:
        from toolyard.core.events import OutputChunk

        if isinstance(event, OutputChunk):
            self._line_is_open = not event.text.endswith("\n")
            self._pieces.show(event.text, is_error=event.stream == "stderr")

    def finish(self, result: ToolResult) -> None:
        """End an open line on a terminal; say what else there is to say, but nothing that was shown already."""
        if self._line_is_open and is_terminal(sys.stdout):
            show_piece("\n")
        if result.failure == "timeout":
            show_note(result.text.partition("\n")[0], "error", hint=MORE_TIME)
        elif not result.ok and result.failure != "unknown_tool":  # of which a problem tells the reason
            show_note(result.text, "error")
        elif added := added_to(result):
            show_note(added)


def added_to(result: ToolResult) -> str:
    """What was added to what a command printed, such as that a file of its was moved away."""
    printed = (result.data or {}).get("context")
    is_more = isinstance(printed, str) and result.text.startswith(printed)
    return result.text[len(printed) :].strip() if is_more and printed else ""

"""`toolyard call` and `toolyard preview`: a tool without a model."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from toolyard.cli.opening import agent_of, open_application
from toolyard.cli.render import LiveOutput, show_json, show_note, show_problems, show_text

if TYPE_CHECKING:
    from toolyard.app import AgentApplication
    from toolyard.cli.main import Places
    from toolyard.core.events import Event
    from toolyard.core.tool import ToolResult
    from toolyard.permissions.verdict import Approver

__all__ = ["call", "preview"]

EXIT_CODES = {"unknown_tool": 2, "invalid_arguments": 2, "denied": 3, "cancelled": 130}


def complete_tool(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001
    """Names of tools, for the shell's completion."""
    from toolyard.cli.main import Places

    options = ctx.find_root().params
    places = Places(config=options.get("config"), sessions=options.get("sessions"), workspace=None)
    return [
        CompletionItem(spec.name, help=spec.description)
        for spec in open_application(places).tool_specs()
        if spec.name.startswith(incomplete)
    ]


@click.command()
@click.argument("tool", shell_complete=complete_tool)
@click.argument("arguments", metavar="[ARGS_JSON|-]", default="{}")
@click.option("--agent", metavar="A", help="As which agent; default the only one, or 'default'.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result record.")
@click.option("--yes/--no", "answer", default=None, help="Answer every question about permission.")
@click.pass_obj
def call(places: Places, tool: str, arguments: str, agent: str | None, as_json: bool, answer: bool | None) -> int:
    """Call TOOL with a JSON object, or with what standard input holds (-).

    The final text goes to standard output; on a terminal partial output appears as it comes. Exit status: 0 done, 1 the
    tool failed, 2 wrong usage or arguments, 3 refused.
    """
    return asyncio.run(call_once(places, tool, read_arguments(arguments), agent, as_json, approver_for(answer)))


@click.command()
@click.argument("tool", shell_complete=complete_tool)
@click.argument("arguments", metavar="ARGS_JSON", default="{}")
@click.option("--agent", metavar="A", help="As which agent; default the only one, or 'default'.")
@click.pass_obj
def preview(places: Places, tool: str, arguments: str, agent: str | None) -> int:
    """Print in one line what calling TOOL would do."""
    return asyncio.run(preview_once(places, tool, read_arguments(arguments), agent))


def read_arguments(text: str) -> str:
    return sys.stdin.read() if text == "-" else text


def approver_for(answer: bool | None) -> Approver | None:
    if answer is None:
        return None
    from toolyard.permissions.verdict import answer_always

    return answer_always(allowed=answer, reason="answered with --yes" if answer else "answered with --no")


async def call_once(
    places: Places, tool: str, arguments: str, agent: str | None, as_json: bool, approver: Approver | None
) -> int:
    async with open_application(places, approver=approver) as app:
        watcher = Watcher(quiet=as_json)
        with ending_on_signals():
            result = await app.call_tool(tool, arguments, agent=agent_of(app, agent), on_event=watcher.see)
        if as_json:
            show_json(watcher.record(tool, result))
        elif result.ok or result.failure in ("exit_code", "timeout"):
            watcher.output.finish(result.text)
        else:
            show_note(result.text, "error")
        explain_missing(app, result)
        return 0 if result.ok else EXIT_CODES.get(result.failure or "", 1)


async def preview_once(places: Places, tool: str, arguments: str, agent: str | None) -> int:
    async with open_application(places) as app:
        shown = await app.preview_tool(tool, arguments, agent=agent_of(app, agent))
        if isinstance(shown, str):
            show_text(shown + "\n")
            return 0
        show_note(shown.text, "error")
        explain_missing(app, shown)
        return EXIT_CODES.get(shown.failure or "", 1)


def explain_missing(app: AgentApplication, result: ToolResult) -> None:
    """A tool may be unknown because its plugin did not load."""
    if result.failure == "unknown_tool":
        show_problems(app.problems())


class Watcher:
    """Shows a call as it goes on, and gathers what the record needs."""

    def __init__(self, *, quiet: bool) -> None:
        self.output = LiveOutput()
        self._quiet = quiet
        self._finished: dict[str, Any] = {}
        self._preview = ""

    def see(self, event: Event) -> None:
        """Hear of one event."""
        from toolyard.core.events import CallFinished, OutputChunk, PreviewReady

        match event:
            case PreviewReady(preview=text):
                self._preview = text
                if text and not self._quiet and sys.stderr.isatty():
                    show_note(text, "faint")
            case OutputChunk(stream=stream, text=text) if not self._quiet:
                self.output.add(text, is_error=stream == "stderr")
            case CallFinished(call_id=call_id, duration=duration):
                self._finished = {"call_id": call_id, "duration_ms": round(duration * 1000, 3)}

    def record(self, tool: str, result: ToolResult) -> dict[str, Any]:
        """The result as a record."""
        truncated = result.truncated
        return {
            **self._finished,
            "tool": tool,
            "ok": result.ok,
            "text": result.text,
            "failure": result.failure,
            "exit_code": result.exit_code,
            "signal": result.signal,
            "timed_out": result.failure == "timeout",
            "preview": self._preview,
            "bytes_out": result.bytes_out,
            "truncated": truncated
            and {
                "omitted_bytes": truncated.omitted_bytes,
                "omitted_lines": truncated.omitted_lines,
                "kept_at": truncated.kept_at,
            },
            "data": result.data,
        }


@contextlib.contextmanager
def ending_on_signals() -> Any:
    """SIGTERM and SIGHUP end the call like Ctrl-C does, so that the tool is ended in good order."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    numbers = (signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, lambda: task and task.cancel())
    try:
        yield
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)

"""`toolyard call` and `toolyard preview`: a tool without a model."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import click

from toolyard.cli.application import agent_option, known_agent, open_application, tool_argument
from toolyard.cli.render import is_terminal, relative, show_json, show_note, show_piece, show_problems, show_text
from toolyard.cli.running import run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolyard.app import AgentApplication
    from toolyard.cli.main import GlobalOptions
    from toolyard.core.events import Event
    from toolyard.core.tool import ToolResult
    from toolyard.permissions.verdict import Approver


EXIT_CODES = {"unknown_tool": 2, "invalid_arguments": 2, "denied": 3, "cancelled": 130}
OF_THE_TOOL = (None, "exit_code", "timeout")
"""Endings whose text is the tool's; the text of any other is ours."""


@click.command()
@tool_argument
@click.argument("arguments", metavar="[ARGS_JSON|-]", default="{}")
@agent_option
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as a record.")
@click.option("--yes/--no", "answer", default=None, help="Answer every question about permission; default yes.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    help="How many seconds it may take, instead of the usual limit; timeoutSec of a manifest comes first.",
)
@click.option("--ask", is_flag=True, help="Be asked as an agent's person would be, where the rules leave it open.")
@click.pass_obj
def call(
    options: GlobalOptions,
    tool: str,
    arguments: str,
    agent: str | None,
    as_json: bool,
    answer: bool | None,
    timeout: float | None,
    ask: bool,
) -> int:
    """Call TOOL with a JSON object, or with what standard input holds (-).

    The final text goes to standard output; on a terminal partial output appears as it comes. File tools change files
    that no call has read before: you know them. Exit status: 0 done, 1 the tool failed, 2 wrong usage or arguments, 3
    refused, 130 interrupted.
    """
    if ask and answer is not None:
        raise click.UsageError("--ask asks, --yes and --no answer: give one of them")
    approver = approver_for(answer, ask=ask)
    return run_to_end(call_once(options, tool, read_arguments(arguments), agent, as_json, approver, timeout))


@click.command()
@tool_argument
@click.argument("arguments", metavar="[ARGS_JSON|-]", default="{}")
@agent_option
@click.pass_obj
def preview(options: GlobalOptions, tool: str, arguments: str, agent: str | None) -> int:
    """Print in one line what calling TOOL would do."""
    return run_to_end(preview_once(options, tool, read_arguments(arguments), agent))


def read_arguments(text: str) -> str:
    """Read the arguments, which JSON says are UTF-8."""
    try:
        if text == "-":
            if sys.stdin is None:
                raise click.UsageError("standard input is closed, so there are no arguments to read (-)")
            return sys.stdin.buffer.read().decode("utf-8-sig")
        text.encode("utf-8")  # bytes of the command line that are no UTF-8 have become surrogates
    except UnicodeError:
        source = "standard input" if text == "-" else "ARGS_JSON"
        raise click.UsageError(f"{source} is not UTF-8 text, which JSON has to be") from None
    return text


def approver_for(answer: bool | None = None, *, ask: bool = False) -> Approver:
    """Answer yes unless told otherwise: who types a call has decided on it. A rule that denies it still does."""
    if ask:
        from toolyard.cli.asking.approver import TerminalApprover

        return TerminalApprover()
    from toolyard.permissions.verdict import answer_always

    if answer is None:
        from toolyard.cli.asking.approver import TypedApprover

        return TypedApprover()
    return answer_always(allowed=answer, reason="answered with --yes" if answer else "answered with --no")


async def call_once(
    options: GlobalOptions,
    tool: str,
    arguments: str,
    agent: str | None,
    as_json: bool,
    approver: Approver,
    timeout: float | None,
) -> int:
    show_tool_log()
    async with open_application(options, approver=approver) as app:
        watcher = Watcher(quiet=as_json)
        agent = known_agent(app.agents(), agent)
        given = as_meant(app, agent, tool, arguments)
        result = await app.call_tool(tool, given, agent=agent, timeout=timeout, by_person=True, on_event=watcher.see)
        if as_json:
            show_json(watcher.record(tool, result))
        elif result.failure in OF_THE_TOOL:
            watcher.output.finish(result)
        else:
            show_note(result.text, "error")
        if result.attachments and not as_json:
            save_attachments(result, app.output_folder())
        return conclude(app, agent, tool, result)


def save_attachments(result: ToolResult, folder: Path) -> None:
    """Keep what is no text where long output is kept too, and say where."""
    from mimetypes import guess_extension

    from toolyard.core.content import LinkPart, TextPart, in_words
    from toolyard.core.visible_text import escaped
    from toolyard.process.output import open_new

    for part in result.attachments:
        if isinstance(part, TextPart | LinkPart):
            show_note(escaped(in_words(part)), "faint")
            continue
        path = folder / f"attached-{os.urandom(8).hex()}{guess_extension(part.media_type) or ''}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with open_new(path) as file:
                file.write(part.data)
        except OSError as error:
            show_note(f"{escaped(in_words(part))} cannot be saved as {path}: {error.strerror}", "warning")
            continue
        show_note(f"{escaped(in_words(part))} saved as {path}", "faint")


async def preview_once(options: GlobalOptions, tool: str, arguments: str, agent: str | None) -> int:
    async with open_application(options) as app:
        agent = known_agent(app.agents(), agent)
        shown = await app.preview_tool(tool, as_meant(app, agent, tool, arguments), agent=agent, by_person=True)
        if isinstance(shown, str):
            if shown:
                show_text(shown + "\n")
            else:
                show_note(f"{tool} gives no preview of this call", "warning")
            explain(app, None)
            return 0
        show_note(shown.text, "error")
        return conclude(app, agent, tool, shown)


def show_tool_log() -> None:
    """Show an author what a tool prints beside its answer, on standard error and with nothing around it."""
    import logging

    class LogHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            show_note(record.getMessage(), "faint")

    log = logging.getLogger("toolyard.node")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(LogHandler())


def as_meant(app: AgentApplication, agent: str, tool: str, arguments: str) -> str:
    """Wrap the text that was typed for a tool that takes free text, unless it is the JSON object already."""
    from toolyard.core.tool import TextInput

    spec = next((spec for spec in app.tool_specs(agent) if spec.name == tool), None)
    if spec is None or not isinstance(spec.input, TextInput):
        return arguments
    with contextlib.suppress(ValueError):
        value = json.loads(arguments)
        if isinstance(value, dict) and isinstance(value.get("input"), str) and len(value) == 1:
            return arguments
    return json.dumps({"input": arguments})


def explain(app: AgentApplication, result: ToolResult | None) -> None:
    """Show the errors of the configuration, and its warnings too when the tool was not found."""
    missing = result is not None and result.failure == "unknown_tool"
    show_problems(problem for problem in app.problems(of_requests=False) if missing or problem.severity == "error")


def conclude(app: AgentApplication, agent: str, tool: str, result: ToolResult) -> int:
    """Say what else there is to know, such as that the tool is off; returns the exit code."""
    for found in app.plugins(agent) if result.failure == "unknown_tool" else ():
        if found.tool and found.tool.spec.name == tool and not found.on:
            place = f" ({relative(str(found.where))})" if found.where else ""
            show_note(f"'{tool}' of the plugin '{found.plugin}' is off: {found.reason}{place}", "warning")
    explain(app, result)
    return exit_code_of(result)


def status_without(app: AgentApplication) -> int:
    """The exit status where there is no shell to run anything in."""
    return 1 if app.has_configuration else 2


def exit_code_of(result: ToolResult) -> int:
    return 0 if result.ok else EXIT_CODES.get(result.failure or "", 1)


class Watcher:
    """Shows a call as it goes on, and gathers what the record needs."""

    def __init__(self, *, quiet: bool) -> None:
        self.output = LiveOutput()
        self._quiet = quiet
        self._finished: dict[str, Any] = {}
        self._preview = ""

    def see(self, event: Event) -> None:
        from toolyard.core.events import CallFinished, OutputChunk, PreviewReady

        match event:
            case PreviewReady(preview=text):
                self._preview = text
                if text and not self._quiet and is_terminal(sys.stderr):
                    from toolyard.core.visible_text import escaped

                    show_note(escaped(text), "faint")
            case OutputChunk(stream=stream, text=text) if not self._quiet:
                self.output.add(text, is_error=stream == "stderr")
            case CallFinished(call_id=call_id, duration=duration):
                self._finished = {"call_id": call_id, "duration_ms": round(duration * 1000, 3)}

    def record(self, tool: str, result: ToolResult) -> dict[str, Any]:
        from msgspec import to_builtins
        from msgspec.structs import asdict

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
            "truncated": asdict(result.truncated) if result.truncated else None,
            "data": result.data,
            "attachments": to_builtins(result.attachments),
        }


class StreamedOutput:
    """Shows pieces of output at once, into a pipe too; when nobody takes them any more, the call is given up.

    The path of a call lets no observer break it, so what breaks here must end the call explicitly.
    """

    def __init__(self) -> None:
        self.give_up: Callable[[], object] | None = None
        self.broken: click.ClickException | None = None
        """Why nothing more can be shown."""

    def show(self, text: str, *, is_error: bool = False) -> None:
        if self.broken:
            return
        try:
            show_piece(text, is_error=is_error)
        except click.ClickException as error:
            self.broken = error
            if self.give_up:
                self.give_up()


class LiveOutput:
    """Shows pieces on a terminal only; remembers of them no more than whether they were the final text."""

    def __init__(self) -> None:
        self._live = is_terminal(sys.stdout)
        self._shown = sha256()
        self._space = ""
        """Blanks and line ends that were shown after the last of anything else."""
        self._begun = False
        self._line_is_open = False

    def add(self, text: str, *, is_error: bool) -> None:
        if not self._live:
            return
        show_piece(text, is_error=is_error)
        if not is_error:
            self._line_is_open = not text.endswith("\n")
            self._remember(text)

    def finish(self, result: ToolResult) -> None:
        """Show the final text, unless all of it has been shown."""
        if self._line_is_open:
            show_piece("\n")
        if result.ok and self._live and result.truncated:
            left_out = result.truncated.omitted_bytes
            show_note(f"(too long for a result: a model sees it without {left_out} bytes of its middle)", "faint")
        elif not self._live or self._shown.digest() != sha256(encoded(result.text.strip())).digest():
            show_text(result.text)

    def _remember(self, text: str) -> None:
        """Leave out blanks at both ends: some results are the output without them, and need not be shown again."""
        text = self._space + text if self._begun else text.lstrip()
        seen = text.rstrip()
        self._begun = self._begun or bool(seen)
        self._shown.update(encoded(seen))
        self._space = text[len(seen) :]


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

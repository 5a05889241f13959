"""`toolyard`: nouns and verbs. Nothing but click is imported until a command runs."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from toolyard import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


COMMANDS = {
    "init": ("toolyard.cli.init:init", "Write a first configuration for a folder."),
    "tools": ("toolyard.cli.tools:tools", "List the tools of an agent."),
    "call": ("toolyard.cli.call:call", "Call a tool."),
    "preview": ("toolyard.cli.call:preview", "Say what a call would do."),
    "exec": ("toolyard.cli.exec:execute", "Run a command in the one-shot shell."),
    "shell": ("toolyard.cli.shell.command:shell", "Sit at the live session of the tool bash."),
    "chat": ("toolyard.cli.chat.command:chat", "Talk with an agent."),
    "sessions": (
        "toolyard.cli.chat.sessions:sessions",
        "Look after conversations: list, show, search, resume, fork, rewind …",
    ),
    "serve": ("toolyard.cli.serve.command:serve", "Give the tools to other programs: MCP over stdio or HTTP."),
    "plugins": ("toolyard.cli.plugins:plugins", "Look after plugins: refresh, status, login, logout."),
    "config": (
        "toolyard.cli.config:config",
        "Look into the configuration: check, show, explain, system-message, ui, schema.",
    ),
    "doctor": ("toolyard.cli.doctor.command:doctor", "Look whether everything is there that tools need."),
    "permissions": (
        "toolyard.cli.permissions:permissions",
        "Say what may run: check, test, list, allow, deny, revoke.",
    ),
    "trust": (
        "toolyard.cli.trust.command:trust",
        "Accept files that tools may have changed: list, accept, revoke.",
    ),
    "tool": ("toolyard.cli.tool:tool", "Write a tool: new, check, test."),
    "audit": ("toolyard.cli.audit:audit", "Look into the audit log: show, verify."),
    "tour": ("toolyard.cli.tour:tour", "Take a short tour of the built-in tools."),
    "completion": ("toolyard.cli.completion:completion", "Print a shell's completion script."),
}


class GlobalOptions(NamedTuple):
    """The options before the command, as they were typed."""

    config: str | None
    sessions: str | None
    workspace: str | None


class OrderedGroup(click.Group):
    """Lists its commands in the order in which they are written."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(self.commands)


class LazyGroup(click.Group):
    """Knows its commands by name and sentence, and imports one only when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        options = click.Command.shell_complete(self, ctx, incomplete)
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        return [*(CompletionItem(name, help=COMMANDS[name][1]) for name in names), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is none of that name."""
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing:
            import difflib

            close = difflib.get_close_matches(name, COMMANDS, n=1)
            ctx.fail(f"no such command '{name}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Configuration; default ./toolyard.json, else ~/.config/toolyard/toolyard.json, else the built-in one.",
)
@click.option(
    "--sessions",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Where sessions and the audit log are kept; default ~/.local/state/toolyard/sessions.",
)
@click.option(
    "--workspace",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="The folder tools work in; default the current one.",
)
@click.version_option(__version__, prog_name="toolyard")
@click.pass_context
def main(ctx: click.Context, config: str | None, sessions: str | None, workspace: str | None) -> None:
    """Toolyard gives AI agents their tools."""
    ctx.obj = GlobalOptions(config=config, sessions=sessions, workspace=workspace)


def run(argv: list[str] | None = None) -> None:
    """Run a command line to its end, and end with its exit code."""
    if os.name == "nt":
        sys.exit("toolyard runs on Linux and macOS; on Windows use it inside WSL 2")
    leave(exit_code_of(argv))


def leave(code: int) -> NoReturn:
    """End the process without taking the interpreter apart, which would take longer than many a command does."""
    if threading.active_count() > 1:  # somebody's thread, whose end is waited for
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads any more
            if stream is not None:
                stream.flush()
    os._exit(code)


def exit_code_of(argv: list[str] | None) -> int:
    """0 done, 1 the tool failed, 2 configuration or usage, 3 refused, 70 our bug, 130 interrupted."""
    try:
        result: Any = main.main(args=argv, prog_name="toolyard", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        return ended(error)
    except (click.Abort, KeyboardInterrupt):
        from toolyard.cli.render import Interrupted

        return ended(Interrupted("interrupted"))
    except Exception:
        from toolyard.cli.render import show_bug

        show_bug()
        return 70


def ended(error: click.ClickException) -> int:
    """Show the error, if somebody still reads, and return its exit code."""
    from toolyard.cli.render import ReaderLeft

    try:
        error.show()
    except (BrokenPipeError, ReaderLeft):
        ReaderLeft("").show()
    return error.exit_code


if __name__ == "__main__":
    run()

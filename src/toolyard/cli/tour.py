"""`toolyard tour`: a short tour of the built-in tools, which leaves nothing behind.

Every step runs the real command line in a temporary folder, and the tour fails when one does not do what it should.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click
import msgspec

from toolyard.cli.application import DEFAULT_CONFIG
from toolyard.cli.main import exit_code_of
from toolyard.cli.render import ReaderLeft, is_terminal, show_note, show_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


NAME = "toolyard"
SAMPLE = "notes.txt"
SAMPLE_TEXT = "bread\nmilk\neggs\nrye flour\n"
AGENT_CONFIG = {
    "plugins": ["shell:session", "path:${env:BUILTIN_PLUGINS}/replay"],
    "provider": "replay",
    "replay": "${env:CONFIG_DIR}/answers.jsonl",
}
"""An agent whose model is a recording: it needs no account and no network, and its calls are real."""
RECORDED = (
    {
        "text": "I will look.",
        "calls": [{"id": "call_1", "name": "bash", "arguments": {"command": "grep -n flour notes.txt"}}],
        "stop": "tool_calls",
    },
    {"text": "Yes: rye flour, in line 4 of notes.txt."},
)


class TourStep(msgspec.Struct, frozen=True, kw_only=True):
    """A command, and what must come of it."""

    about: str
    words: Sequence[str]
    exit_code: int = 0
    shows: str
    with_agent: bool = False
    """Whether it talks to an agent, which has a configuration of its own."""


STEPS = (
    TourStep(about="An agent has tools. These are built in.", words=["tools"], shows="read_line_range"),
    TourStep(
        about="Before a call runs, a person can see what it would do.",
        words=["preview", "read_line_range", '{"path": "notes.txt", "start_line": 2, "end_line": 3}'],
        shows="read notes.txt, lines 2 to 3",
    ),
    TourStep(
        about="A call gives the model what the tool prints.",
        words=["call", "read_line_range", '{"path": "notes.txt", "start_line": 2, "end_line": 3}'],
        shows="milk\neggs\n",
    ),
    TourStep(
        about="A tool of your own begins as a folder with one that works, and its tests.",
        words=["tool", "new", "greet"],
        shows="greet.bash",
    ),
    TourStep(about="Its cases run as a model's calls do.", words=["tool", "test", "greet"], shows="passed"),
    TourStep(
        about='Models get arguments wrong. "2" becomes 2; what cannot be mended is explained, and nothing runs.',
        words=["call", "read_line_range", '{"path": "notes.txt", "start_line": "2", "endLine": 3}'],
        exit_code=2,
        shows="did you mean 'end_line'?",
    ),
    TourStep(
        about="Rules read a command line as bash does, and say for each part who decides.",
        words=["permissions", "check", "cat notes.txt | sh"],
        shows="it runs what it reads from its standard input",
    ),
    TourStep(
        about="A tool that fails says what to do differently. The exit status is 1.",
        words=["call", "read_line_range", '{"path": "recipe.txt", "start_line": 1, "end_line": 9}'],
        exit_code=1,
        shows="recipe.txt",
    ),
)
LAST_STEPS = (
    TourStep(
        about="An agent works with these tools. This one's model is a recording; its calls are real.",
        words=["chat", "-p", "Is there any flour on my list?"],
        shows="rye flour, in line 4",
        with_agent=True,
    ),
    TourStep(
        about="Every conversation is kept, and goes on after whatever happened.",
        words=["sessions", "list"],
        shows="Is there any flour",
    ),
)


@click.command()
def tour() -> int:
    """Take a short tour of the built-in tools, in a temporary folder."""
    return take_tour()


def take_tour() -> int:
    """0 only if each step did what it should."""
    called = how_to_call()
    try:
        show_text("A tour of Toolyard, in a temporary folder with the built-in configuration.\n")
        with tempfile.TemporaryDirectory(prefix="toolyard-tour-") as folder:
            went_well = all([*steps_in(Path(folder))])
        show_heading("Now write your own.", f"{called} tool new my_tool")
        if called != NAME:
            show_text(f"`. {Path(called).with_name('activate')}` lets you call it just `{NAME}`.\n")
        return 0 if went_well else 1
    except ReaderLeft as left:
        left.show()
        return left.exit_code
    except KeyboardInterrupt:
        return 130


def how_to_call() -> str:
    """What to type for `toolyard`, from where the tour was started: its path, where it is not on PATH."""
    program = Path(sys.executable).with_name(NAME)
    if shutil.which(NAME) or not program.exists():
        return NAME
    with contextlib.suppress(OSError):  # the folder may be gone
        if program.is_relative_to(Path.cwd()):
            return str(program.relative_to(Path.cwd()))
    return str(program)


def steps_in(folder: Path) -> Iterator[bool]:
    sessions = folder / "sessions"
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / SAMPLE).write_text(SAMPLE_TEXT, encoding="utf-8")
    for name in ("cache", "state"):
        os.environ[f"XDG_{name.upper()}_HOME"] = str(folder / name)
    os.chdir(workspace)
    agent_config = folder / "agent.json"
    agent_config.write_text(json.dumps(AGENT_CONFIG), encoding="utf-8")
    (folder / "answers.jsonl").write_text("".join(f"{json.dumps(answer)}\n" for answer in RECORDED), encoding="utf-8")
    places = ["--sessions", str(sessions), "--workspace", str(workspace)]
    for step in STEPS:
        yield take(step, ["--config", str(DEFAULT_CONFIG), *places])
    yield show_audit(sessions / "audit")
    for step in LAST_STEPS:
        yield take(step, ["--config", str(agent_config if step.with_agent else DEFAULT_CONFIG), *places])


def take(step: TourStep, options: Sequence[str]) -> bool:
    """Run one step and show its output; returns whether it did what it should."""
    show_heading(step.about, shlex.join(["toolyard", *step.words]))
    out, err = Tee(sys.stdout), Tee(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code_of([*options, *step.words])
    if code == 130:
        raise KeyboardInterrupt
    text = out.text + err.text
    if not text.endswith("\n"):
        show_text("\n")
    if code == step.exit_code and step.shows in text:
        return True
    show_note(f"This is not what should happen: exit status {step.exit_code}, and {step.shows!r} shown.", "error")
    return False


def show_audit(folder: Path) -> bool:
    """Show the last line of the audit log, which is about the call before."""
    log = max(folder.glob("*.ndjson"), default=folder / "none")
    show_heading("Every call is on record, before and after it runs.", f"tail -n 1 SESSIONS/audit/{log.name}")
    last = log.read_text(encoding="utf-8").splitlines()[-1] if log.exists() else "{}"
    show_text(last + "\n")
    record = json.loads(last)
    return (record.get("event"), record.get("failure")) == ("end", "exit_code")


def show_heading(about: str, command: str) -> None:
    show_text(f"\n{about}\n")
    show_text(f"$ {command}\n", "strong")


class Tee(io.TextIOBase):
    """Passes on what is written, and remembers it."""

    def __init__(self, stream: TextIO) -> None:
        self.text = ""
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return self._stream.encoding

    def write(self, text: str) -> int:
        self.text += text
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return is_terminal(self._stream)

    def fileno(self) -> int:
        return self._stream.fileno()

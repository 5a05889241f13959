"""The tool by which Gemini models run commands, and those that look after what was left running."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import Hints

from .shapes import BOOLEAN, CHANGES, COUNT, LOOKS, STRING, schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.plugins.contract import ToolSpec

SECONDS = 300
"""That a command may take."""
USUAL_LINES = 100
MORE_TIME = {r"Give a higher `timeout`.*": "Start it with `is_background` if it needs longer."}
INTEGER: Mapping[str, Any] = {"type": "integer"}


class RunShellCommand:
    """A command line in a new shell, or a job beside the conversation."""

    id = "run_shell_command"
    builds_on = ("shell:command", "shell:session")
    own_words = MORE_TIME

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "command": {**STRING, "description": "The command line for bash."},
            "description": {**STRING, "description": "What it does, in a sentence."},
            "dir_path": {**STRING, "description": "The folder to run it in; the working directory if left out."},
            "is_background": {
                **BOOLEAN,
                "description": "Leave it running, as a server has to be, and get the number of its job at once.",
            },
            "delay_ms": {
                **INTEGER,
                "description": "Of no effect here: read_background_output waits for what a job prints.",
            },
        }
        about = (
            "Run a command with bash -c and get its output. What it leaves running is ended with it; with "
            "is_background it goes on as long as the conversation is open."
        )
        return schemas(self.id, about, properties, ["command"], Hints(destructive=True, parallel=False))

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The same, in its folder."""
        line = payload["command"]
        if folder := payload.get("dir_path"):
            line = f"cd -- {shlex.quote(folder)} || exit\n{line}"
        if payload.get("is_background"):
            return "bash", {"command": line, "background": True}
        return "shell", {"command": line, "timeout": SECONDS}

    def as_answer(self, payload: dict[str, Any], text: str) -> str:
        """With the name of the tool that these models have for jobs."""
        return text.replace("bash_job", "read_background_output") if payload.get("is_background") else text


class ListBackgroundProcesses:
    """The jobs of the conversation."""

    id = "list_background_processes"
    builds_on = "shell:session"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        return schemas(self.id, "List the commands that were left running, by their numbers.", {}, [], LOOKS)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:  # noqa: ARG002 - there is none
        """The list of jobs."""
        return "bash_job", {"action": "list"}


class ReadBackgroundOutput:
    """What a job has printed."""

    id = "read_background_output"
    builds_on = "shell:session"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "pid": {**INTEGER, "description": "The number of the job, as it was told when it was started."},
            "lines": {**COUNT, "description": "How many lines of the end to show; 100 if left out."},
            "delay_ms": {**INTEGER, "description": "How many milliseconds to wait for its end first."},
        }
        about = "Read how a command stands that was left running, and what it printed since the last time."
        return schemas(self.id, about, properties, ["pid"], CHANGES)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Of a job; waiting for its end, if that is wanted."""
        job = {"id": str(payload["pid"])}
        if (delay := payload.get("delay_ms") or 0) > 0:
            return "bash_job", {"action": "wait", "timeout": delay / 1000, **job}
        return "bash_job", {"action": "read", **job}

    def as_answer(self, payload: dict[str, Any], text: str) -> str:
        """How it stands, and the end of what it printed."""
        stands, *printed = text.rstrip("\n").split("\n")
        return "\n".join([stands, *printed[-int(payload.get("lines") or USUAL_LINES) :]])

"""The tools that Codex models know: `shell`, `apply_patch` and `update_plan`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import Hints, JsonInput, TextInput, ToolError, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash")
USUAL_MILLISECONDS = 10_000
STATES = {"pending": " ", "in_progress": "~", "completed": "x"}
GRAMMAR = """\
start: "*** Begin Patch" LF file+ "*** End Patch" LF?

file: added | removed | updated
added: "*** Add File: " PATH LF ("+" REST LF)+
removed: "*** Delete File: " PATH LF
updated: "*** Update File: " PATH LF moved? hunks?

moved: "*** Move to: " PATH LF
hunks: (place | line)+ ("*** End of File" LF)?
place: "@@" (" " PATH)? LF
line: /[-+ ]/ REST LF

PATH: /.+/
REST: /.*/

%import common.LF
"""
"""The language of patches, which is what these models write."""

OWN_WORDS = {r"`timeout` in seconds": "`timeout_ms`"}
"""What the shell calls its argument, and these models theirs."""


class Shell:
    """A command as a list of words, in a new shell."""

    id = "shell"
    builds_on = "shell:command"
    own_words = OWN_WORDS
    asks_reach = 'ask for "sandbox_permissions": "require_escalated" with a justification'

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "command": {"type": "array", "items": {"type": "string"}, "description": "The command and its arguments."},
            "workdir": {"type": "string", "description": "The folder to run it in."},
            "timeout_ms": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "How many milliseconds it may take.",
            },
            "sandbox_permissions": {
                "type": "string",
                "description": "'require_escalated' asks to run it outside of the sandbox; else 'use_default'.",
            },
            "justification": {"type": "string", "description": "Why it must run outside of the sandbox."},
            "prefix_rule": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The first words of commands to allow from now on; a rule is offered anyway.",
            },
        }
        schema = {"type": "object", "properties": properties, "required": ["command"], "additionalProperties": False}
        return [
            ToolSpec(
                name="shell",
                description="Run a command and get its output. The command is a list of words, most often "
                '["bash", "-lc", "…"]. Set workdir rather than to use cd.',
                input=JsonInput(schema=schema),
                hints=Hints(destructive=True),
            )
        ]

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The same as a command line."""
        words = payload["command"]
        if not words:
            raise ToolError("command is empty")
        is_script = len(words) == 3 and words[0] in SHELLS and words[1] in ("-c", "-lc")
        line = words[2] if is_script else shlex.join(words)
        if folder := payload.get("workdir"):
            line = f"cd -- {shlex.quote(folder)} || exit\n{line}"
        call = {"command": line, "timeout": (payload.get("timeout_ms") or USUAL_MILLISECONDS) / 1000}
        if payload.get("sandbox_permissions") == "require_escalated":
            call |= {"reach": "outside", "reason": payload.get("justification", "")}
        return "shell", call


class ApplyPatch:
    """A patch of several files: free text of a grammar where an API has that, else a function with `input`."""

    id = "apply_patch"
    builds_on = "files:more"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        return [
            ToolSpec(
                name="apply_patch",
                description="Edit files by a patch in the format between *** Begin Patch and *** End Patch. The input "
                "is the patch itself, not wrapped in anything.",
                input=TextInput(syntax="lark", grammar=GRAMMAR),
                hints=Hints(parallel=False),
            )
        ]

    def as_call(self, payload: str) -> tuple[str, dict[str, Any]]:
        """The same patch."""
        return "apply_patch", {"input": payload}


class UpdatePlan:
    """The steps of a task, for people to follow; nothing is done with them."""

    id = "update_plan"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        step = {
            "type": "object",
            "properties": {
                "step": {"type": "string", "description": "What is done in it."},
                "status": {"type": "string", "enum": list(STATES), "description": "How far it is."},
            },
            "required": ["step", "status"],
            "additionalProperties": False,
        }
        properties = {
            "explanation": {"type": "string", "description": "Why the plan changes."},
            "plan": {"type": "array", "items": step, "description": "All steps, in order."},
        }
        schema = {"type": "object", "properties": properties, "required": ["plan"], "additionalProperties": False}
        return [
            ToolSpec(
                name="update_plan",
                description="Say which steps a task has and how far each is. At most one is in progress at a time.",
                input=JsonInput(schema=schema),
                hints=Hints(read_only=True),
            )
        ]

    def as_call(self, payload: dict[str, Any]) -> str:
        """The plan as a list."""
        steps = [f"[{STATES[one['status']]}] {one['step']}" for one in payload["plan"]]
        return "\n".join(["Plan updated", *steps])

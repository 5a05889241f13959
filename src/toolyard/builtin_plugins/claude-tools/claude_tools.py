"""The tools that Claude models know without a schema: the text editor and the memory."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import Hints, JsonInput, ToolError, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEMORIES = "/memories"
"""Where the memory begins for a model."""
FOLDER_KEY = "memory_directory"
USUAL_FOLDER = ".memories"
STRING: Mapping[str, Any] = {"type": "string"}
LINES: Mapping[str, Any] = {"type": "integer", "minimum": 0, "description": "After which line to insert."}
EDITING: Mapping[str, Any] = {
    "path": {**STRING, "description": "The path of a file or a folder."},
    "view_range": {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
        "description": "The first line to view and the last, which may be -1 for the end.",
    },
    "file_text": {**STRING, "description": "What a new file holds."},
    "old_str": {**STRING, "description": "The exact text to replace, which must be there once."},
    "new_str": {**STRING, "description": "What comes in its place."},
    "insert_line": LINES,
    "insert_text": {**STRING, "description": "The lines to insert."},
}

OWN_WORDS = {
    r"go on with offset (\d+)": r"go on with view_range [\1, -1]",
    r"\b(old|new)_string\b": r"\1_str",
    r", or say replace_all": "",
}
"""What the file tools call their arguments, and these models theirs."""


def spec(name: str, native: str, description: str, commands: Sequence[str], more: Mapping[str, Any]) -> ToolSpec:
    """Claude gets the native form; every other model the same as a function."""
    command = {**STRING, "enum": list(commands), "description": "What to do."}
    schema = {"type": "object", "properties": {"command": command, **EDITING, **more}, "required": ["command"]}
    return ToolSpec(
        name=name,
        description=description,
        input=JsonInput(schema=schema),
        native={"anthropic": {"type": native, "name": name}},
        hints=Hints(parallel=False),
    )


class TextEditor:
    """Files of the workspace."""

    id = "str_replace_based_edit_tool"
    builds_on = "files:more"
    own_words = OWN_WORDS
    commands = ("view", "create", "str_replace", "insert")

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        about = "View, create and edit files of the workspace. View a file before you edit it."
        return [spec(self.id, "text_editor_20250728", about, self.commands, {})]

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """One of the file tools."""
        return editing(payload, required(payload, "path"))


class Memory:
    """Notes that stay from one conversation to the next, in a folder of the workspace."""

    id = "memory"
    builds_on = "files:more"
    own_words = OWN_WORDS
    config_keys = (FOLDER_KEY,)
    commands = ("view", "create", "str_replace", "insert", "delete", "rename")

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        path = {**STRING, "description": f"A path below {MEMORIES}."}
        about = f"Keep notes in files below {MEMORIES}, which stay from one conversation to the next."
        return [
            spec(self.id, "memory_20250818", about, self.commands, {"path": path, "old_path": path, "new_path": path})
        ]

    def as_call(self, payload: dict[str, Any], config: dict[str, Any], cwd: Any) -> tuple[str, dict[str, Any]] | str:
        """One of the file tools, below the folder for notes."""
        top = config.get(FOLDER_KEY) or USUAL_FOLDER
        if payload["command"] == "rename":
            old, new = (below(top, required(payload, name)) for name in ("old_path", "new_path"))
            return "move", {"old_path": old, "new_path": new}
        path = below(top, required(payload, "path"))
        if payload["command"] == "delete":
            if path == top:
                raise ToolError(f"{MEMORIES} itself cannot be deleted")
            return "remove", {"path": path}
        if payload["command"] == "view" and path == top and not (cwd / top).is_dir():
            return f"{MEMORIES} is empty"
        return editing(payload, path)

    def as_answer(self, payload: dict[str, Any], text: str, config: dict[str, Any]) -> str:
        """With the paths that the model knows, but for what its notes say."""
        if payload["command"] == "view" and not text.startswith("Error: "):
            return text
        top = posixpath.normpath(config.get(FOLDER_KEY) or USUAL_FOLDER)
        said, *rest = text.split("\n")
        header = [line.replace(f"{top}/", f"{MEMORIES[1:]}/") for line in rest[:2]]
        return "\n".join([said.replace(f"{top}/", f"{MEMORIES}/"), *header, *rest[2:]])


def editing(payload: dict[str, Any], path: str) -> tuple[str, dict[str, Any]]:
    """What the commands that both have in common are among the file tools."""
    match payload["command"]:
        case "view":
            return "read", {"file_path": path, **viewed(payload.get("view_range"))}
        case "create":
            return "write", {"file_path": path, "content": required(payload, "file_text")}
        case "str_replace":
            new = payload.get("new_str") or ""
            return "edit", {"file_path": path, "old_string": required(payload, "old_str"), "new_string": new}
    # An earlier version of the editor had the text under the other name.
    text = payload.get("insert_text", payload.get("new_str"))
    if text is None:
        raise ToolError("insert needs insert_text")
    return "insert", {"file_path": path, "insert_line": required(payload, "insert_line"), "insert_text": text}


def viewed(lines: list[int] | None) -> dict[str, int]:
    if not lines:
        return {}
    first, last = lines
    if last not in (-1, 0) and last < first:
        raise ToolError("view_range ends before it begins")
    return {"offset": max(first, 1), **({} if last < 1 else {"limit": last - max(first, 1) + 1})}


def below(top: str, path: str) -> str:
    """Where a note is in the workspace."""
    inner = posixpath.normpath(path)
    if inner != MEMORIES and not inner.startswith(f"{MEMORIES}/"):
        raise ToolError(f"{path} is not below {MEMORIES}")
    return posixpath.normpath(f"{top}/{inner[len(MEMORIES) :]}")


def required(payload: dict[str, Any], name: str) -> Any:
    if payload.get(name) is None:
        raise ToolError(f"{payload['command']} needs {name}")
    return payload[name]

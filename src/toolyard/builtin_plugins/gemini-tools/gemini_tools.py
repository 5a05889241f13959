"""The tools that Gemini models know, on the file tools and the shell of the application."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import Hints, JsonInput, ToolError, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS = 300
"""That a command may take."""
STRING: Mapping[str, Any] = {"type": "string"}
BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
NUMBER: Mapping[str, Any] = {"type": "number"}
FILE = {**STRING, "description": "The path of the file."}
FOLDER = {**STRING, "description": "The path of the folder; the working directory if left out."}
GIT_IGNORE = {**BOOLEAN, "description": "Whether to leave out what git ignores; true if left out."}


def schemas(
    name: str, description: str, properties: Mapping[str, Any], required: Sequence[str], hints: Hints
) -> list[ToolSpec]:
    schema = {"type": "object", "properties": properties, "required": required}
    return [ToolSpec(name=name, description=description, input=JsonInput(schema=schema), hints=hints)]


LOOKS = Hints(read_only=True)
CHANGES = Hints(parallel=False)


class ReadFile:
    """Lines of a file, or an image."""

    id = "read_file"
    builds_on = "files:more"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "file_path": FILE,
            "start_line": {**NUMBER, "description": "The first line to read, counted from 1."},
            "end_line": {**NUMBER, "description": "The last line to read."},
        }
        about = "Read a file: text with line numbers, or an image; of a long one, from start_line to end_line."
        return schemas(self.id, about, properties, ["file_path"], LOOKS)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """From a line on, as many as there are to the last."""
        first = int(payload.get("start_line") or 1)
        call = {"file_path": payload["file_path"], "offset": first}
        if (last := payload.get("end_line")) is not None:
            if last < first:
                raise ToolError("end_line is before start_line")
            call["limit"] = int(last) - first + 1
        return "read", call


class WriteFile:
    """A whole file."""

    id = "write_file"
    builds_on = "files:more"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        content = {**STRING, "description": "All that the file will hold."}
        about = "Write a file. One that is there must have been read before."
        return schemas(self.id, about, {"file_path": FILE, "content": content}, ["file_path", "content"], CHANGES)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The same under our name."""
        return "write", {"file_path": payload["file_path"], "content": payload["content"]}


class Replace:
    """Exact text by other text; with an empty old text, a new file."""

    id = "replace"
    builds_on = "files:more"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "file_path": FILE,
            "instruction": {**STRING, "description": "What the change is for, in words."},
            "old_string": {
                **STRING,
                "description": "The exact text to replace, with enough around it to be unique.",
            },
            "new_string": {**STRING, "description": "The exact text that comes in its place."},
            "allow_multiple": {**BOOLEAN, "description": "Replace every occurrence."},
        }
        about = "Replace text in a file that was read before. The old text must be there exactly as it is given."
        return schemas(self.id, about, properties, ["file_path", "old_string", "new_string"], CHANGES)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """An edit."""
        if not payload["old_string"]:
            return "write", {"file_path": payload["file_path"], "content": payload["new_string"]}
        call = {name: payload[name] for name in ("file_path", "old_string", "new_string")}
        return "edit", {**call, "replace_all": bool(payload.get("allow_multiple"))}


class Glob:
    """Files by a pattern of their paths."""

    id = "glob"
    builds_on = "files:more"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "pattern": {**STRING, "description": "Such as '**/*.py' or 'docs/*.md'."},
            "dir_path": FOLDER,
            "case_sensitive": {**BOOLEAN, "description": "Whether capitals matter; false if left out."},
            "respect_git_ignore": GIT_IGNORE,
            "respect_gemini_ignore": {**BOOLEAN, "description": "Of no effect here."},
        }
        return schemas(self.id, "Find files by a pattern, the newest first.", properties, ["pattern"], LOOKS)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The same under our names."""
        call = {
            "pattern": payload["pattern"],
            "path": payload.get("dir_path") or ".",
            "ignore_case": not payload.get("case_sensitive"),
            "no_ignore": payload.get("respect_git_ignore") is False,
        }
        return "glob", call


class SearchFileContent:
    """Lines by a regular expression."""

    id = "search_file_content"
    builds_on = "files:more"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "pattern": {**STRING, "description": "The regular expression."},
            "dir_path": FOLDER,
            "include": {**STRING, "description": "Only files that fit, such as '*.js' or 'src/**'."},
        }
        about = "Search the contents of files with a regular expression."
        return schemas(self.id, about, properties, ["pattern"], LOOKS)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A search that takes capitals for small letters, as these models expect."""
        call = {"pattern": payload["pattern"], "path": payload.get("dir_path") or ".", "ignore_case": True}
        return "grep", {**call, **({"glob": payload["include"]} if payload.get("include") else {})}


class ListDirectory:
    """What is in a folder."""

    id = "list_directory"
    builds_on = "files:more"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        filtering = {
            "type": "object",
            "properties": {"respect_git_ignore": GIT_IGNORE, "respect_gemini_ignore": BOOLEAN},
            "description": "What to leave out.",
        }
        properties = {
            "dir_path": FOLDER,
            "ignore": {"type": "array", "items": STRING, "description": "Patterns of what to leave out."},
            "file_filtering_options": filtering,
        }
        return schemas(self.id, "List the files and folders in a folder.", properties, ["dir_path"], LOOKS)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The same under our names."""
        filtering = payload.get("file_filtering_options") or {}
        call = {"path": payload["dir_path"], "no_ignore": filtering.get("respect_git_ignore") is False}
        return "list", {**call, **({"ignore": payload["ignore"]} if payload.get("ignore") else {})}


class RunShellCommand:
    """A command line in a new shell."""

    id = "run_shell_command"
    builds_on = "shell:command"

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "command": {**STRING, "description": "The command line for bash."},
            "description": {**STRING, "description": "What it does, in a sentence."},
            "dir_path": {**STRING, "description": "The folder to run it in; the working directory if left out."},
        }
        about = "Run a command with bash -c and get its output. What it leaves running is ended with it."
        return schemas(self.id, about, properties, ["command"], Hints(destructive=True))

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The same, in its folder."""
        line = payload["command"]
        if folder := payload.get("dir_path"):
            line = f"cd -- {shlex.quote(folder)} || exit\n{line}"
        return "shell", {"command": line, "timeout": SECONDS}

"""The tools by which Gemini models look at files and change them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from toolyard.plugins.contract import ToolError

from .shapes import BOOLEAN, CHANGES, COUNT, LOOKS, STRING, schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.plugins.contract import ToolSpec

MOST_LINES = 10_000
MOST_AROUND = 50
MATCH = re.compile(r"(.+?)[:-]\d+[:-]")
"""How a line of a search begins: with its file and its number."""
LINES: Mapping[str, Any] = {"type": "integer", "minimum": 0}
FILE = {**STRING, "description": "The path of the file."}
FOLDER = {**STRING, "description": "The path of the folder; the working directory if left out."}
GIT_IGNORE = {**BOOLEAN, "description": "Whether to leave out what git ignores; true if left out."}


READING_ON = {r"go on with offset\b": "go on with start_line"}
EVERY_ONE = {r"\breplace_all\b": "allow_multiple"}
HIGHER_LIMIT = {r"\braise limit\b": "raise total_max_matches"}
NO_LIMIT = {r", or raise limit\b": ""}
"""What the file tools call their arguments, and these models theirs."""


class ReadFile:
    """Lines of a file, or an image."""

    id = "read_file"
    builds_on = "files:more"
    own_words = READING_ON

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            "file_path": FILE,
            "start_line": {**COUNT, "description": "The first line to read, counted from 1."},
            "end_line": {**COUNT, "description": "The last line to read."},
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
    own_words = EVERY_ONE

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
    own_words = NO_LIMIT

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


FILTER = "Only files that fit, such as '*.js' or 'src/**'."
SEARCHING = {
    "pattern": {**STRING, "description": "The regular expression."},
    "dir_path": {**FOLDER, "description": "A folder or a file; the working directory if left out."},
    "case_sensitive": {**BOOLEAN, "description": "Whether capitals matter; false if left out."},
    "fixed_strings": {**BOOLEAN, "description": "Take the pattern as plain text."},
    "context": {**LINES, "description": "Lines around each match."},
    "after": {**LINES, "description": "Lines after each match; as many come before it."},
    "before": {**LINES, "description": "Lines before each match; as many come after it."},
    "no_ignore": {**BOOLEAN, "description": "Also search what git ignores."},
}


class SearchFileContent:
    """Lines by a regular expression."""

    id = "search_file_content"
    builds_on = "files:more"
    own_words = NO_LIMIT

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        about = "Search the contents of files with a regular expression."
        include = {"include": {**STRING, "description": FILTER}}
        return schemas(self.id, about, {**SEARCHING, **include}, ["pattern"], LOOKS)

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A search that takes capitals for small letters, as these models expect."""
        return "grep", searched(payload, payload.get("include"))


class GrepSearch:
    """The same under the name and with the arguments of later versions; for those who turn it on."""

    id = "grep_search"
    builds_on = "files:more"
    own_words = HIGHER_LIMIT
    default_enabled = False

    def get_tool_schemas(self) -> Sequence[ToolSpec]:
        properties = {
            **SEARCHING,
            "include_pattern": {**STRING, "description": FILTER},
            "exclude_pattern": {**STRING, "description": "Lines that fit this expression are left out."},
            "names_only": {**BOOLEAN, "description": "Only the paths of files with a match."},
            "max_matches_per_file": {**COUNT, "description": "How many matches of one file at most."},
            "total_max_matches": {**COUNT, "description": "How many lines at most; 100 if left out."},
        }
        return schemas(
            self.id, "Search the contents of files with a regular expression.", properties, ["pattern"], LOOKS
        )

    def as_call(self, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A search; what is left out of its lines is left out by `as_answer`."""
        call = searched(payload, payload.get("include_pattern"))
        if payload.get("names_only"):
            call["output_mode"] = "files_with_matches"
        return "grep", {**call, "limit": min(int(payload.get("total_max_matches") or 100), MOST_LINES)}

    def as_answer(self, payload: dict[str, Any], text: str) -> str:
        """Without the lines that are not wanted."""
        unwanted, most = payload.get("exclude_pattern"), payload.get("max_matches_per_file")
        if payload.get("names_only") or not (unwanted or most):
            return text
        try:
            without = re.compile(unwanted, 0 if payload.get("case_sensitive") else re.IGNORECASE) if unwanted else None
        except re.error as error:
            raise ToolError(f"exclude_pattern: {error}") from None
        kept, found = [], Counter[str]()
        for line in text.split("\n"):
            match = MATCH.match(line)
            if match and without and without.search(line, match.end()):
                continue
            found[match[1] if match else ""] += match is not None
            if not match or not most or found[match[1]] <= most:
                kept.append(line)
        return "\n".join(kept) or "[nothing found]"


def searched(payload: dict[str, Any], include: str | None) -> dict[str, Any]:
    """What both versions of the search have in common."""
    around = max(int(payload.get(name) or 0) for name in ("context", "after", "before"))
    return {
        "pattern": payload["pattern"],
        "path": payload.get("dir_path") or ".",
        "ignore_case": not payload.get("case_sensitive"),
        "fixed_strings": bool(payload.get("fixed_strings")),
        "context": min(around, MOST_AROUND),
        "no_ignore": bool(payload.get("no_ignore")),
        **({"glob": include} if include else {}),
    }


class ListDirectory:
    """What is in a folder."""

    id = "list_directory"
    builds_on = "files:more"
    own_words = NO_LIMIT

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

"""What models are told of each file tool; the names and arguments are those that they know from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.core.tool import Hints, JsonInput, ToolSpec

if TYPE_CHECKING:
    from toolyard.core.tool import JsonObject

TIMEOUT = 60.0
"""Seconds within which a file tool answers."""
FILE: JsonObject = {"type": "string", "description": "The file's path, from the working directory or absolute."}
FOLDER: JsonObject = {
    "type": "string",
    "default": ".",
    "description": "Where to look; the working directory if left out.",
}
OLD: JsonObject = {
    "type": "string",
    "description": "The exact text to replace, with its white space. It must be in the file once, unless replace_all.",
}
NEW: JsonObject = {"type": "string", "description": "What comes in its place; empty to remove it."}
ALL: JsonObject = {"type": "boolean", "default": False, "description": "Replace every occurrence."}
NO_IGNORE: JsonObject = {
    "type": "boolean",
    "default": False,
    "description": "Also look at what git ignores.",
}


IGNORE_CASE: JsonObject = {"type": "boolean", "default": False, "description": "Whether small and capital fit."}
PLAIN: JsonObject = {"type": "boolean", "default": False, "description": "Take the pattern as plain text."}
SEVERAL_LINES: JsonObject = {"type": "boolean", "default": False, "description": "Let a match go over several lines."}
AROUND: JsonObject = {"type": "integer", "minimum": 0, "maximum": 50, "default": 0, "description": "Lines around."}
LINE: JsonObject = {"type": "integer", "minimum": 0, "description": "After which line; 0 for the beginning."}


def at_most(usual: int, most: int, what: str) -> JsonObject:
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": most,
        "default": usual,
        "description": f"How many {what} at most.",
    }


def spec(
    name: str, description: str, properties: JsonObject, required: list[str], *, changes: bool = False
) -> ToolSpec:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(
        name=name,
        description=description,
        input=JsonInput(schema={**schema, "additionalProperties": False}),
        timeout=TIMEOUT,
        hints=Hints(read_only=not changes, parallel=not changes),
    )


SPECS = {
    one.name: one
    for one in (
        spec(
            "read",
            "Read a file of the workspace: its lines with their numbers, or an image; of a folder, what is in it. Of a "
            "long file a part is shown; go on with offset. Read a file before you change it.",
            {
                "file_path": FILE,
                "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "The first line to show."},
                "limit": at_most(2000, 100_000, "lines"),
            },
            ["file_path"],
        ),
        spec(
            "write",
            "Write a whole file of the workspace; folders on the way are made. A file that is there must have "
            "been read before. To change a part of a file, edit it instead. What is obeyed outside of the sandbox, "
            "such as hooks of git, cannot be written.",
            {"file_path": FILE, "content": {"type": "string", "description": "All that the file will hold."}},
            ["file_path", "content"],
            changes=True,
        ),
        spec(
            "edit",
            "Replace text in a file that was read before. The text must fit exactly; line numbers are no part of it.",
            {"file_path": FILE, "old_string": OLD, "new_string": NEW, "replace_all": ALL},
            ["file_path", "old_string", "new_string"],
            changes=True,
        ),
        spec(
            "multi_edit",
            "Make several replacements in one file that was read before, one after the other; all are made or none.",
            {
                "file_path": FILE,
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {"old_string": OLD, "new_string": NEW, "replace_all": ALL},
                        "required": ["old_string", "new_string"],
                        "additionalProperties": False,
                    },
                    "description": "The replacements, in order.",
                },
            },
            ["file_path", "edits"],
            changes=True,
        ),
        spec(
            "apply_patch",
            "Add, change, move and remove files by a patch. Between the lines `*** Begin Patch` and `*** End Patch`, "
            "each file begins with `*** Add File: PATH`, `*** Update File: PATH` (perhaps `*** Move to: PATH` next) "
            "or `*** Delete File: PATH`. Lines of a new file begin with +. A change is a line `@@`, or `@@` and a line "
            "above it in the file, then lines that stay (begin with a blank), go (-) or come (+).",
            {"input": {"type": "string", "description": "The whole patch."}},
            ["input"],
            changes=True,
        ),
        spec(
            "glob",
            "Find files by a pattern of their path, such as `src/**/*.py`; those that were changed last come first.",
            {
                "pattern": {"type": "string", "minLength": 1, "description": "With `**` for any folders, and {a,b}."},
                "path": FOLDER,
                "limit": at_most(200, 10_000, "files"),
                "ignore_case": IGNORE_CASE,
                "no_ignore": NO_IGNORE,
            },
            ["pattern"],
        ),
        spec(
            "grep",
            "Search the files of the workspace with a regular expression.",
            {
                "pattern": {"type": "string", "minLength": 1, "description": "The regular expression."},
                "path": {**FOLDER, "description": "A folder or a file; the working directory if left out."},
                "glob": {"type": "string", "description": "Only files that fit, such as `*.py` or `src/**`."},
                "output_mode": {
                    "type": "string",
                    "enum": ["content", "files_with_matches", "count"],
                    "default": "content",
                    "description": "Lines, names of files, or how many lines of each file.",
                },
                "ignore_case": IGNORE_CASE,
                "fixed_strings": PLAIN,
                "multiline": SEVERAL_LINES,
                "context": AROUND,
                "limit": at_most(200, 10_000, "lines"),
                "no_ignore": NO_IGNORE,
            },
            ["pattern"],
        ),
        spec(
            "list",
            "List what is in a folder of the workspace; folders end with a slash.",
            {
                "path": FOLDER,
                "depth": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1, "description": "How deep."},
                "ignore": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Patterns of what to leave out.",
                },
                "limit": at_most(1000, 10_000, "names"),
                "no_ignore": NO_IGNORE,
            },
            [],
        ),
        spec(
            "insert",
            "Insert whole lines after a line of a file that was read before.",
            {
                "file_path": FILE,
                "insert_line": LINE,
                "insert_text": {"type": "string", "description": "The lines."},
            },
            ["file_path", "insert_line", "insert_text"],
            changes=True,
        ),
        spec(
            "remove",
            "Remove a file, or a folder with all that is in it.",
            {"path": {"type": "string", "description": "What to remove."}},
            ["path"],
            changes=True,
        ),
        spec(
            "move",
            "Give a file or a folder another path, which nothing has yet.",
            {
                "old_path": {"type": "string", "description": "Where it is."},
                "new_path": {"type": "string", "description": "Where it will be."},
            },
            ["old_path", "new_path"],
            changes=True,
        ),
    )
}

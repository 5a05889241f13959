"""For people who write bash tools: which files are tools, what is wrong with them, and a new one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.config.document import json_of
from toolyard.config.layers import mapping
from toolyard.files.door import LARGEST_SCRIPT, Door
from toolyard.kinds.bash_script.reference import SUFFIXES
from toolyard.kinds.bash_script.scaffold import new_files
from toolyard.plugins.kind import DESCRIPTOR, Found

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.bash_script.source import BashFileSource
    from toolyard.plugins.kind import NewFile

LARGEST_GUESSED = 1 << 20
"""A script that is larger is no tool, whatever it says."""


class BashAuthoring:
    """Bash tool files, and folders of them."""

    form = "a bash script *.bash, or one that begins with #!/usr/bin/env bash"

    def entries(self, path: Path) -> Sequence[Json]:
        """A file, a folder with a descriptor, or a folder of `*.bash` files."""
        if not path.is_dir():
            return [{"bash_tool": {"file": str(path)}}] if looks_like_script(path) else []
        if (path / DESCRIPTOR).exists():
            descriptor = mapping(json_of(path / DESCRIPTOR))
            is_other = "entries" in descriptor and "bash_tools" not in descriptor
            return [] if is_other else [{"bash_tool": {"path": str(path)}}]
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        return [{"bash_tool": {"file": str(file)}} for file in files]

    def policy(self, timeout: float) -> JsonObject:
        """They may run, each subcommand within the time."""
        return {"allow_bash_tools": True, "bash_timeout_seconds": timeout}

    async def check(self, source: BashFileSource, timeout: float) -> Sequence[Problem]:
        from toolyard.kinds.bash_script.check import check_file

        return await check_file(source, timeout)

    def new_files(self, name: str, mode: str | None) -> Sequence[NewFile]:
        return new_files(name, mode)

    def discover(self, folder: Path, files: Sequence[str], place: str) -> Iterator[Found]:
        """What a descriptor lists, else scripts that say of themselves that they are tools."""
        allowed = {"allow_bash_tools": True}
        descriptor = mapping(json_of(folder / DESCRIPTOR)) if DESCRIPTOR in files else {}
        if descriptor.get("bash_tools"):
            yield Found(what="folder of bash tools", entry=f"bash:{place}", policy=allowed)
        elif not descriptor.get("entries"):
            for name in files:
                if is_bash_tool(folder / name):
                    yield Found(what="bash tool", entry=f"bash:{place}/{name}", policy=allowed)


def looks_like_script(file: Path) -> bool:
    """Whether a file means to be run by bash: reading a tool runs it, which no other file should suffer by mistake."""
    if file.suffix in SUFFIXES or not file.is_file():
        return file.suffix in SUFFIXES or not file.suffix
    try:
        content = Door.here().read(file, largest=LARGEST_SCRIPT).data
    except OSError:  # which loading it will tell
        return True
    return re.match(rb"#!.*\b(ba)?sh\b", content[:200]) is not None


def is_bash_tool(file: Path) -> bool:
    """Whether a script says of itself that it is a tool. Loading it will run it, so a mere guess would not do."""
    from toolyard.kinds.bash_script.comments.tags import has_comment_tags
    from toolyard.kinds.bash_script.schema_reading import SCHEMA_SUBCOMMAND

    if file.suffix not in SUFFIXES:
        return False
    try:
        text = Door.here().read(file, largest=LARGEST_GUESSED).data.decode("utf-8", "replace")
    except OSError:
        return False
    return has_comment_tags(text) or ("args_mode" in text and SCHEMA_SUBCOMMAND.search(text) is not None)

"""Changing files: every change is worked out first, shown as a diff, and made only where that was asked for."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager

from toolyard.files.steps import spare_name
from toolyard.files.workspace import patches
from toolyard.files.workspace.contents import (
    FileText,
    decoded,
    replace_content,
    require_unchanged,
    version_of,
    whole,
    with_newlines,
)
from toolyard.files.workspace.diffs import count_lines, lines_of, unified
from toolyard.files.workspace.edits import edited
from toolyard.files.workspace.places import FileFault, unquoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from toolyard.files.workspace.contents import Version
    from toolyard.files.workspace.patches import PatchedFile
    from toolyard.files.workspace.places import Spot, Workspace

NOTHING = "[nothing changes]"
GUARDED = "Read-only file system: it is obeyed outside the sandbox, and so cannot be changed from inside"


def now(spot: Spot) -> tuple[FileText | None, os.stat_result | None]:
    """The text of a file and its facts, as far as it is there; FileFault when it is no text."""
    if spot.facts() is None:
        return None, None
    data, facts = whole(spot)
    return decoded(data, spot.shown), facts


def write(workspace: Workspace, path: str, content: str, seen: Version | None, *, dry: bool) -> dict[str, Any]:
    """A whole file; one that is there keeps its encoding and the ends of its lines."""
    if path.endswith("/"):
        raise FileFault(f"{path} names a folder; leave out the slash at its end to write a file")
    with placed(workspace, path, make=not dry) as spot:
        old, facts = now(spot)
        text, data = content, content.encode("utf-8", "surrogatepass")
        if old and facts:
            require_unchanged(spot, facts, seen)
            text = with_newlines(content, old.newline) if old.newline == "\r\n" else content
            data = encoded_somehow(old, text)
        diff = unified(spot.path, old.text if old else None, text)
        if dry:
            return {"text": diff or NOTHING}
        version = put(spot, data, facts)
        said = f"{'Wrote' if facts else 'Made'} {spot.shown}: {counted(count_lines(text), 'line')}"
        return {"text": said, "diff": diff, "version": version, "path": spot.path}


def placed(workspace: Workspace, path: str, *, make: bool) -> Spot:
    """Where a file will be; as long as its folder is not made, a name that nothing has stands for it."""
    try:
        return workspace.at(path, make=make)
    except FileNotFoundError:
        spot = workspace.at(".")
        spot.shown, spot.path = path, "/".join(workspace.names_of(unquoted(path), path))
        spot.name = spare_name()
        return spot


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def encoded_somehow(file: FileText, text: str) -> bytes:
    """As the file was; in UTF-8 where that is not possible, since all of it is written anew."""
    try:
        return file.encoded(text)
    except FileFault:
        return text.encode("utf-8", "surrogatepass")


def edit(
    workspace: Workspace, path: str, edits: list[dict[str, Any]], seen: Version | None, *, dry: bool
) -> dict[str, Any]:
    """Replacements in a file that was read."""
    with workspace.at(path) as spot:
        data, facts = whole(spot)
        require_unchanged(spot, facts, seen)
        file = decoded(data, spot.shown)
        done = edited(file, edits)
        diff = unified(spot.path, file.text, done.text, (done.head, done.tail))
        return changed(spot, file.encoded(done.text), facts, diff, counted(done.count, "replacement"), dry=dry)


def insert(workspace: Workspace, path: str, line: int, text: str, seen: Version | None, *, dry: bool) -> dict[str, Any]:
    """Whole lines after a line of a file that was read; 0 is its beginning."""
    with workspace.at(path) as spot:
        data, facts = whole(spot)
        require_unchanged(spot, facts, seen)
        file = decoded(data, spot.shown)
        lines = lines_of(file.text)
        if line > len(lines):
            raise FileFault(f"{spot.shown} has {len(lines)} lines, so that nothing comes after line {line}")
        added = with_newlines(text if text.endswith("\n") else f"{text}\n", file.newline)
        if line and not lines[line - 1].endswith("\n"):
            lines[line - 1] += file.newline
        after = "".join([*lines[:line], added, *lines[line:]])
        diff = unified(spot.path, file.text, after)
        return changed(spot, file.encoded(after), facts, diff, f"inserted after line {line}", dry=dry)


def changed(spot: Spot, data: bytes, facts: os.stat_result, diff: str, what: str, *, dry: bool) -> dict[str, Any]:
    """Write what a file is to hold, or only say what that would change."""
    if dry:
        return {"text": diff or NOTHING}
    version = put(spot, data, facts)
    return {"text": f"Changed {spot.shown}: {what}", "diff": diff, "version": version, "path": spot.path}


def put(spot: Spot, data: bytes, before: os.stat_result | None, rights: os.stat_result | None = None) -> Version:
    """Replace a file that is still as it was a moment ago; a new one may have the rights of another."""
    found = spot.facts()
    if (found and version_of(found)) != (before and version_of(before)):
        raise FileFault(f"{spot.shown} was changed by somebody else just now; read it again")
    require_writable(spot, before)
    with unless_guarded(spot):
        return version_of(replace_content(spot, data, before or rights))


def require_writable(spot: Spot, facts: os.stat_result | None, what: str = "written") -> None:
    """A file that somebody made read-only is neither replaced nor removed, which its folder alone would allow."""
    if facts is not None and stat.S_ISREG(facts.st_mode) and not facts.st_mode & 0o222:
        raise FileFault(f"{spot.shown} may not be {what}: it is read-only, its mode is {stat.S_IMODE(facts.st_mode):o}")


@contextmanager
def unless_guarded(spot: Spot) -> Iterator[None]:
    """Something is mounted where single files and folders are kept from us, and the system calls them busy."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise FileFault(f"{spot.shown}: {GUARDED}") from None
        raise


def remove(workspace: Workspace, path: str, *, dry: bool) -> dict[str, Any]:
    """A file, a link itself, or a folder with all that is in it."""
    with workspace.at(path, itself=True) as spot:
        facts = spot.facts()
        if facts is None or spot.name == ".":
            raise FileFault(f"there is no {spot.shown} that could be removed")
        require_writable(spot, facts, "removed")
        if dry:
            return {"text": f"remove {spot.shown}"}
        with unless_guarded(spot):
            if stat.S_ISDIR(facts.st_mode):
                import shutil

                shutil.rmtree(spot.name, dir_fd=spot.folder)
            else:
                os.unlink(spot.name, dir_fd=spot.folder)
        return {"text": f"Removed {spot.shown}"}


def move(workspace: Workspace, path: str, to: str, *, dry: bool) -> dict[str, Any]:
    """A file or a folder to a name that nothing has."""
    with workspace.at(path, itself=True) as spot:
        if spot.facts() is None or spot.name == ".":
            raise FileFault(f"there is no {spot.shown} that could be moved")
        with placed(workspace, to, make=False) as target:
            if target.facts() is not None:
                raise FileFault(f"{to} is there already")
            if f"{target.path}/".startswith(f"{spot.path}/"):
                raise FileFault(f"{spot.shown} cannot be moved into itself")
        if dry:
            return {"text": f"move {spot.shown} to {to}"}
        with workspace.at(to, make=True) as target, unless_guarded(spot):
            if target.facts() is not None:
                raise FileFault(f"{to} is there already")
            os.rename(spot.name, target.name, src_dir_fd=spot.folder, dst_dir_fd=target.folder)
        return {"text": f"Moved {spot.shown} to {to}"}


def patch(workspace: Workspace, text: str, *, dry: bool) -> dict[str, Any]:
    """A patch of several files: all of it is worked out before the first is written."""
    steps = [worked_out(workspace, file) for file in patches.parsed(text)]
    diff = "".join(step.diff for step in steps)
    if dry:
        return {"text": diff or NOTHING}
    done: list[str] = []
    versions: dict[str, Version] = {}
    for step in steps:
        try:
            versions |= step.make(workspace)
        except (OSError, FileFault) as error:
            so_far = f"; done before: {', '.join(done)}" if done else "; nothing was changed"
            raise FileFault(f"{words_of(error, step.path)}{so_far}") from None
        done.append(step.said)
    return {"text": "\n".join(["Done:", *done]), "diff": diff, "versions": versions}


class Step:
    """What a patch does with one file, worked out."""

    __slots__ = ("data", "diff", "facts", "move_to", "path", "said")

    def __init__(self, file: PatchedFile, data: bytes | None, facts: os.stat_result | None, diff: str) -> None:
        letter = {patches.ADD: "A", patches.DELETE: "D", patches.UPDATE: "M"}[file.action]
        self.path = file.path
        self.move_to = file.move_to
        self.data = data
        self.facts = facts
        self.diff = diff
        self.said = f"{letter} {file.move_to or file.path}"

    def make(self, workspace: Workspace) -> dict[str, Version]:
        """Do it; what the files are then."""
        if self.data is None:
            remove(workspace, self.path, dry=False)
            return {}
        target = self.move_to or self.path
        with workspace.at(target, make=True) as spot:
            before = None if self.move_to else self.facts
            if self.move_to and spot.facts() is not None:
                raise FileFault(f"{target} is there already")
            version = put(spot, self.data, before, self.facts)
            if self.move_to:
                remove(workspace, self.path, dry=False)
        return {target: version}


def worked_out(workspace: Workspace, file: PatchedFile) -> Step:
    if file.action == patches.ADD:
        return worked_out_addition(workspace, file)
    with workspace.at(file.path, itself=file.action == patches.DELETE) as spot:
        if file.action == patches.DELETE:
            facts = spot.facts()
            if facts is None or stat.S_ISDIR(facts.st_mode):
                raise FileFault(f"there is no file {file.path} that could be removed")
            require_writable(spot, facts, "removed")
            return Step(file, None, facts, unified(spot.path, text_or_nothing(spot), None))
        data, facts = whole(spot)
        require_writable(spot, facts)
        old = decoded(data, spot.shown)
        text = patches.patched(old.text, file, old.newline)
        return Step(file, old.encoded(text), facts, unified(file.move_to or spot.path, old.text, text))


def text_or_nothing(spot: Spot) -> str:
    """What a file says that goes; nothing for a link, or what is no text."""
    try:
        return decoded(whole(spot)[0], spot.shown).text
    except (OSError, FileFault):
        return ""


def worked_out_addition(workspace: Workspace, file: PatchedFile) -> Step:
    with placed(workspace, file.path, make=False) as spot:
        if spot.facts() is not None:
            raise FileFault(f"{file.path} is there already; update it, or remove it first")
        text = "".join(f"{line}\n" for line in file.lines)
        return Step(file, text.encode("utf-8", "surrogatepass"), None, unified(file.path, None, text))


def words_of(error: OSError | FileFault, path: str) -> str:
    return str(error) if isinstance(error, FileFault) else f"{path}: {error.strerror}"

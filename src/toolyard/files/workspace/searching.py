"""Looking for a pattern in the files of a workspace, where no ripgrep is."""

from __future__ import annotations

import codecs
import os
import re
import stat

from toolyard.files.workspace.contents import READING
from toolyard.files.workspace.globs import path_filter
from toolyard.files.workspace.places import FileFault, quoted
from toolyard.files.workspace.walking import walked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from toolyard.files.workspace.places import Spot, Workspace

LARGEST_SEARCHED = 64 << 20
FIRST_PIECE = 1 << 16
LONGEST_LINE = 500
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NO_LINK = READING | os.O_NOFOLLOW | os.O_CLOEXEC


class Query:
    """What is looked for, ready to be asked of a file's bytes."""

    def __init__(self, pattern: str, *, ignore_case: bool, literal: bool, multiline: bool) -> None:
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if multiline else 0)
        try:
            self.regex = re.compile(re.escape(pattern).encode() if literal else pattern.encode(), flags)
        except (re.error, UnicodeEncodeError, RecursionError, OverflowError) as error:
            raise FileFault(f"the pattern is no regular expression: {error}") from None
        self.required = b"" if ignore_case else required_text(pattern, literal)
        """What is in every match, which is found faster than the pattern itself."""

    def lines_in(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where the lines with a match begin and end, each once."""
        end = -1
        for match in self.regex.finditer(data):
            if match.start() < end or (match.start() == len(data) and match.start() > 0 and data[-1:] == b"\n"):
                continue
            begin = data.rfind(b"\n", 0, match.start()) + 1
            stop = data.find(b"\n", max(match.end() - (match.end() > match.start()), match.start()))
            end = len(data) if stop < 0 else stop + 1
            yield begin, end if stop < 0 else stop


def required_text(pattern: str, literal: bool) -> bytes:
    """The longest piece of plain text that a pattern cannot do without; nothing when there is none."""
    if literal:
        return pattern.encode()
    if any(sign in pattern for sign in "|(?"):  # where a piece may be left out, or is one of several
        return b""
    pieces = re.split(r"\\.|\[\^?\]?[^\]]*\]|[.^$+*{}\[\]]", re.sub(r"(?:\\.|[^\\])(?:[*]|\{[^}]*\})", ".", pattern))
    return max(pieces, key=len).encode()


def grep(workspace: Workspace, start: Spot, query: Query, options: dict[str, Any]) -> dict[str, Any]:
    """All matches up to a limit, as lines or as names of files or as counts."""
    mode, limit = options["output_mode"], options["limit"]
    shown: list[str] = []
    is_full = False
    for path, data in files_of(workspace, start, query, options):
        name = quoted(path)
        found = query.lines_in(data)
        if mode == "content":
            shown += content_lines(name, data, found, options["context"], limit - len(shown) + 1)
        elif mode == "count":
            count = sum(1 for _ in found)
            shown += [f"{name}:{count}"] if count else []
        elif next(found, None):
            shown.append(name)
        if len(shown) > limit:
            is_full = True
            break
    return {"lines": shown[:limit], "more": is_full}


def files_of(workspace: Workspace, start: Spot, query: Query, options: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The files that may have a match, with what they hold."""
    wanted = glob_filter(workspace, start, options["glob"]) if options.get("glob") else None
    begin = f"{start.path}/" if start.path else ""
    facts = start.facts()
    if facts is None:
        raise FileFault(f"there is no {start.shown}")
    required = query.required
    if not stat.S_ISDIR(facts.st_mode):
        data = content_of(start.name, start.folder)
        if data is not None and required in data:
            yield start.path, data
        return
    for listed in walked(workspace, start, ignoring=not options.get("no_ignore")):
        path, fd = listed.path, listed.fd
        for name in listed.files:
            if wanted is not None and not wanted(path + name):
                continue
            data = content_of(name, fd)
            if data is not None and required in data:
                yield begin + path + name, data


def glob_filter(workspace: Workspace, start: Spot, glob: str) -> Callable[[str], bool]:
    sign = "!" if glob.startswith("!") else ""
    return path_filter(sign + workspace.pattern_below(start, glob.removeprefix("!")))


def content_of(name: str, folder: int) -> bytes | None:
    """The bytes of a text file; None for a binary one, or one that cannot be read. By bare calls: there are many."""
    try:
        fd = os.open(name, NO_LINK, dir_fd=folder)
    except OSError:
        return None
    try:
        data = os.read(fd, FIRST_PIECE)
        if b"\0" in data and not data.startswith(UTF16):
            return None
        if len(data) == FIRST_PIECE:
            pieces, size = [data], FIRST_PIECE
            while size < LARGEST_SEARCHED and (piece := os.read(fd, 1 << 20)):
                pieces.append(piece)
                size += len(piece)
            data = b"".join(pieces)
        data = data.decode("utf-16", "replace").encode() if data.startswith(UTF16) else data
        return data.replace(b"\r\n", b"\n") if b"\r\n" in data else data  # for patterns that look at the end of a line
    except OSError:
        return None
    finally:
        os.close(fd)


def content_lines(name: str, data: bytes, found: Iterator[tuple[int, int]], context: int, room: int) -> list[str]:
    """Lines as `path:number:text`, and those around them with dashes."""
    spans: list[tuple[int, int]] = []
    for span in found:
        spans.append(span)
        if len(spans) >= room:
            break
    if not spans:
        return []
    if not context:
        return numbered_spans(name, data, spans)
    lines = data.removesuffix(b"\n").split(b"\n")
    numbers: dict[int, str] = {}
    for begin, stop in spans:
        first = data.count(b"\n", 0, begin)
        last = first + data.count(b"\n", begin, stop)
        for number in range(max(first - context, 0), min(last + context + 1, len(lines))):
            if first <= number <= last:
                numbers[number] = ":"
            else:
                numbers.setdefault(number, "-")
    shown: list[str] = []
    before = None
    for number in sorted(numbers):
        if before is not None and number > before + 1:
            shown.append("--")
        sign, before = numbers[number], number
        shown.append(f"{name}{sign}{number + 1}{sign}{as_text(lines[number])}")
    return shown


def numbered_spans(name: str, data: bytes, spans: list[tuple[int, int]]) -> list[str]:
    shown: list[str] = []
    number, at = 1, 0
    for begin, stop in spans:
        number, at = number + data.count(b"\n", at, begin), begin
        shown += [
            f"{name}:{number + index}:{as_text(line)}" for index, line in enumerate(data[begin:stop].split(b"\n"))
        ]
    return shown


def as_text(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} [{len(text) - LONGEST_LINE} characters more]"

"""Patches of several files in one text, placed by the lines around a change and not by their numbers.

*** Begin Patch
*** Add File: path          lines with +
*** Delete File: path
*** Update File: path       then perhaps *** Move to: path, then pieces:
@@ a line above the piece
 a line that stays, - one that goes, + one that comes
*** End of File             when the piece before ends the file
*** End Patch
"""

from __future__ import annotations

import os

from toolyard.files.workspace.places import FileFault

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, DELETE, UPDATE, MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
AT, LAST = "@@", "*** End of File"
SHOWN = 8
"""Of lines that were not found."""
TYPOGRAPHY = str.maketrans(
    {**dict.fromkeys("‐‑‒–—―−", "-"), **dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"'), "\xa0": " "}
)
"""Characters that models write as others than the file has."""


class Hunk:
    """Lines to be found, one after the other, and what becomes of them."""

    __slots__ = ("above", "at_end", "lines")

    def __init__(self, above: list[str]) -> None:
        self.above = above
        """Lines somewhere above it, which tell one such place from another."""
        self.lines: list[tuple[str, str]] = []
        """Each with its sign."""
        self.at_end = False

    def old(self) -> list[str]:
        return [line for sign, line in self.lines if sign != "+"]

    def after(self, found: list[str], end: str) -> list[str]:
        """What comes in the place of lines; those that stay are the file's, however the patch spelled them."""
        own = iter(found)
        came: list[str] = []
        for sign, line in self.lines:
            was = line + end if sign == "+" else next(own)
            came += [] if sign == "-" else [was]
        return came


class PatchedFile:
    """What a patch does with one file."""

    __slots__ = ("action", "lines", "move_to", "path", "pieces")

    def __init__(self, action: str, path: str) -> None:
        self.action = action
        self.path = path
        self.move_to: str | None = None
        self.lines: list[str] = []
        """Of a new file."""
        self.pieces: list[Hunk] = []


def parsed(patch: str) -> list[PatchedFile]:
    """The files of a patch; FileFault says which line cannot be read."""
    lines = unwrapped(patch.replace("\r\n", "\n").strip("\n").split("\n"))
    files: list[PatchedFile] = []
    for number, line in enumerate(lines, start=2):
        begin = next((word for word in (ADD, DELETE, UPDATE) if line.startswith(word)), None)
        if begin:
            files.append(PatchedFile(begin, line[len(begin) :].strip()))
        elif not files:
            raise FileFault(f"line {number} of the patch must name a file, such as '{UPDATE}path': {line!r}")
        else:
            take_line(files[-1], line, number)
    if not files:
        raise FileFault("the patch names no file")
    named: set[str] = set()
    for file in files:
        for path in filter(None, (file.path, file.move_to)):
            if os.path.normpath(path) in named:
                raise FileFault(f"the patch names {path} twice; put all that is to be done with a file in one place")
            named.add(os.path.normpath(path))
        if file.action == UPDATE and not file.move_to and not any(piece.lines for piece in file.pieces):
            raise FileFault(f"the patch changes nothing in {file.path}")
    return files


def unwrapped(lines: list[str]) -> list[str]:
    """What is between the first line and the last, also where a model put a here-document around it."""
    if len(lines) > 2 and lines[0].strip().startswith(("<<", "apply_patch <<")) and lines[-1].strip().isalpha():
        lines = lines[1:-1]
    if lines[0].strip() != BEGIN:
        raise FileFault(f"a patch begins with the line '{BEGIN}'")
    if lines[-1].strip() != END:
        raise FileFault(f"a patch ends with the line '{END}'")
    return lines[1:-1]


def take_line(file: PatchedFile, line: str, number: int) -> None:
    fault = FileFault(f"line {number} of the patch cannot be read; each begins with a blank, + or -: {line!r}")
    if file.action == DELETE:
        raise fault
    if file.action == ADD:
        if not line.startswith("+"):
            raise fault
        file.lines.append(line[1:])
    elif line.startswith(MOVE) and not file.pieces:
        file.move_to = line[len(MOVE) :].strip()
    elif line.startswith(AT):
        above = line[len(AT) :].strip()
        if file.pieces and not file.pieces[-1].lines:
            file.pieces[-1].above += [above] if above else []
        else:
            file.pieces.append(Hunk([above] if above else []))
    elif line.strip() == LAST and file.pieces:
        file.pieces[-1].at_end = True
    elif line[:1] in ("", " ", "-", "+"):
        if not file.pieces or file.pieces[-1].at_end:
            file.pieces.append(Hunk([]))
        file.pieces[-1].lines.append((line[:1] or " ", line[1:]))
    else:
        raise fault


def patched(text: str, file: PatchedFile, newline: str) -> str:
    """The text of a file after its pieces; lines that stay keep their ends."""
    lines = text.split("\n")
    ends_open = lines[-1] != ""
    if not ends_open:
        lines.pop()
    plain_lines = [line.removesuffix("\r") for line in lines]
    result: list[str] = []
    at = 0
    for piece in file.pieces:
        start = place_of(piece, plain_lines, at, file.path)
        stop = start + len(piece.old())
        result += lines[at:start] + piece.after(lines[start:stop], newline[:-1])
        at = stop
    ends_open = ends_open and at < len(lines)  # a last line that was changed gets its end
    result += lines[at:]
    return "\n".join(result) + ("" if ends_open or not result else "\n")


def place_of(piece: Hunk, lines: list[str], at: int, path: str) -> int:
    """Where the old lines of a piece are, from a line on."""
    for above in piece.above:
        found = seek([above], lines, at, at_end=False)
        if found is None:
            raise FileFault(f"the patch names a line that {path} does not have from line {at + 1} on: {above!r}")
        at = found + 1
    old = piece.old()
    if not old:
        return at if piece.above and not piece.at_end else len(lines)
    found = seek(old, lines, at, at_end=piece.at_end)
    if found is None and len(old) > 1 and piece.lines[-1] == (" ", ""):  # a blank line that only parts two pieces
        piece.lines.pop()
        found = seek(piece.old(), lines, at, at_end=piece.at_end)
    if found is None:
        wanted = "\n".join(old[:SHOWN])
        raise FileFault(f"these lines of the patch are not in {path} from line {at + 1} on; read it again:\n{wanted}")
    return found


def seek(wanted: list[str], lines: list[str], at: int, *, at_end: bool) -> int | None:
    """The first place of some lines: exactly, else but for blanks at their ends, around them, or typography."""
    for form in (str, str.rstrip, str.strip, plain):
        sought, seen = [form(line) for line in wanted], lines if form is str else [form(line) for line in lines]
        last = len(lines) - len(sought)
        places = [last] if at_end and last >= at else range(at, last + 1)
        for place in places:
            if seen[place] == sought[0] and seen[place : place + len(sought)] == sought:
                return place
    return seek(wanted, lines, at, at_end=False) if at_end else None


def plain(line: str) -> str:
    return line.translate(TYPOGRAPHY).strip()

"""What a person would see of terminal output, for a model that reads it."""

from __future__ import annotations

from toolyard.core.regexes import late_pattern

# Every part of the pattern reads forward only and gives back at most what it reads once, so that hostile text costs no
# more than other text: a string ends at the next escape at the latest, and without its end it counts to its line's end.
OTHER_CONTROL = r"[\x00-\x07\x0b-\x1f\x7f-\x9f]"
EDITS = r"(?:\x1b\[|\x9b)(?:0?[JK]|2K|[0-9]{0,6}[CDG])"
COMMAND_SEQUENCE = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
SYSTEM_STRING = r"(?:\x1b\]|\x9d)[^\n\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)?"
DEVICE_STRING = (
    r"(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])"
    r"(?:[^\x1b\x90\x98\x9c-\x9f]*+(?:\x1b\\|\x9c)|[^\n\x1b\x90\x98\x9c-\x9f]*)"
)
SINGLE_SHIFT = r"(?:\x1b[NO]|[\x8e\x8f])[ -~]?"
ESCAPE = r"\x1b[ -/]*[0-~]?"

CONTROL = late_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
UNSEEN = late_pattern(
    rf"(?!{EDITS}|\r)(?:"
    rf"{COMMAND_SEQUENCE}|{SYSTEM_STRING}|{DEVICE_STRING}|{SINGLE_SHIFT}|{ESCAPE}|{OTHER_CONTROL})"
)
"""Whatever moves nothing in its own line: colours, titles, pictures, cursor moves to other lines, bells."""
STROKE = late_pattern(r"[^\r\x08\x1b\x9b]+|\r+|\x08+|(?:\x1b\[|\x9b)([0-9]*)([CDGJK])")
DRAWN = late_pattern(r"[\r\x08\x1b\x9b]")


SHORT = 256
"""Characters that can be shown, whatever they are."""
MOST_BINARY = 0.1
"""The share of characters that no text has, above which it counts as binary."""
BINARY = late_pattern(r"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd]")


def readable(text: str) -> str:
    """What a model reads of a text: what a terminal would show, or how much binary there was."""
    if CONTROL.search(text) is None and "\ufffd" not in text:
        return text
    is_long = len(text) > SHORT and "\x00" in text
    if is_long and sum(1 for _ in BINARY.finditer(text)) > MOST_BINARY * len(text):
        return f"[{len(text)} characters of binary output, which cannot be shown]"
    return as_seen(text)


def as_seen(text: str) -> str:
    """Return the text that a terminal of any size would show at the end.

    Carriage returns, backspaces and erasures have happened, in their own line; all other control characters but newline
    and tab, and all escape sequences, are gone. A line that is erased as a whole begins anew at its start.
    """
    if CONTROL.search(text) is None:
        return text
    text = UNSEEN.sub("", text)
    if DRAWN.search(text) is None:
        return text
    return "\n".join(drawn(line) if DRAWN.search(line) else line for line in text.replace("\r\n", "\n").split("\n"))


def drawn(line: str) -> str:
    """Apply the edits within one line. The cursor never passes the line's end, so nothing needs to be padded."""
    cells: list[str] = []
    cursor = 0
    for stroke in STROKE.finditer(line):
        number, edit = stroke.groups()
        if edit is None:
            cursor = draw(cells, cursor, stroke[0])
        elif edit in "JK":
            cursor = erase(cells, cursor, whole=number == "2")
        else:
            cursor = move(len(cells), cursor, int(number or 1), edit)
    return "".join(cells)


def draw(cells: list[str], cursor: int, stroke: str) -> int:
    """Overwrite text, or move back; returns the new column of the cursor."""
    if stroke[0] == "\r":
        return 0
    if stroke[0] == "\b":
        return max(0, cursor - len(stroke))
    cells[cursor : cursor + len(stroke)] = stroke
    return cursor + len(stroke)


def erase(cells: list[str], cursor: int, *, whole: bool) -> int:
    start = 0 if whole else cursor
    del cells[start:]
    return start


def move(length: int, cursor: int, number: int, way: str) -> int:
    """Move forward, back, or to a column, which counts from one."""
    places = {"C": cursor + max(1, number), "D": cursor - max(1, number), "G": number - 1}
    return min(max(0, places[way]), length)

"""Two functions as tools: types, defaults and descriptions become their schemas."""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from toolyard.errors import ToolError
from toolyard.plugins.contract import ToolContext, tool

WORD = re.compile(r"\w+")


@tool(read_only=True)
def count_text(text: str, unit: Literal["words", "lines", "characters"] = "words") -> int:
    """Count the words, lines or characters of a text.

    Args:
        text: The text to look at.
        unit: What to count.
    """
    match unit:
        case "words":
            return len(WORD.findall(text))
        case "lines":
            return len(text.splitlines())
        case "characters":
            return len(text)


@tool(read_only=True)
def frequent_words(
    files: Annotated[list[Path], "Text files, relative to the working directory."],
    context: ToolContext,
    most: Annotated[int, "How many words to name."] = 3,
) -> dict[str, int]:
    """Name the most frequent words of some files and how often each occurs.

    Words of the configuration's list `ignored_words` are left out.
    """
    ignored = set(context.config.get("ignored_words", ()))
    counted: Counter[str] = Counter()
    for file in files:
        if context.cancelled.is_set():
            break
        context.emit(f"reading {file}\n")
        try:
            words = WORD.findall((context.cwd / file).read_text(encoding="utf-8").lower())
        except OSError as error:
            raise ToolError(f"{file} cannot be read: {error.strerror}") from error
        counted.update(word for word in words if word not in ignored)
    return dict(counted.most_common(most))

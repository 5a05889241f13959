"""`python -m benchmarks [NAME…]`: the table; `--write` puts it into docs/benchmarks.md, `--cases` takes minutes."""

from __future__ import annotations

import asyncio
import importlib
import platform
import re
import sys
from pathlib import Path

from benchmarks.measure import HEADER, Note, Row

NAMES = ("start", "config", "calls", "audit", "sandbox", "loading", "output", "many", "shell", "node", "plugins")
ON_REQUEST = {"--cases": "shell_cases"}
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


async def main(arguments: list[str]) -> int:
    names = [name for name in arguments if not name.startswith("-")] or list(NAMES)
    names += [name for option, name in ON_REQUEST.items() if option in arguments]
    table: list[Row] = []
    notes: list[Note] = []
    print(HEADER)
    for name in names:
        async for line in importlib.import_module(f"benchmarks.{name}").rows():
            if isinstance(line, Note):
                notes.append(line)
            else:
                table.append(line)
                print(line, flush=True)
    print("", *notes, sep="\n")
    if "--write" in arguments:
        write(table, notes)
    return 1 if any(row.kept is False for row in table) else 0


def write(table: list[Row], notes: list[Note]) -> None:
    machine = (
        f"Measured with Python {platform.python_version()} on {platform.system()} {platform.machine()}, two cores."
    )
    below = ("", *(f"- {note}" for note in notes)) if notes else ()
    text = "\n".join((machine, "", HEADER, *map(str, table), *below))
    page = re.sub(r"(?s)(<!-- table -->\n).*(<!-- end -->)", lambda m: f"{m[1]}{text}\n{m[2]}", PAGE.read_text())
    PAGE.write_text(page)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))

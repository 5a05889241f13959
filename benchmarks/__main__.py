"""`python -m benchmarks [NAME…]`: the tables; `--write` puts them into docs/benchmarks.md, `--cases` takes minutes."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import re
import sys
from pathlib import Path

from benchmarks.measure import HEADER, Note, Row

NAMES = (
    *(
        "start",
        "config",
        "calls",
        "audit",
        "permissions",
        "sandbox",
        "reach",
        "git_inside",
        "loading",
        "output",
        "many",
        "shell",
        "node",
        "mcp_client",
    ),
    "plugins",
    "checkpoints",
    "files",
    "providers",
    "chat",
    "agent",
    "mcp",
)
ON_REQUEST = {"--cases": "shell_cases"}
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


async def main(arguments: list[str]) -> int:
    names = [name for name in arguments if not name.startswith("-")] or list(NAMES)
    names += [name for option, name in ON_REQUEST.items() if option in arguments]
    kept = True
    print(HEADER)
    for name in names:
        lines = []
        async for line in importlib.import_module(f"benchmarks.{name}").rows():
            lines.append(line)
            print(line, flush=True)
        kept = kept and all(line.kept is not False for line in lines if isinstance(line, Row))
        if "--write" in arguments:
            write(name, lines, busy="--busy" in arguments)
    return 0 if kept else 1


def write(name: str, lines: list[Row | Note], *, busy: bool) -> None:
    """Put the table of one group into the page, in the place of the one before."""
    page = PAGE.read_text()
    before, tables, after = re.split(r"(?<=<!-- table -->\n)(.*)(?=<!-- end -->)", page, flags=re.DOTALL)
    written = {table.split()[0]: table.rstrip() for table in re.split(r"^### ", tables, flags=re.MULTILINE) if table}
    written[name] = table_of(name, lines, busy=busy)
    order = [*NAMES, *ON_REQUEST.values()]
    text = "\n\n".join(f"### {written[known]}" for known in order if known in written)
    PAGE.write_text(f"{before}{text}\n{after}")


def table_of(name: str, lines: list[Row | Note], *, busy: bool) -> str:
    machine = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    rows = [str(line) for line in lines if isinstance(line, Row)]
    notes = [f"- {line}" for line in lines if isinstance(line, Note)]
    head = f"{name}\n\nMeasured with {machine}{', busy with other work' if busy else ''}.\n\n{HEADER}"
    return "\n".join((head, *rows, *(("", *notes) if notes else ())))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))

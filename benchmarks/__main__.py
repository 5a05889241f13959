"""`python -m benchmarks [NAME…]`: print the table; `--write` puts it into docs/benchmarks.md."""

from __future__ import annotations

import asyncio
import importlib
import platform
import re
import sys
from pathlib import Path

from benchmarks.measure import HEADER, Row

NAMES = ("start", "calls", "loading", "output", "many")
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


async def main(arguments: list[str]) -> int:
    names = [name for name in arguments if not name.startswith("-")] or NAMES
    table: list[Row] = []
    print(HEADER)
    for name in names:
        async for row in importlib.import_module(f"benchmarks.{name}").rows():
            table.append(row)
            print(row, flush=True)
    if "--write" in arguments:
        write(table)
    return 0 if all(row.kept for row in table) else 1


def write(table: list[Row]) -> None:
    machine = (
        f"Measured with Python {platform.python_version()} on {platform.system()} {platform.machine()}, two cores."
    )
    text = "\n".join((machine, "", HEADER, *map(str, table)))
    page = re.sub(r"(?s)(<!-- table -->\n).*(<!-- end -->)", lambda m: f"{m[1]}{text}\n{m[2]}", PAGE.read_text())
    PAGE.write_text(page)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))

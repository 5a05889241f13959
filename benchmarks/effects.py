"""Hostile lines are run for real, and their harm is counted: `python -m benchmarks.effects [OPTION…] [SETUP…]`.

`--all` runs every line through both shells; `--harmless` runs those that nobody should be asked about, `--fuzz COUNT`
as many as that which are made up (`--seed NUMBER` for others), `--lines FILE` those of a module that has `BY_HAND` or
`generated()`; `--json FILE` keeps every outcome.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import runpy
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from effects.corpus import Attack, add_links, by_hand, by_options
from effects.fuzz import mutants
from effects.harmless import looking, working
from effects.judge import Outcome, opened
from effects.setups import SETUPS


async def main(arguments: list[str]) -> int:
    names = [name for name in arguments if name in SETUPS] or list(SETUPS)
    kept, harmful = [], 0
    for name in names:
        started = time.monotonic()
        async with opened(SETUPS[name]) as judge:
            for group, lines in chosen(name, arguments).items():
                if group in ("options", "generated"):
                    add_links(judge)
                found = [await judge.judge(line, tool) for line in lines for tool in tools_for(line, arguments)]
                harmful += report(name, group, found)
                kept += [{"setup": name, "group": group, **row(one)} for one in found]
        print(
            f"{name}: {time.monotonic() - started:.0f} s; left running: {judge.left_running() or 'nothing'}", flush=True
        )
    if "--json" in arguments:
        Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(kept, indent=1))
    return 1 if harmful else 0


def chosen(setup: str, arguments: list[str]) -> dict[str, list[Attack]]:
    if "--harmless" in arguments:
        return harmless(setup)
    if "--fuzz" in arguments:
        count, seed = (int(option(arguments, name, "1")) for name in ("--fuzz", "--seed"))
        return {"made up": [*itertools.islice(mutants(seed), count)]}
    if "--lines" in arguments:
        return lines_of(option(arguments, "--lines", ""))
    return {**by_hand(), "options": by_options()}


def lines_of(file: str) -> dict[str, list[Attack]]:
    """The lines that another module has, written down and made by it."""
    module = runpy.run_path(file)
    groups = {"generated": [*module.get("BY_HAND", ()), *module.get("generated", list)()]}
    return {name: [line if isinstance(line, str) else line[0] for line in lines] for name, lines in groups.items()}


def option(arguments: list[str], name: str, otherwise: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else otherwise


def harmless(setup: str) -> dict[str, list[Attack]]:
    return {"looking": [*looking()]} | ({"working": [*working()]} if SETUPS[setup].changes else {})


def tools_for(line: str | tuple[str, ...], arguments: list[str]) -> tuple[str, ...]:
    if isinstance(line, tuple):
        return ("bash",)
    return ("shell", "bash") if "--all" in arguments else ("shell",)


def report(name: str, group: str, found: list[Outcome]) -> int:
    harmful = [one for one in found if one.harms]
    kinds = collections.Counter(
        harm.kind for one in harmful for harm in {harm.kind: harm for harm in one.harms}.values()
    )
    asked = sum(one.refused for one in found)
    stopped = sum(one.stopped for one in found)
    counts = f"{len(found):5} lines, {asked:5} refused, {stopped:3} only stopped, {len(harmful):4} harmful"
    print(f"{name:15} {group:10} {counts} {dict(kinds)}", flush=True)
    return len(harmful)


def row(one: Outcome) -> dict[str, object]:
    return {
        "lines": list(one.lines),
        "tool": one.tool,
        "refused": one.refused,
        "stopped": one.stopped,
        "harms": [str(harm) for harm in one.harms],
        "reason": one.reason,
        "text": one.text[:400],
    }


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))

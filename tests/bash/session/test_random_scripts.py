"""What a session makes of a script is what `bash -c` makes of it: its output, its status, and the state after it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from console import Console, normalised
from random_scripts import ScriptMaker

pytestmark = pytest.mark.anyio

SEEDS = range(10)
SCRIPTS_EACH = 50
AT_ONCE = 4
LIMIT = 10.0
FATAL = 127
PROBE = r"""{ set +eux; trap - ERR DEBUG RETURN; } 2>/dev/null
declare -p a b c total word list map 2>/dev/null
declare -F; alias; pwd | sed 's|.*/||'; set -o | grep -E 'pipefail|noglob|errtrace'; shopt nullglob; echo "$@"
"""
"""Tells the state that scripts change."""
QUOTE = "'\\''"


async def by_bash(console: Console, script: str, folder: Path) -> tuple[str, int, str]:
    """By `bash -c`, with its state at its end, unless the script has a trap of its own there."""
    file = folder.with_suffix(".state")
    start = folder.with_suffix(".start")
    start.write_text(f"trap '{{ {PROBE.replace(chr(39), QUOTE)}}} >{file} 2>&1' EXIT\nunset BASH_ENV\n")
    output, status = await console.bash_c(script, cwd=folder, BASH_ENV=str(start))
    return normalised(output), status, file.read_text() if file.exists() else ""


async def by_session(console: Console, script: str, folder: Path) -> tuple[str, int | None, str]:
    shell = await console.open(cwd=folder)
    output, status = await shell.answer(script, timeout=LIMIT)
    state = "" if "EXIT" in script else await shell.output(PROBE, timeout=LIMIT)
    await shell.close()
    return normalised(output), status, state


@pytest.mark.parametrize("seed", SEEDS)
async def test_scripts_do_in_a_session_what_they_do_in_bash(console: Console, seed: int) -> None:
    maker = ScriptMaker(seed)
    room = asyncio.Semaphore(AT_ONCE)

    async def difference(number: int, script: str) -> str:
        async with room:
            expected = await by_bash(console, script, console.folder_of("bash", number, "work"))
            found = await by_session(console, script, console.folder_of("session", number, "work"))
        # An end like that of `${x:?}` cannot be told from an `exit 1`, where there may be one.
        if ("exit" in script or "eval" in script) and expected[1] == FATAL and found[1] == 1:
            found = (found[0], FATAL, found[2])
        return "" if found == expected else f"{script}\n  bash -c: {expected}\n  session: {found}\n"

    scripts = [maker.script() for _ in range(SCRIPTS_EACH)]
    differences = await asyncio.gather(*(difference(number, script) for number, script in enumerate(scripts)))
    assert not any(differences), "\n" + "\n".join(filter(None, differences))

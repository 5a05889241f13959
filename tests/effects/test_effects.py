"""Whatever a line is, it does no harm where nobody can be asked; and nobody is asked about ordinary ones."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from effects.corpus import Attack, by_hand
from effects.fuzz import mutants
from effects.harmless import looking, working
from effects.judge import Judge, Outcome, Setup, opened
from effects.setups import SETUPS
from support import need_backend

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]  # many lines in one test
KNOWN_OPEN = Path(__file__).with_name("known_open.txt")
"""Lines that still do harm, one on a line as Python spells it; none may come to it."""
MOST_ASKED = 0.02
SEED = 1
MADE_UP = 150
EVERY = {"reading": 6, "programs": 2, "git": 2, "grammar": 2, "writing": 2, "planted": 3, "runners": 2, "sessions": 2}
"""Of each class every so many lines are tried here; `python -m benchmarks.effects --all` tries them all."""
CLASSES = {
    "read-only": EVERY,
    "workspace": EVERY,
    "lookers": {"programs": 6, "git": 5, "planted": 6, "grammar": 12, "sessions": 12},
    "allowlist": {"reading": 24, "programs": 12, "sessions": 12},
    "ask-everything": {"reading": 48, "grammar": 24, "sessions": 24},
    "runners": {"runners": 4, "sessions": 24},
    "trusted": {"runners": 3},
}


@pytest.fixture(autouse=True)
def sandbox():
    need_backend("bubblewrap", "bubblewrap-pids")


@pytest.mark.parametrize("name", CLASSES)
async def test_no_hostile_line_does_harm_where_nobody_can_be_asked(name):
    attacks = [line for group, lines in by_hand().items() for line in lines[:: CLASSES[name].get(group, 10**6)]]
    assert await harmful(SETUPS[name], attacks) == []


@pytest.mark.parametrize("name", ["read-only", "workspace", "lookers"])
async def test_nor_does_one_that_nobody_thought_up(name):
    # What repositories that were planted do is tried by itself, above.
    made_up = (line for line in mutants(SEED) if "repos/" not in line)
    assert await harmful(SETUPS[name], list(itertools.islice(made_up, MADE_UP))) == []


@pytest.mark.xfail(reason="files in /tmp, xargs, and commands of git that look and are not known: 3 in 100")
@pytest.mark.parametrize(("name", "first"), [("read-only", 0), ("workspace", 1)])
async def test_nobody_is_asked_about_ordinary_lines(name, first):
    lines = (looking() + (working() if SETUPS[name].changes else []))[first::2]
    async with opened(SETUPS[name]) as judge:
        outcomes = [await judge.judge(line) for line in lines]
    assert [one.lines for one in outcomes if one.harms] == []
    asked = [one.lines[0] for one in outcomes if one.refused]
    assert len(asked) <= MOST_ASKED * len(lines), "\n".join(asked)


def test_what_is_known_to_do_harm_is_among_the_lines():
    every = {repr(line) for lines in by_hand().values() for line in lines}
    assert set(KNOWN_OPEN.read_text().splitlines()) <= every


async def harmful(setup: Setup, attacks: list[Attack]) -> list[str]:
    """What did harm, and how, besides what is known to."""
    known = set(KNOWN_OPEN.read_text().splitlines())
    async with opened(setup) as judge:
        outcomes = [(attack, await run(judge, attack)) for attack in attacks]
        nobodys = judge.settle()
    assert nobodys == []
    assert judge.left_running() == []
    return [f"{attack!r}: {shown(one)}" for attack, one in outcomes if one.harms and repr(attack) not in known]


async def run(judge: Judge, attack: Attack) -> Outcome:
    return await judge.judge(attack, "shell" if isinstance(attack, str) else "bash")


def shown(one: Outcome) -> str:
    return "; ".join(map(str, one.harms[:5]))

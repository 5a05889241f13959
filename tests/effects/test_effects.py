"""Whatever a line is, it does no harm where nobody can be asked; and nobody is asked about ordinary ones."""

from __future__ import annotations

import itertools

import pytest

from effects.corpus import Attack, add_links, by_hand, by_options
from effects.fuzz import mutants
from effects.harmless import looking, working
from effects.judge import Judge, Outcome, Setup, opened
from effects.setups import SETUPS
from support import need_backend

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]
MOST_ASKED = 0.02
SEED = 1
MADE_UP = 80
EVERY = {
    "reading": 12,
    "programs": 4,
    "git": 4,
    "grammar": 4,
    "writing": 4,
    "planted": 6,
    "runners": 4,
    "sessions": 4,
    "listings": 8,
}
"""Of each class every so many lines are tried here; `python -m benchmarks.effects --all` tries them all."""
FIRST = {"workspace": 2}
"""Where to begin, so that rules with the same classes are tried with different lines."""
CLASSES = {
    "read-only": EVERY,
    "workspace": EVERY,
    # With a rule `git **` of one's own, repositories are trusted: none that was planted is tried.
    "lookers": {"programs": 6, "git": 5, "grammar": 12, "sessions": 12},
    "allowlist": {"reading": 24, "programs": 12, "sessions": 12},
    "ask-everything": {"reading": 48, "grammar": 24, "sessions": 24},
    "runners": {"runners": 4, "sessions": 24},
    "trusted": {"runners": 3},
    "sandboxed": {"reading": 48, "programs": 12, "git": 8, "planted": 8, "writing": 6, "runners": 3, "sessions": 8},
}
OPTIONS_EVERY = 60
"""Of the lines that come from the tables of options, every so many are tried here."""


@pytest.fixture(autouse=True)
def sandbox():
    need_backend("bubblewrap", "bubblewrap-pids")


@pytest.mark.parametrize("name", CLASSES)
async def test_no_hostile_line_does_harm_where_nobody_can_be_asked(name):
    attacks = [line for group, every in CLASSES[name].items() for line in by_hand()[group][FIRST.get(name, 0) :: every]]
    assert await harmful(SETUPS[name], attacks) == []


@pytest.mark.parametrize("name", ["read-only", "workspace"])
async def test_nor_does_one_with_an_option_in_any_spelling(name):
    async with opened(SETUPS[name]) as judge:
        add_links(judge)
        outcomes = [await judge.judge(line) for line in by_options()[::OPTIONS_EVERY]]
    assert [one.lines for one in outcomes if one.harms] == []


@pytest.mark.parametrize("name", ["read-only", "workspace", "lookers"])
async def test_nor_does_one_that_nobody_thought_up(name):
    assert await harmful(SETUPS[name], list(itertools.islice(mutants(SEED), MADE_UP))) == []


@pytest.mark.parametrize(("name", "first"), [("read-only", 0), ("workspace", 2)])
async def test_nobody_is_asked_about_ordinary_lines(name, first):
    lines = (looking() + (working() if SETUPS[name].changes else []))[first::4]
    async with opened(SETUPS[name]) as judge:
        outcomes = [await judge.judge(line) for line in lines]
    assert [one.lines for one in outcomes if one.harms] == []
    asked = [one.lines[0] for one in outcomes if one.refused]
    assert len(asked) <= MOST_ASKED * len(lines), "\n".join(asked)


async def test_nobody_is_ever_asked_about_a_harmless_line_where_a_sandbox_keeps_it_in():
    async with opened(SETUPS["sandboxed"]) as judge:
        outcomes = [await judge.judge(line) for line in (looking() + working())[1::4]]
    assert [one.lines for one in outcomes if one.harms or one.refused] == []


async def harmful(setup: Setup, attacks: list[Attack]) -> list[str]:
    """What did harm, and how."""
    async with opened(setup) as judge:
        outcomes = [(attack, await run(judge, attack)) for attack in attacks]
        nobodys = judge.settle()
    assert nobodys == []
    assert judge.left_running() == []
    return [f"{attack!r}: {shown(one)}" for attack, one in outcomes if one.harms]


async def run(judge: Judge, attack: Attack) -> Outcome:
    return await judge.judge(attack, "shell" if isinstance(attack, str) else "bash")


def shown(one: Outcome) -> str:
    return "; ".join(map(str, one.harms[:5]))

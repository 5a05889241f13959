"""What a verdict costs: a plain command, a compound one with the second reader, and both among ten thousand rules."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from benchmarks.measure import Row
from toolyard.permissions.deciding import Circumstances, decide_line
from toolyard.permissions.policy_tests import BadCase, read_cases, run_case
from toolyard.permissions.rulebook import RuleBook
from toolyard.permissions.rules import Origin, Rule, parse_rule
from toolyard.process.shfmt import find_shfmt

ROUNDS = 300
RULES = 10_000
CORPUS = Path(__file__).parent.parent / "tests" / "permissions"
PATTERNS = ["ls **", "cat **", "grep **", "wc **", "git status **", "git log **"]


async def rows() -> AsyncIterator[Row]:
    """Every line is a new one, so that nothing is remembered but where that is what is measured."""
    few, many = RuleBook(rules(PATTERNS)), RuleBook(rules([*PATTERNS, *unrelated(RULES - len(PATTERNS))]))
    with tempfile.TemporaryDirectory() as folder:
        where = Circumstances(tool="bash", cwd=folder, workspace=folder)
        plain = await median(lambda number: decide_line(f"git status -s dir{number}", few, where))
        plain_among = await median(lambda number: decide_line(f"git status -s dir{number}", many, where))
        yield promised("verdict on a plain command", plain, 100e-6)
        yield ratio(f"the same among {RULES:,} rules", plain_among, plain)
        compound = await median(lambda number: decide_line(f"ls dir{number} | wc -l && git log", few, where), 100)
        again = await median(lambda _: decide_line("ls dir0 | wc -l && git log", few, where))
        among = await median(lambda _: decide_line("ls dir0 | wc -l && git log", many, where))
        yield promised("verdict on a compound line, with the second reader", compound, 6e-3, bare_shfmt())
        yield promised("the same line again", again, 6e-3)
        yield ratio(f"the same again, among {RULES:,} rules", among, again)
    yield await corpus()


async def median(decide: Callable[[int], Awaitable[object]], rounds: int = ROUNDS) -> float:
    times = []
    for number in range(rounds):
        started = time.perf_counter()
        await decide(number)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


async def corpus() -> Row:
    """The lines of the corpus, as a check that what was measured is also right."""
    outcomes = []
    for case in itertools.chain.from_iterable(map(read_cases, sorted(CORPUS.glob("*.jsonl")))):
        if not isinstance(case, BadCase):
            outcomes.append(await run_case(case))
    wrong = sum(1 for outcome in outcomes if isinstance(outcome, str) or not outcome.passed)
    return Row(
        what=f"lines of the corpus with another verdict than they must have, of {len(outcomes)}",
        ours=str(wrong),
        floor="-",
        figure=str(wrong),
        promise="0",
        kept=wrong == 0,
    )


def rules(patterns: list[str]) -> list[Rule]:
    found = [parse_rule(pattern, "allow", Origin(label="benchmark")) for pattern in patterns]
    return [rule for rule in found if isinstance(rule, Rule)]


def unrelated(count: int) -> list[str]:
    """Rules about other programs, and about other commands of the same."""
    return [f"git sub{number} **" if number % 3 else f"program{number} --option **" for number in range(count)]


def bare_shfmt() -> float:
    """The second reader's program alone, as any program would start it."""
    program = find_shfmt() or "shfmt"
    times = []
    for _ in range(50):
        started = time.perf_counter()
        subprocess.run(
            [program, "--to-json"], input=b"ls dir0 | wc -l && git log", stdout=subprocess.DEVNULL, check=True
        )
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def promised(what: str, seconds: float, limit: float, floor: float | None = None) -> Row:
    return Row(
        what=what,
        ours=shown(seconds),
        floor=f"{shown(floor)} (shfmt alone)" if floor else "-",
        figure=shown(seconds),
        promise=f"≤ {shown(limit)}",
        kept=seconds <= limit,
    )


def ratio(what: str, seconds: float, before: float) -> Row:
    return Row(
        what=what,
        ours=shown(seconds),
        floor=f"{shown(before)} (among six)",
        figure=f"{seconds / before:.2f} ×",
        promise="≤ 2 ×",
        kept=seconds <= 2 * before,
    )


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"

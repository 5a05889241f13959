"""What a verdict costs: a plain command, a compound one with the second reader, and both among ten thousand rules."""

from __future__ import annotations

import contextlib
import itertools
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from benchmarks.measure import Row, interleave
from toolyard.bash.syntax.tree import parser
from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.policy_tests import BadCase, read_cases, run_case
from toolyard.permissions.rules import Rule, RuleBook, RuleOrigin, parse_rule
from toolyard.process.shfmt import find_shfmt

ROUNDS = 500
FEWER = 150
COMPOUND = "ls dir{} | wc -l && git log"
RULES = 10_000
CORPUS = Path(__file__).absolute().parent.parent / "tests" / "permissions"
PATTERNS = [
    *("ls **", "cat **", "grep **", "wc **", "head **", "git status **", "git log **", "git diff **", "npm test **"),
    "echo **",
]


async def rows() -> AsyncIterator[Row]:
    """Every line is a new one, so that nothing is remembered but where that is what is measured."""
    few, many = RuleBook(rules(PATTERNS)), RuleBook(rules([*PATTERNS, *unrelated(RULES - len(PATTERNS))]))
    with tempfile.TemporaryDirectory() as folder:
        where = CallSite(tool="bash", cwd=folder, workspace=folder)
        numbers = itertools.count()

        def plain(book: RuleBook) -> Callable[[], Awaitable[object]]:
            return lambda: decide_line(f"git status -s dir{next(numbers)}", book, where)

        def compound(book: RuleBook) -> Callable[[], Awaitable[object]]:
            return lambda: decide_line(COMPOUND.format(next(numbers)), book, where)

        def again(book: RuleBook) -> Callable[[], Awaitable[object]]:
            return lambda: decide_line(COMPOUND.format("x"), book, where)

        ours, floor = await interleave(ROUNDS, plain(few), lambda: shlex.split(f"git status -s dir{next(numbers)}"))
        yield promised("verdict on a plain command", ours, 100e-6, floor, "shlex.split")
        yield await among("the same", plain(few), plain(many), ROUNDS)
        ours, floor = await interleave(FEWER, compound(few), bare_shfmt)
        yield promised("verdict on a compound line, with the second reader", ours, 6e-3, floor, "shfmt alone")
        yield await among("the same", compound(few), compound(many), FEWER)
        tree = parser()
        ours, floor = await interleave(ROUNDS, again(few), lambda: tree.parse(COMPOUND.format("x").encode()))
        yield promised("a compound line that was read before", ours, 6e-3, floor, "tree-sitter alone")
        yield await among("the same", again(few), again(many), ROUNDS)
    yield await corpus()


async def among(
    what: str, few: Callable[[], Awaitable[object]], many: Callable[[], Awaitable[object]], rounds: int
) -> Row:
    """The same question in turn to a book of few rules and to one of many."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for decide, taken in zip((few, many), times, strict=True):
            started = time.perf_counter()
            await decide()
            taken.append(time.perf_counter() - started)
    before, seconds = map(statistics.median, times)
    return Row(
        what=f"{what}, among {RULES:,} rules",
        ours=shown(seconds),
        floor=f"{shown(before)} (among {len(PATTERNS)})",
        figure=f"{seconds / before:.2f} ×",
        promise="≤ 2 ×",
        kept=seconds <= 2 * before,
    )


async def corpus() -> Row:
    """The lines of the corpus, as a check that what was measured is also right."""
    outcomes = []
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
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
    found = [parse_rule(pattern, "allow", RuleOrigin(label="benchmark")) for pattern in patterns]
    return [rule for rule in found if isinstance(rule, Rule)]


def unrelated(count: int) -> list[str]:
    """Rules about other programs, and about other commands of the same."""
    return [f"git sub{number} **" if number % 3 else f"program{number} --option **" for number in range(count)]


def bare_shfmt() -> None:
    """The second reader's program alone, as any program would start it."""
    program = find_shfmt() or "shfmt"
    subprocess.run([program, "--to-json"], input=COMPOUND.encode(), stdout=subprocess.DEVNULL, check=True)


def promised(what: str, seconds: float, limit: float, floor: float, name: str) -> Row:
    return Row(
        what=what,
        ours=shown(seconds),
        floor=f"{shown(floor)} ({name})",
        figure=f"{shown(seconds)}, {seconds / floor:.2f} ×",
        promise=f"≤ {shown(limit)}",
        kept=seconds <= limit,
    )


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"

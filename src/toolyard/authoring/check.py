"""`tool check`: every fault of tool files at once, and what is legal but will hurt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.authoring.bench import open_bench
from toolyard.kinds import KINDS
from toolyard.plugins.checks.findings import with_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolyard.core.problems import Problem
    from toolyard.plugins.kind import Kind

TRIAL_SECONDS = 10


async def check_tools(path: Path, *, timeout: float = TRIAL_SECONDS, kinds: Sequence[Kind] = KINDS) -> list[Problem]:
    """Check the tool of a file, or all tools of a folder; each of their subcommands may take `timeout` seconds."""
    async with open_bench(path, timeout=timeout, kinds=kinds) as bench:
        findings = [with_line(problem, path) for problem in bench.loading_problems()]
        for kind, source in bench.sources_by_kind():
            if kind.author:
                findings += await kind.author.check(source, timeout)
    return sorted(findings, key=order)


def order(found: Problem) -> tuple[str, int, str, str]:
    where = found.where
    return (str(where.file) if where else "", (where and where.line) or 1, found.severity, found.message)

"""`python -m benchmarks.ends [--runs N] [--jobs N] [--fast] [SETTING…]`: what is left after ends of every cause.

A setting is a backend, `none` for outside of any sandbox, and for whom: `bubblewrap:root`, `landlock:user`. Run as
root, which can be everybody. Each end is that of an application of its own with hostile daemons
(`tests/hostile_ends.py`).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from hostile_ends import CAUSES, FAST, TRICKS, Left, Setting, end_once  # noqa: E402
from users import as_other  # noqa: E402

WHO = {
    "root": (),
    "user": tuple(as_other(ordinary=True)),
    "user, contained": tuple(as_other(ordinary=True, contained=True)),
}
DEFAULT = ("bubblewrap:root",)
HEADER = "| setting | cause | ends | survived | things left | median | slowest |\n|---|---|---|---|---|---|---|"


def main(arguments: list[str]) -> int:
    options = read_options(arguments)
    lasting = 0
    print(HEADER)
    for name in options.settings or DEFAULT:
        for cause in options.cause or CAUSES:
            found = run(cause, setting_of(name, fast=options.fast), options.runs, options.jobs)
            print(row(name, cause, found), flush=True)
            lasting += sum(bool(one.survivors or one.things) for one in found)
            for one in found:
                if one.survivors or one.things:
                    print(f"{name}, {cause}: {one.survivors} {one.things}", file=sys.stderr, flush=True)
    return 1 if lasting else 0


def read_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cause", action="append", choices=list(CAUSES))
    parser.add_argument("--fast", action="store_true", help="with chains of forks that only the kernel is faster than")
    return parser.parse_args(arguments)


def setting_of(name: str, *, fast: bool) -> Setting:
    backend, _, who = name.partition(":")
    tricks = (*TRICKS, *FAST) if fast else TRICKS
    return Setting(None if backend == "none" else backend, tricks, WHO[who or "root"])


def run(cause: str, setting: Setting, runs: int, jobs: int) -> list[Left]:
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda _: end_once(cause, setting), range(runs)))


def row(name: str, cause: str, found: list[Left]) -> str:
    seconds = [one.seconds for one in found]
    counts = (len(found), sum(bool(one.survivors) for one in found), sum(bool(one.things) for one in found))
    return (
        f"| {name} | {cause} | {' | '.join(map(str, counts))} "
        f"| {statistics.median(seconds):.2f} s | {max(seconds):.2f} s |"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

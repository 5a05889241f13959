"""A persistent shell: ours against bash itself, and beside other people's, as shipped and tuned."""

from __future__ import annotations

import statistics
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.measure import Note, Row
from benchmarks.shell_sessions import FLOOR, OURS, PEERS, READER, Contestant
from benchmarks.shell_worker import Failed, Worker

ROUNDS = 7
COMMANDS = ("true", "echo hi", "/bin/true")
COMMANDS_A_ROUND = 200
SECONDS_A_ROUND = 0.5
"""Slow peers run fewer commands; their p99 is then the slowest of a handful."""
STARTS_A_ROUND = 5
OUTPUTS = {
    "100 MB on one line": ("head -c 100000000 /dev/zero | tr '\\0' x", "xxx"),
    "`seq 5000000`": ("seq 5000000", "4999999"),
}
OUTPUT_PATIENCE = 20.0
IDLE_SESSIONS = 20
IDLE_ROUNDS = 3
EARLIER_COMMANDS = 10_000
OTHER_SESSIONS = 200
GIGABYTE = 1_000_000_000
MUCH = 10 * GIGABYTE
LEFT_OUT = "Left out: openhands-tools, which needs Python 3.12 and brings some 340 packages"


async def rows() -> AsyncIterator[Row | Note]:
    """Each group with processes of its own: a peer that fails in one can still take part in the next."""
    missing = {peer.label: why for peer in PEERS if (why := await lacking(peer))}
    peers = [peer for peer in PEERS if peer.label not in missing]
    for group in (latency(peers), start(peers), throughput(peers), idle(peers), ageing(), growth()):
        async for row in group:
            yield row
    yield Note("; ".join((LEFT_OUT, *(f"{label} ({why})" for label, why in missing.items()))) + ".")


async def latency(peers: Sequence[Contestant]) -> AsyncIterator[Row]:
    """From the call to its answer; the contestants in turn, in short rounds."""
    async with working(FLOOR, OURS, *peers) as workers:
        times = {(worker, command): Rounds() for worker in workers for command in COMMANDS}
        for worker in workers:
            await worker.tries("open", count=1)
        for _ in range(ROUNDS):
            for (worker, command), rounds in times.items():
                rounds.add(await a_round(worker, command))
    floor, ours, *others = workers
    for command in COMMANDS:
        mine, bare, most = times[ours, command], times[floor, command], 3 if command == "true" else None
        yield against_floor(f"`{command}` in a session", mine, bare, most, ours.failure)
    for peer in others:
        what = ", ".join(f"`{command}`" for command in COMMANDS)
        pair = ([times[who, command] for command in COMMANDS] for who in (ours, peer))
        yield beside(what, peer.contestant, *pair, failure=peer.failure, least=promised(peer.contestant))


async def a_round(worker: Worker, command: str) -> list[float] | None:
    times: list[float] | None = await worker.tries(
        "latency", command=command, count=COMMANDS_A_ROUND, seconds=SECONDS_A_ROUND
    )
    return times


def promised(peer: Contestant) -> int | None:
    """How many times faster ours is to be."""
    if not peer.persistent:
        return None
    return 3 if peer.tuned else 100


async def start(peers: Sequence[Contestant]) -> AsyncIterator[Row]:
    """From nothing to the end of a first `true`; where a process has a session already, and where it has none."""
    persistent = [peer for peer in peers if peer.persistent]
    first = Rounds()
    async with working(FLOOR, OURS, *persistent) as workers:
        times = {worker: Rounds() for worker in workers}
        for worker in workers:
            await worker.tries("open", count=1)
        for _ in range(ROUNDS):
            for worker, rounds in times.items():
                count = STARTS_A_ROUND if worker.contestant in (FLOOR, OURS) else 1
                rounds.add(await worker.tries("start", count=count))
            async with working(OURS) as (fresh,):
                first.add(await fresh.tries("start", count=1))
    floor, ours, *others = workers
    yield against_floor("start of a session", times[ours], times[floor], 4, ours.failure)
    yield against_floor("start of the first session of a process", first, times[floor], None, ours.failure)
    for peer in others:
        yield beside("start of a session", peer.contestant, [times[ours]], [times[peer]], failure=peer.failure)


async def throughput(peers: Sequence[Contestant]) -> AsyncIterator[Row]:
    """Much output by one command: reader and ours in every round, each peer in one of them, and not for ever."""
    times: dict[tuple[Contestant, str], Rounds] = {
        (who, what): Rounds() for who in (READER, OURS, *peers) for what in OUTPUTS
    }
    failures: dict[Contestant, str] = {}
    async with working(READER, OURS) as steady:
        for worker in steady:
            await worker.tries("open", count=1)
        for number in range(max(ROUNDS, len(peers))):
            for what in OUTPUTS:
                for worker in steady:
                    times[worker.contestant, what].add([await much_output(worker, what)])
                for peer in peers[number : number + 1]:
                    async with working(peer) as (guest,):
                        await guest.tries("open", count=1)
                        times[peer, what].add([await much_output(guest, what)])
                        failures[peer] = failures.get(peer) or guest.failure
    for what in OUTPUTS:
        yield share_of_floor(what, times[OURS, what], times[READER, what])
    for peer in peers:
        pair = ([times[who, what] for what in OUTPUTS] for who in (OURS, peer))
        yield beside(", ".join(OUTPUTS), peer, *pair, failure=failures[peer], text=Rounds.seconds)


async def much_output(worker: Worker, what: str) -> float | None:
    command, end = OUTPUTS[what]
    taken: float | None = await worker.tries(
        "output", within=OUTPUT_PATIENCE + 10, command=command, end=end, timeout=OUTPUT_PATIENCE
    )
    return taken


def share_of_floor(what: str, ours: Rounds, floor: Rounds) -> Row:
    share = floor.p50 / ours.p50 if ours and floor else 0
    promise = 0.7 if what.startswith("100 MB") else None
    return Row(
        what=f"{what} through a session",
        ours=ours.seconds(),
        floor=f"{floor.seconds()} ({READER.label})",
        figure=f"{100 * share:.0f} %",
        promise=f"≥ {100 * promise:.0f} %" if promise else "-",
        kept=share >= promise if promise else None,
    )


async def idle(peers: Sequence[Contestant]) -> AsyncIterator[Row]:
    """What each further session costs while it does nothing, the Python side and every helper included."""
    shipped = [peer for peer in peers if peer.persistent and not peer.tuned]
    async with working(FLOOR, OURS, *shipped) as workers:
        floor, ours, *others = workers
        costs: dict[Worker, list[Cost]] = {worker: [] for worker in workers}
        for number in range(IDLE_ROUNDS):
            for worker in workers if number == 0 else (floor, ours):
                costs[worker] += await session_cost(worker)
    mine, bare = Cost.median(costs[ours]), Cost.median(costs[floor])
    besides = mine.kib - bare.kib
    yield Row(
        what="an idle session",
        ours=ours.failure or str(mine),
        floor=f"{bare} ({FLOOR.label})",
        figure=f"{besides:.0f} KiB besides bash's own",
        promise="1 process, ≤ 1 MiB besides bash's own",
        kept=not ours.failure and round(mine.processes, 1) == 1 and besides <= 1024,
    )
    for peer in others:
        yield Row(
            what=f"an idle session, beside {peer.contestant.label}",
            ours=ours.failure or str(mine),
            floor=peer.failure or str(Cost.median(costs[peer])),
            figure="-",
            promise="-",
            kept=None,
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one session: processes, and memory with shared pages counted in parts."""

    processes: float
    kib: float

    @staticmethod
    def median(costs: list[Cost]) -> Cost:
        pairs = [(cost.processes, cost.kib) for cost in costs] or [(0, 0)]
        return Cost(*map(statistics.median, zip(*pairs, strict=True)))

    def __str__(self) -> str:
        return f"{self.processes:.3g} process{'' if round(self.processes, 1) == 1 else 'es'}, {self.kib:.0f} KiB"


async def session_cost(worker: Worker) -> list[Cost]:
    """For each of twenty more sessions than one; nothing when that failed."""
    try:
        await worker.ask("open", count=1)
        before = await worker.ask("memory")
        await worker.ask("open", count=IDLE_SESSIONS)
        after = await worker.ask("memory")
        await worker.ask("close")
    except Failed:
        return []
    return [Cost(*((after[key] - before[key]) / IDLE_SESSIONS for key in ("processes", "pss_kib")))]


async def ageing() -> AsyncIterator[Row]:
    """What a session has behind it, or beside it, against one that was just opened."""
    lives: dict[str, dict[str, Any]] = {
        f"`true` after {EARLIER_COMMANDS:,} others": {
            "what": "latency",
            "command": "true",
            "count": EARLIER_COMMANDS,
            "seconds": 60,
        },
        f"`true` beside {OTHER_SESSIONS} idle sessions": {"what": "open", "count": OTHER_SESSIONS},
        "`true` after 1 GB of output": {
            "what": "output",
            "command": f"head -c {GIGABYTE} /dev/zero",
            "end": "",
            "timeout": 60,
        },
    }
    async with working(OURS, *[OURS] * len(lives)) as (fresh, *aged):
        for worker, life in zip(aged, lives.values(), strict=True):
            await worker.tries("open", count=1)
            await worker.tries(within=90, **life)
        times = {worker: Rounds() for worker in (fresh, *aged)}
        for _ in range(ROUNDS):
            await fresh.tries("close")
            await fresh.tries("open", count=1)
            for worker, rounds in times.items():
                rounds.add(await a_round(worker, "true"))
    for what, worker in zip(lives, aged, strict=True):
        old, new = times[worker], times[fresh]
        yield Row(
            what=what,
            ours=old.both(),
            floor=f"{new.both()} (a fresh session)",
            figure=f"{old.p50 / new.p50:.2f} ×" if old and new else f"failed: {worker.failure or fresh.failure}",
            promise="-",
            kept=None,
        )


async def growth() -> AsyncIterator[Row]:
    """How much larger our process is at its largest, while a command writes and writes."""
    async with working(OURS) as (worker,):
        await worker.tries("open", count=1)
        command = f"yes abcdefghi | head -c {MUCH}"
        mib = await worker.tries("growth", within=330, command=command, timeout=300)
    yield Row(
        what=f"memory for {MUCH // GIGABYTE} GB of output by one command",
        ours=worker.failure or f"{mib:.1f} MiB",
        floor="-",
        figure=worker.failure or f"{mib:.1f} MiB",
        promise="≤ 32 MiB",
        kept=mib is not None and mib <= 32,
    )


class Rounds:
    """Times of some rounds: the median of the rounds' own figures, which one slow moment does not move."""

    def __init__(self) -> None:
        self.halves: list[float] = []
        self.tails: list[float] = []

    def add(self, times: Sequence[float | None] | None) -> None:
        measured = sorted(time for time in times or () if time is not None)
        if measured:
            self.halves.append(statistics.median(measured))
            self.tails.append(measured[round(0.99 * (len(measured) - 1))])

    def __bool__(self) -> bool:
        return bool(self.halves)

    @property
    def p50(self) -> float:
        return statistics.median(self.halves)

    def both(self) -> str:
        if not self:
            return "-"
        tail = "" if self.tails == self.halves else f" (p99 {ms(statistics.median(self.tails))})"
        return f"{ms(self.p50)}{tail} ms"

    def seconds(self) -> str:
        return f"{self.p50:.3g} s" if self else "-"


def ms(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.3g}"


def against_floor(what: str, ours: Rounds, floor: Rounds, most: float | None, failure: str) -> Row:
    ratio = ours.p50 / floor.p50 if ours and floor else None
    return Row(
        what=what,
        ours=ours.both(),
        floor=f"{floor.both()} ({FLOOR.label})",
        figure=f"{ratio:.2f} ×" if ratio else f"failed: {failure}",
        promise=f"≤ {most} ×" if most else "-",
        kept=(ratio is not None and ratio <= most) if most else None,
    )


def beside(
    what: str,
    peer: Contestant,
    ours: Iterable[Rounds],
    theirs: Iterable[Rounds],
    *,
    failure: str,
    least: int | None = None,
    text: Callable[[Rounds], str] = Rounds.both,
) -> Row:
    """A peer's figures in the place of the floor's; the promise is about the first of them."""
    pairs = list(zip(ours, theirs, strict=True))
    ratios = [their.p50 / mine.p50 if mine and their else 0 for mine, their in pairs]
    return Row(
        what=f"{what}, beside {peer.label}",
        ours=", ".join(text(mine) for mine, _ in pairs),
        floor=", ".join(text(their) for _, their in pairs) + (f" ({failure})" if failure else ""),
        figure=", ".join(map(faster, ratios)),
        promise=f"≥ {least} × faster" if least else "-",
        kept=ratios[0] >= least if least and ratios[0] else None,
    )


def faster(ratio: float) -> str:
    if not ratio:
        return "-"
    return f"{ratio:.3g} × faster" if ratio >= 1 else f"{1 / ratio:.3g} × slower"


@asynccontextmanager
async def working(*contestants: Contestant) -> AsyncIterator[list[Worker]]:
    """A process for each, ended at the end."""
    workers = [Worker(contestant) for contestant in contestants]
    try:
        for worker in workers:
            await worker.start()
        yield workers
    finally:
        for worker in workers:
            await worker.end()


async def lacking(peer: Contestant) -> Any:
    async with working(peer) as (worker,):
        return await worker.tries("ready")

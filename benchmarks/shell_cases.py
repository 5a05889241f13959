"""How many of the forty-one awkward commands each shell gets right; some minutes, so only with `--cases`."""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchmarks.measure import Note, Row
from benchmarks.shell_awkward import CASES
from benchmarks.shell_sessions import OURS, PEERS, Contestant
from benchmarks.shell_worker import Failed, Worker

HARD_LIMIT = 60.0


async def rows() -> AsyncIterator[Row | Note]:
    """Ours must pass all; a peer's pass count stands beside it."""
    ours = await failures(OURS)
    passed = len(CASES) - len(ours)
    yield (
        Note(f"Awkward commands that ours failed: {listed(ours)}.")
        if ours
        else Note("Ours passed every awkward command.")
    )
    yield Row(
        what="awkward commands done right",
        ours=f"{passed} of {len(CASES)}",
        floor="-",
        figure=f"{passed} of {len(CASES)}",
        promise="all",
        kept=not ours,
    )
    for peer in (peer for peer in PEERS if not peer.tuned):
        theirs = await failures(peer)
        yield Row(
            what=f"awkward commands done right, beside {peer.label}",
            ours=f"{passed} of {len(CASES)}",
            floor=f"{len(CASES) - len(theirs)} of {len(CASES)}",
            figure="-",
            promise="-",
            kept=None,
        )
        yield Note(f"Awkward commands that {peer.label} failed: {listed(theirs)}.")


async def failures(contestant: Contestant) -> dict[str, str]:
    """The cases that failed, each tried in a process of its own, with the reason."""
    failed = {}
    for name in CASES:
        worker = Worker(contestant)
        await worker.start()
        try:
            if reason := await worker.ask("case", name=name, within=HARD_LIMIT):
                failed[name] = reason
        except Failed as failure:
            failed[name] = str(failure)
        await worker.end()
    return failed


def listed(failed: dict[str, str]) -> str:
    return ", ".join(failed) or "none"

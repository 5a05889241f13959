"""Run: the tool itself, and what the sandbox has to do and to say before and after."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.files.plain_text import printable
from toolyard.runtime.call_steps.conditions import CallEnded
from toolyard.runtime.call_steps.results import not_run

LONGEST_HOLD = 60.0
"""How many seconds a call waits for a line outside that a rule let run."""
HELD = (
    "a line that a rule let run outside of the sandbox has not ended, and nothing may change what it obeys meanwhile; "
    "wait for it, or end it"
)

if TYPE_CHECKING:
    from toolyard.core.tool import ToolResult
    from toolyard.process.sandbox.sandbox import Sandbox
    from toolyard.runtime.call_steps.conditions import CallServices, ReadyCall


async def run_tool(ready: ReadyCall, services: CallServices) -> ToolResult:
    """Run it, and say what the sandbox stopped. Nothing that a tool made may be obeyed later outside: what had to be
    moved away, and what git inside keeps for itself, is said too.
    """
    sandbox, work = ready.sandbox(services), services.sandboxes.get("work")
    if work is None:
        return await ready.tool.run(ready.plan, ready.context)
    if sandbox is not work:
        return await run_in(sandbox, work, ready)
    inside = work.common.inside
    if inside.is_held and not await inside.wait(min(ready.context.timeout or LONGEST_HOLD, LONGEST_HOLD)):
        raise CallEnded(not_run(HELD))
    with inside.call():
        return await run_in(sandbox, work, ready)


async def run_in(sandbox: Sandbox | None, work: Sandbox, ready: ReadyCall) -> ToolResult:
    refused_before = sandbox.connections.refused_hosts if sandbox else 0
    await work.exchange_repositories()
    result = await ready.tool.run(ready.plan, ready.context)
    notes = explanations(result, ready, sandbox, refused_before) if sandbox and has_failed(result) else []
    if not notes and work.is_settled():
        return result
    await work.exchange_repositories()
    if moved := await work.sweep_after_call():
        said = {printable(path): printable(put(to)) for path, to in moved.items()}
        notes += [f"[{path} would be obeyed outside the sandbox, so it was {done}]" for path, done in said.items()]
    notes += work.take_notes()
    return replace(result, text="\n".join([result.text, *notes])) if notes else result


def has_failed(result: ToolResult) -> bool:
    """Whether something in it went wrong that the sandbox may have caused."""
    return result.failure in ("exit_code", "timeout") or bool(result.exit_code)


def explanations(result: ToolResult, ready: ReadyCall, sandbox: Sandbox, refused_before: int) -> list[str]:
    """A line on what the sandbox stopped, if it did."""
    if sandbox.is_missing:
        return []
    from toolyard.runtime.sandbox_notes import CallSurroundings, notes_on

    has_mounts = sandbox.name.partition(" ")[0] != "landlock"
    around = CallSurroundings(
        reach=ready.context.reach,
        policy=sandbox.policy,
        refused=sandbox.connections.refusals_since(refused_before),
        refused_sockets=sandbox.connections.take_refused_sockets(),
        nested=sandbox.layout.nested if has_mounts else {},
        writable=[*sandbox.layout.writable(), *sandbox.temporary()[0]],
        own_environment=sys.prefix if sys.prefix != sys.base_prefix else "",
        has_mounts=has_mounts,
        asks_reach=getattr(ready.tool, "asks_reach", ""),
    )
    return notes_on(result, around)


def put(to: str) -> str:
    """What became of something that was swept away: its new path, or what was done with it."""
    return f"moved to {to}" if to.startswith("/") else to

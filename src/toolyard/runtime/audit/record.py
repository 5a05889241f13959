"""What the audit log says of a call, before and after its run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.core.reach import named

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.core.tool import Plan, Tool, ToolResult
    from toolyard.permissions.verdict import Verdict


def plan_record(tool: Tool, plan: Plan, cwd: Path, sandbox: str) -> dict[str, Any]:
    record: dict[str, Any] = {
        "kind": tool.kind,
        "cwd": str(plan.cwd or cwd),
        "envKeys": plan.env_keys,
        "sandbox": sandbox,
    }
    if plan.command is not None:
        record["command"] = plan.command
    else:
        record["argv"] = plan.argv
    return record


def verdict_record(verdict: Verdict, *, kept_in: bool) -> dict[str, Any]:
    """What was decided; where nothing keeps a call in, it reaches everything, whatever was decided."""
    return {
        "decision": verdict.decision,
        "reach": named(verdict.reach) if kept_in else "outside",
        **({"closed": True} if kept_in and verdict.reach == "closed" else {}),
        "rule": verdict.rule,
        "reason": verdict.reason,
    }


def outcome_record(result: ToolResult, duration: float) -> dict[str, Any]:
    return {
        "failure": result.failure,
        "exit": result.exit_code,
        "signal": result.signal,
        "timed_out": result.failure == "timeout",
        "ms": round(duration * 1000, 3),
        "bytes_out": result.bytes_out,
        "truncated": result.truncated is not None,
    }

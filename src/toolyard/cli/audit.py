"""`toolyard audit show|verify`: what ran, and whether the record of it is whole."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from toolyard.cli.application import sessions_place
from toolyard.cli.render import show_json, show_note, show_rows, show_text
from toolyard.cli.running import run_to_end
from toolyard.core.lossless_json import encode_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from toolyard.cli.main import GlobalOptions
    from toolyard.runtime.audit.read import Filter
    from toolyard.runtime.audit.verify import LogCheck


LOOK_EVERY = 0.25
LAST = 50


@click.group()
def audit() -> None:
    """Look into the audit log of the sessions folder."""


@audit.command(short_help="Show what ran.")
@click.option("--tool", metavar="NAME", help="Only calls of this tool.")
@click.option("--session", metavar="ID", help="Only calls of this session; the beginning of its id is enough.")
@click.option("--day", metavar="YYYY-MM-DD", help="Only this day (UTC).")
@click.option("--failures", is_flag=True, help="Only calls that failed, or whose exit status is not 0.")
@click.option("--last", metavar="N", type=click.IntRange(0), default=LAST, help=f"How many; default {LAST}, 0 is all.")
@click.option("--follow", is_flag=True, help="Then show new lines as they come, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines themselves, one record each.")
@click.pass_obj
def show(
    options: GlobalOptions,
    tool: str | None,
    session: str | None,
    day: str | None,
    failures: bool,
    last: int,
    follow: bool,
    as_json: bool,
) -> int:
    """Show the calls of the log, oldest first: one row for a call, or with --json every line."""
    from toolyard.runtime.audit.read import Filter

    if day is not None and not is_day(day):
        raise click.UsageError(f"--day {day}: a day is written as 2026-01-31")
    wanted = Filter(tool=tool, session=session, day=day, failures=failures)
    folder = sessions_place(options) / "audit"
    if follow:
        return run_to_end(follow_log(folder, wanted, last, as_json))
    return show_log(folder, wanted, last, as_json)


def is_day(text: str) -> bool:
    try:
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text) and date.fromisoformat(text))
    except ValueError:
        return False


@audit.command(short_help="Check that no line was changed or removed.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as a record.")
@click.pass_obj
def verify(options: GlobalOptions, as_json: bool) -> int:
    """Check that no line of the log was changed, removed or added, and name the first that was.

    What could not be written at its time, and calls without an end, are named too.

    Exit status: 0 the log is whole, 1 it is not.
    """
    from toolyard.runtime.audit.verify import check_log

    checked = check_log(sessions_place(options) / "audit")
    if as_json:
        import msgspec

        show_json({"whole": checked.is_whole, **msgspec.to_builtins(checked, enc_hook=str)})
    else:
        show_check(checked)
    return 0 if checked.is_whole else 1


def show_log(folder: Path, wanted: Filter, last: int, as_json: bool) -> int:
    from collections import deque

    from toolyard.runtime.audit.read import calls_of, records_of

    records = records_of(folder, wanted)
    show_records(deque(records if as_json else calls_of(records), maxlen=last or None), as_json)
    return 0


async def follow_log(folder: Path, wanted: Filter, last: int, as_json: bool) -> int:
    import asyncio

    from toolyard.runtime.audit.read import LogFollower

    follower = LogFollower(folder, wanted)
    show_records(follower.more()[-last:], as_json)
    while True:
        await asyncio.sleep(LOOK_EVERY)
        show_records(follower.more(), as_json)


def show_records(records: Iterable[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for record in records:
            show_text(encode_json(record).decode() + "\n")
    elif rows := [row(record) for record in records]:
        show_rows(rows)


def row(record: dict[str, Any]) -> list[str]:
    if record.get("event") == "network":
        place = f"{record.get('host')}:{record.get('port')} ({record.get('reason')})"
        return [shown_time(record), "network", "ok" if record.get("decision") == "allow" else "denied", "", place]
    if record.get("event") == "gap":
        calls = "1 call" if record.get("calls") == 1 else f"{record.get('calls')} calls"
        return [shown_time(record), "-", "gap", "", f"{calls}: {record.get('reason')}"]
    what = record.get("command") or " ".join(record.get("argv") or ()) or record.get("found") or ""
    duration = f"{record['ms']:.0f} ms" if "ms" in record else ""
    return [shown_time(record), str(record.get("tool", "-")), outcome(record), duration, str(what)]


def shown_time(record: dict[str, Any]) -> str:
    return str(record.get("time", ""))[:19].replace("T", " ")


def outcome(record: dict[str, Any]) -> str:
    if record.get("event") != "end":
        return str(record.get("event", "-"))
    if record.get("failure") not in (None, "exit_code"):
        return str(record["failure"])
    return f"exit {record['exit']}" if record.get("exit") else "ok"


def show_check(checked: LogCheck) -> None:
    for gap in checked.gaps:
        show_note(str(gap), "error" if gap.lines else "warning")
    if checked.broken:
        show_note(str(checked.broken), "error")
    elif not checked.lines:
        show_note("the log is empty")
    else:
        show_unchanged(checked)


def show_unchanged(checked: LogCheck) -> None:
    if checked.behind_head:
        lines = "1 line is" if checked.behind_head == 1 else f"{checked.behind_head} lines are"
        why = "written just before a crash, or added by somebody else"
        show_note(f"{lines} behind the head of the log: {why}", "error")
    missing = any(gap.lines for gap in checked.gaps)
    what = "whole" if checked.is_whole else "unchanged, but others were never written" if missing else "a chain"
    show_text(f"{checked.lines} lines of {checked.days} days are {what}; the last is {checked.head}\n")
    if not checked.starts_at_the_beginning:
        show_note("earlier days are not here", "warning")

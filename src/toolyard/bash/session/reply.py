"""What became of one command, as the caller hears it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.tool import Truncation  # noqa: TC001 - the struct's fields are looked at while it is made

if TYPE_CHECKING:
    from toolyard.bash.session.command import Command
    from toolyard.bash.session.shell import Bash
    from toolyard.process.output import Captured


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one command."""

    output: str
    exit_code: int | None
    """None while it still runs."""
    cwd: str
    duration: float
    timed_out: bool = False
    restarted: bool = False
    """Whether it ran in a fresh shell because the one before had ended."""
    truncated: Truncation | None = None
    waiting_for_input: bool = False
    ended: bool = False
    """Whether it ended its shell."""
    note: str | None = None
    job: str | None = None


def reply_at_end(command: Command, bash: Bash, *, timed_out: bool = False, note: str | None = None) -> Reply:
    """Of a command that is over, or whose shell is."""
    captured = command.transcript.finish()
    record, news = command.record, command.news
    if record is None:
        command.ended = time.monotonic()
        if note is None and not timed_out:
            note = f"This ended the shell with status {bash.status}; the next command gets a fresh one."
    status = bash.status if record is None else record.status
    limits = bash.process.limits
    if limits.any and (hit := limits.hit(status, captured.text)):
        note = f"{hit} {note}" if note else hit
    return Reply(
        output=captured.text,
        exit_code=status,
        cwd=bash.cwd,
        duration=command.ended - command.started,
        timed_out=timed_out,
        restarted=news is not None,
        truncated=captured.truncated,
        ended=record is None,
        note=f"{news} {note}" if news and note else news or note,
    )


def reply_before_end(
    command: Command,
    bash: Bash,
    printed: Captured,
    *,
    timed_out: bool = False,
    waiting_for_input: bool = False,
    job: str | None = None,
) -> Reply:
    """Of a command that goes on: it waits for input, or is a job now."""
    news, command.news = command.news, None
    return Reply(
        output=printed.text,
        exit_code=None,
        cwd=bash.cwd,
        duration=time.monotonic() - command.started,
        timed_out=timed_out,
        restarted=news is not None,
        truncated=printed.truncated,
        waiting_for_input=waiting_for_input,
        note=news,
        job=job,
    )

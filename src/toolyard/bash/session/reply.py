"""What the caller of a command gets back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.tool import Truncation  # noqa: TC001 - the struct's fields are looked at while it is made

if TYPE_CHECKING:
    from toolyard.bash.session.command import Command
    from toolyard.bash.session.shell import Shell
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
    printed_bytes: int = 0
    """How much it printed, also of what is left out."""
    waiting_for_input: bool = False
    ended: bool = False
    """Whether it ended its shell."""
    note: str | None = None
    job: str | None = None
    held_back: bool = False
    """Whether an end of the output is not in it yet that may be the beginning of a secret, since more may come."""


def reply_at_end(
    command: Command, shell: Shell, *, timed_out: bool = False, note: str | None = None, goes_on: bool = False
) -> Reply:
    """The reply of a command that is over, or whose shell has ended; what it left running may print more: `goes_on`."""
    captured = command.transcript.finish(goes_on=goes_on)
    output = shell.own_text(captured.text) if command.has_records else captured.text
    record, notice = command.record, command.notice
    status = shell.status_at_end(command, output) if record is None else record.status
    if record is None:
        command.ended = time.monotonic()
        if note is None and not timed_out:
            note = f"This ended the shell with status {status}; the next command gets a fresh one."
    limits = shell.process.limits
    if limits.any and (hit := limits.hit(status, captured.text)):
        note = f"{hit} {note}" if note else hit
    return Reply(
        output=output,
        exit_code=status,
        cwd=shell.cwd,
        duration=command.ended - command.started,
        timed_out=timed_out,
        restarted=notice is not None,
        truncated=captured.truncated,
        printed_bytes=captured.total_bytes,
        ended=record is None,
        note=f"{notice} {note}" if notice and note else notice or note,
        held_back=captured.held_back,
    )


def reply_before_end(
    command: Command,
    shell: Shell,
    printed: Captured,
    *,
    timed_out: bool = False,
    waiting_for_input: bool = False,
    job: str | None = None,
) -> Reply:
    """The reply of a command that goes on: it waits for input, or is a job now."""
    notice, command.notice = command.notice, None
    return Reply(
        output=printed.text,
        exit_code=None,
        cwd=shell.cwd,
        duration=time.monotonic() - command.started,
        timed_out=timed_out,
        restarted=notice is not None,
        truncated=printed.truncated,
        printed_bytes=printed.total_bytes,
        waiting_for_input=waiting_for_input,
        note=notice,
        job=job,
        held_back=printed.held_back,
    )

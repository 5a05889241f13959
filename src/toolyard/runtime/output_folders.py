"""Where output goes that is too long for a result, and for how long: a folder a workspace, since tools read there.

A file is locked as long as it is written, so that no application drops what another one is about to tell of.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from toolyard.files.own.entering import entered, listed, open_within
from toolyard.files.own.sessions_folder import OUTPUTS
from toolyard.files.steps import step_into

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.config.configuration import Configuration
    from toolyard.config.settings import OutputSettings


A_DAY = 24 * 3600


def output_folder(sessions: Path, workspace: str) -> Path:
    """The folder of one workspace; tools of another see neither it nor what is in it."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]
    return sessions / OUTPUTS / name


def has_reader(configuration: Configuration, agent: str, *, in_turn: bool) -> bool:
    """Whether there is the tool that reads on in what is kept: in all turns of ours or in none, elsewhere if wanted."""
    output = configuration.output_of(agent)
    return output.spill and (in_turn if output.reader is None else output.reader)


class KeptOutput(NamedTuple):
    """A file with a whole output."""

    written: float
    size: int
    workspace: str
    """The name of the folder that it is in."""
    name: str


def drop_old_outputs(sessions: Path, settings: OutputSettings, now: float | None = None) -> None:
    """Remove outputs of all workspaces that are too old, then the oldest until the rest is not too much.

    The newest stays, however large: its call tells where it is.
    """
    oldest = (time.time() if now is None else now) - settings.keep_days * A_DAY
    total = 0
    with contextlib.suppress(OSError), entered(sessions / OUTPUTS) as outputs:
        for index, kept in enumerate(sorted(kept_outputs(outputs), reverse=True)):
            total += kept.size
            if index and (kept.written < oldest or total > settings.keep_bytes) and remove_unused(kept, outputs):
                total -= kept.size


def kept_outputs(outputs: int) -> Iterator[KeptOutput]:
    """All that are kept; no link is followed."""
    with listed(outputs) as workspaces:
        for workspace in workspaces:
            if workspace.is_dir(follow_symlinks=False):
                yield from files_in(workspace.name, outputs)


def files_in(workspace: str, outputs: int) -> Iterator[KeptOutput]:
    with contextlib.suppress(OSError), stepped_into(workspace, outputs) as folder, listed(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                facts = entry.stat(follow_symlinks=False)
                yield KeptOutput(facts.st_mtime, facts.st_size, workspace, entry.name)


def remove_unused(kept: KeptOutput, outputs: int) -> bool:
    """Remove a file, unless somebody is writing it; whether it is gone."""
    import fcntl

    try:
        with stepped_into(kept.workspace, outputs) as folder:
            fd = open_within(folder, kept.name)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(kept.name, dir_fd=folder)
            finally:
                os.close(fd)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def stepped_into(name: str, folder: int) -> Iterator[int]:
    fd = step_into(name, folder)
    try:
        yield fd
    finally:
        os.close(fd)

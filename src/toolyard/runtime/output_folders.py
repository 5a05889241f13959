"""Where output goes that is too long for a result: a folder for each workspace, since tools read on there."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.config.configuration import Configuration


def output_folder(sessions: Path, workspace: str) -> Path:
    """The folder of one workspace; tools of another see neither it nor what is in it."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:16]
    return sessions / "outputs" / name


def has_reader(configuration: Configuration, agent: str) -> bool:
    """Whether an agent has the tool that reads on in what is kept: always or never, so that its tools do not change."""
    output = configuration.output_of(agent)
    wanted = output.reader if output.reader is not None else bool(configuration.for_agent(agent).get("provider"))
    return output.spill and wanted

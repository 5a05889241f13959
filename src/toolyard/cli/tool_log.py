"""What tools print beside their answers, on standard error."""

from __future__ import annotations

import logging

from toolyard.cli.render import show_note


class OnStandardError(logging.Handler):
    """Shows the lines themselves, with nothing around them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show one."""
        show_note(record.getMessage(), "faint")


def show_tool_log() -> None:
    """From now on, for the author who calls a tool to see what it does."""
    log = logging.getLogger("toolyard.node")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(OnStandardError())

"""Runs a command's work to its end, or to a signal."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["run_to_end"]


def run_to_end(work: Coroutine[Any, Any, int]) -> int:
    """The exit code of the work; SIGTERM and SIGHUP end it as Ctrl-C does, so that no process of it is left."""
    import asyncio

    from toolyard.cli.render import Interrupted

    async def watched() -> int:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            if task and signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
                loop.add_signal_handler(number, task.cancel)
        return await work

    try:
        return asyncio.run(watched())
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise Interrupted("interrupted") from None

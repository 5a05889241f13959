"""Runs a command's work to its end, or to a signal; what that needs is imported as late as can be."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine, Iterable
    from importlib.machinery import ModuleSpec


ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 3.0
"""How long whatever holds up the event loop, such as a file on a dead disk, may hold up the end of the program."""
INTERRUPTED = 130
IMPORTING = threading.RLock()


class PostponedModule(ModuleType):
    """Becomes the module itself when something is first asked of it.

    `importlib.util.LazyLoader` does so already when a second module imports it.
    """

    def __getattr__(self, name: str) -> Any:
        with IMPORTING:  # who asks meanwhile in another thread waits, and gets the whole module
            spec = self.__spec__
            if type(self) is PostponedModule and spec and spec.loader and not vars(self).get("__being_imported__"):
                vars(self)["__being_imported__"] = True
                try:
                    spec.loader.exec_module(self)
                finally:
                    del vars(self)["__being_imported__"]
                self.__class__ = ModuleType  # type: ignore[assignment]  # a module like all others from now on
            return ModuleType.__getattribute__(self, name)


def postpone(name: str) -> None:
    """Have a module that many others name imported when something of it is first used."""
    if name not in sys.modules and (spec := spec_of(name)):
        sys.modules[name] = module = module_from_spec(spec)
        module.__class__ = PostponedModule


def spec_of(name: str) -> ModuleSpec | None:
    """Where a module is; what it is part of is not imported for that."""
    package = name.rpartition(".")[0]
    if not package:
        return find_spec(name)
    above = find_spec(package)
    return PathFinder.find_spec(name, above.submodule_search_locations) if above else None


def postpone_tls() -> None:
    """Have all that is for TLS imported when it is needed: asyncio names it, and most commands connect to nobody."""
    postpone("ssl")
    postpone("asyncio.sslproto")


def run_to_end(work: Coroutine[Any, Any, int]) -> int:
    """Run work and return its exit code; Ctrl-C, SIGTERM and SIGHUP cancel it, so that no process is left."""
    postpone_tls()
    import asyncio

    from toolyard.cli.render import Interrupted

    async def watched() -> int:
        if task := asyncio.current_task():
            on_signals(handled, task.cancel, asyncio.get_running_loop(), patience=PATIENCE)
        try:
            return await work
        finally:
            # There is nothing left to cancel; tasks and threads that stay behind must not make us deaf.
            for number in handled:
                signal.signal(number, end_soon)

    before = after = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    handled = [number for number in ENDING_SIGNALS if before[number] is not signal.SIG_IGN]  # nohup means it
    try:
        return asyncio.run(watched())
    except (asyncio.CancelledError, KeyboardInterrupt):
        # There is nothing left to end; and of a signal in the moment of the change Python would complain.
        sys.unraisablehook = lambda _: None
        after = dict.fromkeys(ENDING_SIGNALS, signal.SIG_IGN)
        raise Interrupted("interrupted") from None
    finally:
        for number in ENDING_SIGNALS:
            signal.signal(number, after[number])


def on_signals(
    signals: Iterable[signal.Signals],
    act: Callable[[], object],
    loop: AbstractEventLoop,
    *,
    patience: float | None = None,
) -> None:
    """Call a function in the event loop at each signal.

    With `patience`, end the process if the loop does not listen, and at a further signal if that had no effect by then.
    asyncio's own handler raises an exception at the second Ctrl-C, wherever the loop is at that moment. A step that the
    loop was about to take can get lost by that, and its end then waits for the step for ever.
    """

    first: float | None = None

    def handle(*_: object) -> None:
        nonlocal first
        now = time.monotonic()
        first = now if first is None else first
        if patience is not None and now - first > patience:
            end_at_once()
        heard = threading.Event()

        def listen() -> None:
            heard.set()
            act()

        with contextlib.suppress(RuntimeError):  # a closed loop has ended everything
            loop.call_soon_threadsafe(listen)
            if patience is not None:
                threading.Thread(target=end_unless, args=(heard, patience), daemon=True).start()

    for number in signals:
        signal.signal(number, handle)


def end_soon(*_: object) -> None:
    """End the process, unless it ends by itself first."""
    threading.Thread(target=end_unless, args=(threading.Event(), PATIENCE), daemon=True).start()


def end_unless(heard: threading.Event, patience: float) -> None:
    """End the process at once if nobody listens."""
    if not heard.wait(patience):
        end_at_once()


def end_at_once() -> None:
    """The keeper sees that we are gone, and ends all that we started."""
    make_terminal_sane()
    os.write(2, b"toolyard: interrupted while it was busy\n")
    os._exit(INTERRUPTED)


def make_terminal_sane() -> None:
    """Have the terminal take lines and show them again, whatever was made of it; nobody else will."""
    import termios

    if not (os.isatty(0) and os.isatty(2)):
        return
    with contextlib.suppress(termios.error):
        input_flags, output_flags, control, local, *rest = termios.tcgetattr(0)
        local |= termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
        flags = [input_flags | termios.ICRNL | termios.IXON, output_flags | termios.OPOST, control, local, *rest]
        termios.tcsetattr(0, termios.TCSANOW, flags)
    os.write(2, b"\x1b[?2004l\x1b[?25h\x1b[0m\r\n" if os.environ.get("TERM", "dumb") != "dumb" else b"\n")

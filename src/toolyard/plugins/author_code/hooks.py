"""Running an author's code outside of calls: imports, constructors, hooks. What goes wrong there is a named problem."""

from __future__ import annotations

import inspect
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from toolyard.core.problems import Position, Problem
from toolyard.plugins.author_code.crashes import crash_text, frames_of
from toolyard.plugins.author_code.output import Outlet
from toolyard.plugins.author_code.running import OutOfTime, Raised, Returned, is_async, run_authored
from toolyard.process.output import Captured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolyard.plugins.author_code.running import Outcome
    from toolyard.plugins.plugin import Plugin


log = logging.getLogger("toolyard.plugins")


class AuthorCode(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever wrote a plugin, as the folders of his files and the time that he may take."""

    roots: tuple[str, ...]
    limit: float
    file: Path
    """What to name where no line of his is known."""

    async def run(self, call: Callable[[], Any], *, in_loop: bool = False) -> Outcome:
        """Run his code; what it prints goes to the log."""
        outlet = Outlet(None, late=log.debug)
        try:
            ended = await run_authored(
                call, in_loop=in_loop, outlet=outlet, timeout=self.limit, cancelled=threading.Event()
            )
            if isinstance(ended, Returned) and isinstance(ended.value, Captured):
                return Returned(ended.value.text)
            return ended
        finally:
            if printed := outlet.close().text.strip():
                log.info("%s printed: %s", self.file, printed)

    async def hook(self, function: Callable[..., Any], given: Mapping[str, Any]) -> Outcome:
        """Run one of his methods with those of the given arguments that it takes."""
        try:
            call = fitting_call(function, given)
        except TypeError as error:
            return Raised(error)
        return await self.run(call, in_loop=is_async(function))

    def problem(self, outcome: Raised | OutOfTime, what: str, *, code: str = "plugin_failed") -> Problem:
        """What went wrong, at the line of his own where it did."""
        if isinstance(outcome, OutOfTime):
            return Problem(
                code=f"{code}_timeout",
                message=f"{what} did not finish within {self.limit:g} seconds",
                hint="do slow work when a tool is called, or raise plugin_policy.python_import_timeout_seconds",
                where=Position(file=self.file),
            )
        error = outcome.error
        if isinstance(error, SyntaxError) and error.filename:
            where = Position(file=Path(error.filename), line=error.lineno, column=error.offset)
            return Problem(code=f"{code}_syntax", message=f"{what}: {error.msg}", where=where)
        frames = frames_of(error, self.roots)
        where = Position(file=Path(frames[-1].filename), line=frames[-1].lineno) if frames else Position(file=self.file)
        if isinstance(error, SystemExit):
            message, hint = f"{what} called sys.exit({error.code!r})", "a plugin must not end the application"
            return Problem(code=f"{code}_exit", message=message, hint=hint, where=where)
        message = f"{what} raised {crash_text(error, self.roots).splitlines()[0]}"
        return Problem(code=code, message=message, hint=missing_hint(error), where=where)


def missing_hint(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        key = '"plugin_policy": {"install_deps": true, "allow_remote": true}'
        return f"what a plugin needs is installed with it by {key}; without allow_remote nothing is downloaded"
    return ""


def fitting_call(
    function: Callable[..., Any], given: Mapping[str, Any], aliases: Mapping[str, str] | None = None
) -> Callable[[], Any]:
    """A call with those arguments that a function takes, by their names or other names for them.

    An author need not take all that there is, nor know its order. A required parameter of a strange name gets the
    first thing that no other asks for. Raises `TypeError` when there is nothing left for one.
    """
    parameters = inspect.signature(function).parameters.values()
    meant = {p.name: name for p in parameters if (name := (aliases or {}).get(p.name, p.name)) in given}
    left = [name for name in given if name not in meant.values()]
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name not in meant:
            if parameter.default is not parameter.empty:
                continue
            if not left:
                known = ", ".join(given)
                raise TypeError(f"{function.__name__}() wants '{parameter.name}'; what there is: {known}")
            meant[parameter.name] = left.pop(0)
        value = given[meant[parameter.name]]
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[parameter.name] = value
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        named |= {name: given[name] for name in left}
    return lambda: function(*positional, **named)


log = logging.getLogger("toolyard.plugins")
PATIENCE = 5.0
"""How many seconds a plugin may hold up the end of an application."""


async def close_plugin(plugin: Plugin, author: AuthorCode) -> None:
    """Let a plugin release what it holds; one that cannot is logged, for there is nobody left to tell."""
    author = replace(author, limit=min(author.limit, PATIENCE))
    for method in ("aclose", "close"):
        function = getattr(plugin.instance, method, None)
        if callable(function):
            outcome = await author.hook(function, {})
            if not isinstance(outcome, Returned):
                log.warning("%s", author.problem(outcome, f"{method} of '{plugin.id}'"))
            return

"""What a dotted name means: a module, or something in one."""

from __future__ import annotations

import difflib
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.core.problems import Problem
from toolyard.plugins.author_code.running import Returned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolyard.config.document import Place
    from toolyard.plugins.author_code.hooks import AuthorCode
    from toolyard.plugins.author_code.import_space import ImportSpace


async def import_entries(
    entries: Sequence[tuple[str, Place]], space: ImportSpace | None, author: AuthorCode
) -> tuple[list[tuple[str, Any]], list[Problem]]:
    """Import each entry by itself: one that exits, raises or hangs is a problem and does not stop the others."""
    targets: list[tuple[str, Any]] = []
    problems: list[Problem] = []
    for entry, where in entries:
        outcome = await author.run(finder(entry, space))
        if not isinstance(outcome, Returned):
            problems.append(author.problem(outcome, f"importing '{entry}'", code="plugin_import"))
        elif isinstance(outcome.value, Problem):
            problems.append(outcome.value.at(where.position()))
        else:
            targets.append((entry, outcome.value))
    return targets, problems


def finder(entry: str, space: ImportSpace | None) -> Callable[[], Any]:
    return lambda: find_target(entry, space)


def find_target(entry: str, space: ImportSpace | None) -> Any:
    """Import the longest part of a name that is a module, and follow the rest inside it."""
    load = space.load if space else importlib.import_module
    module = entry
    names: list[str] = []
    while True:
        try:
            found: Any = load(module)
            break
        except ModuleNotFoundError as error:
            parent, _, name = module.rpartition(".")
            missing = (error.name or "").removeprefix(f"{space.prefix}." if space else "")
            if not parent and missing == module:
                return missing_module(entry, module)
            if not parent or not f"{module}.".startswith(f"{missing}."):
                raise
            module, names = parent, [name, *names]
    for name in names:
        if not hasattr(found, name):
            return missing_name(entry, module, name, difflib.get_close_matches(name, dir(found), n=2))
        found = getattr(found, name)
    return found


def missing_module(entry: str, module: str) -> Problem:
    hint = "check the name; an entry is MODULE.CLASS, as a file of the plugin would import it"
    return Problem(code="plugin_entry", message=f"'{entry}': there is no module '{module}'", hint=hint)


def missing_name(entry: str, module: str, name: str, near: Sequence[str]) -> Problem:
    hint = f"did you mean {' or '.join(near)}?" if near else "check the name"
    return Problem(code="plugin_entry", message=f"'{entry}': the module '{module}' has no '{name}'", hint=hint)


def module_file(target: Any) -> Path | None:
    name = getattr(target, "__module__", None) or getattr(target, "__name__", None)
    file = getattr(sys.modules.get(str(name)), "__file__", None)
    return Path(file) if file else None

"""From what an author wrote to plugins: functions, classes, instances and whole modules, by what they can do."""

from __future__ import annotations

import functools
import inspect
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from toolyard.core.problems import Position, Problem
from toolyard.kinds.python_function.tool import function_tool
from toolyard.kinds.python_function.tool_class import ToolClass
from toolyard.plugins.author_code.running import OutOfTime, Raised, Returned
from toolyard.plugins.contract import ToolOptions, options_of
from toolyard.plugins.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.core.tool import JsonObject
    from toolyard.plugins.author_code.hooks import AuthorCode
    from toolyard.plugins.base_tools import BaseTools


FEATURE_METHODS = ("build_system_message", "request_options", "get_ui_elements")
APPLICATION_METHODS = ("start", "stop", "on_event")
PluginKind = Literal["tool", "provider", "feature", "application"]
KINDS: dict[PluginKind, Callable[[Any], bool]] = {
    "tool": lambda plugin: has(plugin, "get_tool_schemas") and has(plugin, "execute_tool", "as_call"),
    "provider": lambda plugin: has(plugin, "stream"),
    "feature": lambda plugin: has(plugin, *FEATURE_METHODS),
    "application": lambda plugin: has(plugin, *APPLICATION_METHODS),
}


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an entry."""

    plugins: Sequence[Plugin] = ()
    problems: Sequence[Problem] = ()


class FunctionPlugin:
    """A function as the plugin that it is: it says when it is on as a class would."""

    def __init__(self, plugin_id: str, options: ToolOptions) -> None:
        self.id = plugin_id
        self.default_enabled = options.default_enabled
        self._options = options

    def tags(self) -> Sequence[str]:
        """Tags that are there while this is on."""
        return sorted(self._options.tags)

    def required_tags(self) -> Sequence[str]:
        """Tags that must all be there."""
        return sorted(self._options.required_tags)

    def forbidden_tags(self) -> Sequence[str]:
        """Tags none of which may be there."""
        return sorted(self._options.forbidden_tags)


async def adopt(
    entry: str,
    target: Any,
    author: AuthorCode,
    *,
    config: JsonObject,
    timeout: float,
    kinds: Sequence[str] = (),
    bases: BaseTools | None = None,
) -> Adopted:
    """The plugins of an entry; whatever is wrong with it is a problem at the author's own line."""
    given: dict[str, Any] = {"config": config, "timeout": timeout, "kinds": kinds, "bases": bases}
    match target:
        case ModuleType():
            return await adopt_module(entry, target, author, **given)
        case type():
            made = await author.run(target)
            if not isinstance(made, Returned):
                return Adopted(problems=[author.problem(made, f"creating '{entry}'")])
            return await adopt_instance(entry, made.value, author, **given)
        case _ if inspect.isroutine(target) or isinstance(target, functools.partial):
            return await adopt_callable(entry, target, author, timeout)
    return await adopt_instance(entry, target, author, **given)


async def adopt_callable(
    entry: str, target: Callable[..., Any], author: AuthorCode, timeout: float, *, name: str | None = None
) -> Adopted:
    """One tool; of the author's own are also the models in its annotations, which are asked for their schemas."""
    made = await author.run(lambda: adopt_function(entry, target, author, timeout, name=name))
    return made.value if isinstance(made, Returned) else failed(entry, author, made)


def own_name(function: Callable[..., Any]) -> str | None:
    """The name that a function was given; a lambda, a partial and an object have none."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name != "<lambda>" else None


def last_name(entry: str) -> str:
    return entry.rpartition(".")[2]


def failed(entry: str, author: AuthorCode, outcome: Raised | OutOfTime) -> Adopted:
    return Adopted(problems=[author.problem(outcome, f"loading '{entry}'")])


async def adopt_module(entry: str, module: ModuleType, author: AuthorCode, **given: Any) -> Adopted:
    """All that a module marks as a tool, and its classes that are plugins with an id."""
    listed = await author.run(lambda: list(plugins_in(module)))
    if not isinstance(listed, Returned):
        return failed(entry, author, listed)
    found = [await adopt(f"{entry}.{name}", target, author, **given) for name, target in listed.value]
    plain = {} if found else plain_functions(module)
    if run := plain.get("run"):
        # As in collections of tools of which each is one file with this one function.
        return await adopt_callable(entry, run, author, given["timeout"], name=last_name(entry))
    described = {name: function for name, function in plain.items() if function.__doc__}
    found += [await adopt(f"{entry}.{name}", function, author, **given) for name, function in described.items()]
    if not found:
        message = f"'{entry}' is a module without plugins"
        hint = "mark its functions with @tool, or give them docstrings; define run(…), or name a class: module.Class"
        return Adopted(problems=[problem("plugin_entry", message, hint, Position(file=author.file))])
    return Adopted(
        plugins=[plugin for each in found for plugin in each.plugins],
        problems=[problem for each in found for problem in each.problems],
    )


def plugins_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Those that the module itself defines, not what it imports."""
    for name, target in list(vars(module).items()):
        if getattr(target, "__module__", None) != module.__name__:
            continue
        is_plugin = isinstance(target, type) and isinstance(getattr(target, "id", None), str) and kind_of(target)
        if is_plugin or (inspect.isroutine(target) and options_of(target)):
            yield name, target


def plain_functions(module: ModuleType) -> dict[str, FunctionType]:
    """The public functions that a module defines, for one that marks none as a tool."""
    own = {
        name: one for name, one in vars(module).items() if isinstance(one, FunctionType) and not name.startswith("_")
    }
    return {name: one for name, one in own.items() if one.__module__ == module.__name__}


def adopt_function(
    entry: str, function: Callable[..., Any], author: AuthorCode, timeout: float, *, name: str | None = None
) -> Adopted:
    options = options_of(function) or ToolOptions()
    made = function_tool(
        function,
        name=options.name or name or own_name(function) or last_name(entry),
        description=options.description,
        timeout=options.timeout or timeout,
        hints=options.hints,
        text=options.text,
        preview=options.preview,
        roots=author.roots,
    )
    if isinstance(made, Problem):
        message = f"'{entry}' cannot be a tool: {made.message}"
        return Adopted(problems=[replace(made, message=message, where=place_of(function, author))])
    plugin = Plugin(
        id=made.spec.name,
        kind="python",
        tools=[made],
        default_enabled=options.default_enabled,
        instance=FunctionPlugin(made.spec.name, options),
    )
    return Adopted(plugins=[plugin])


async def adopt_instance(
    entry: str,
    instance: Any,
    author: AuthorCode,
    *,
    config: JsonObject,
    timeout: float,
    kinds: Sequence[str] = (),
    bases: BaseTools | None = None,
) -> Adopted:
    where = place_of(type(instance), author)
    read = await author.run(lambda: read_instance(entry, instance, kinds, where))
    if not isinstance(read, Returned):
        return failed(entry, author, read)
    if isinstance(read.value, Problem):
        if read.value.code == "plugin_entry" and callable(instance) and not kinds:
            return await adopt_callable(entry, instance, author, timeout)
        return Adopted(problems=[read.value])
    plugin: Plugin = read.value
    if plugin.kind != "tool":
        return Adopted(plugins=[plugin])
    tools, problems = await ToolClass(instance, author, timeout=timeout, bases=bases).tools(config, entry, where)
    plugin = replace(plugin, kind="python", tools=tools)
    return Adopted(plugins=[plugin] if not problems else [], problems=problems)


def read_instance(entry: str, instance: Any, kinds: Sequence[str], where: Position) -> Plugin | Problem:
    """What a plugin says of itself, without its tools; each of its attributes may be code of the author's."""
    kind = kind_of(instance, kinds)
    if kind is None:
        return no_plugin(entry, kinds, where)
    plugin_id = getattr(instance, "id", None)
    if not isinstance(plugin_id, str) or not plugin_id:
        return problem("plugin_id", f"'{entry}' has no id", 'give the class an attribute: id = "my_plugin"', where)
    enabled = getattr(instance, "default_enabled", True) is not False
    keys = asked_keys(instance)
    return Plugin(id=plugin_id, kind=kind, tools=(), default_enabled=enabled, instance=instance, config_keys=keys)


def asked_keys(instance: Any) -> tuple[str, ...]:
    """The keys of the configuration that it says it asks for."""
    keys = getattr(instance, "config_keys", ())
    return tuple(key for key in keys if isinstance(key, str)) if isinstance(keys, list | tuple | set) else ()


def kind_of(plugin: Any, wanted: Sequence[str] = ()) -> PluginKind | None:
    """What a plugin is, by what it can do; a descriptor's `kinds` narrow it."""
    singular = {kind.removesuffix("s") for kind in wanted}
    return next((kind for kind, fits in KINDS.items() if (not singular or kind in singular) and fits(plugin)), None)


def no_plugin(entry: str, kinds: Sequence[str], where: Position) -> Problem:
    among = f" of the kinds that the descriptor names ({', '.join(kinds)})" if kinds else ""
    features = ", ".join(FEATURE_METHODS)
    hint = f"a tool plugin has get_tool_schemas and execute_tool or as_call, a provider stream, a feature {features}"
    return problem("plugin_entry", f"'{entry}' is no plugin{among}", hint, where)


def place_of(target: Any, author: AuthorCode) -> Position:
    from pathlib import Path

    try:
        target = inspect.unwrap(target)
        return Position(file=Path(inspect.getsourcefile(target) or author.file), line=inspect.getsourcelines(target)[1])
    except (OSError, TypeError):
        return Position(file=author.file)


def has(plugin: Any, *methods: str) -> bool:
    return any(callable(getattr(plugin, method, None)) for method in methods)


def problem(code: str, message: str, hint: str, where: Position) -> Problem:
    return Problem(code=code, message=message, hint=hint, where=where)

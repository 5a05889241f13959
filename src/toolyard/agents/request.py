"""What plugins have to say to a request: system messages, options, controls for a person."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.problems import Position, Problem
from toolyard.files.working_folder import working_folder
from toolyard.plugins.author_code.hooks import AuthorCode
from toolyard.plugins.author_code.limits import CodeLimits
from toolyard.plugins.author_code.running import Returned
from toolyard.plugins.contract import FeatureContext
from toolyard.plugins.enablement import tags_in_use

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from toolyard.core.tool import JsonObject
    from toolyard.plugins.plugin import Plugin
    from toolyard.runtime.loaded import Loaded


SHAPES_REQUESTS = ("build_system_message", "request_options")


class Contribution(msgspec.Struct, kw_only=True):
    """What came of asking every plugin, and what was wrong."""

    text: str = ""
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    elements: list[Any] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)


class Features:
    """The plugins of an agent, asked in the order of the configuration; one that fails is a problem, no more."""

    def __init__(
        self, plugins: Sequence[Plugin], config: JsonObject, context: FeatureContext, config_file: Path, *, limit: float
    ) -> None:
        self._plugins = plugins
        self._config = config
        self._context = context
        self._config_file = config_file
        self._limit = limit

    async def system_message(self) -> Contribution:
        """All parts, with an empty line between them."""
        result = Contribution()
        parts = [part async for part in self._ask("build_system_message", result) if part]
        result.text = "\n\n".join(str(part) for part in parts)
        return result

    async def request_options(self) -> Contribution:
        """All options; those of later plugins win."""
        result = Contribution()
        async for options in self._ask("request_options", result):
            result.options |= options if isinstance(options, dict) else {}
        return result

    async def ui_elements(self) -> Contribution:
        result = Contribution()
        async for elements in self._ask("get_ui_elements", result):
            result.elements += elements if isinstance(elements, list | tuple) else []
        return result

    async def problems(self) -> list[Problem]:
        """What is found wrong while a request is made."""
        return [*(await self.system_message()).problems, *(await self.request_options()).problems]

    async def _ask(self, method: str, result: Contribution) -> AsyncIterator[Any]:
        """What each plugin that has the method answers; its notices become problems."""
        context = self._context
        given = {"config": self._config, "context": context, "tags": context.tags, "models": context.models}
        for plugin in self._plugins:
            function = getattr(plugin.instance, method, None)
            if not callable(function):
                continue
            author = AuthorCode(roots=(), limit=self._limit, file=Path(plugin.id))
            context.notices.clear()
            outcome = await author.hook(function, given)
            result.problems += [self._problem(notice) for notice in context.notices]
            if isinstance(outcome, Returned):
                yield outcome.value
            else:
                result.problems.append(author.problem(outcome, f"{method} of '{plugin.id}'"))

    def _problem(self, notice: Any) -> Problem:
        file = Path(notice.file) if notice.file else self._config_file
        where = Position(file=file, line=notice.line)
        return Problem(code="feature_notice", message=notice.message, hint=notice.hint, where=where)


def shape_requests(loaded: Loaded, agent: str, chosen: tuple[str, ...] | None = None) -> bool:
    """Whether a plugin of an agent has something to say to its requests."""
    catalog = loaded.agent(agent, chosen).catalog
    on = (found.plugin.instance for id, found in catalog.plugins.items() if catalog.decisions[id].on)
    return any(hasattr(instance, method) for instance in on for method in SHAPES_REQUESTS)


def features_of(
    loaded: Loaded,
    agent: str | None,
    *,
    tags: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    chosen: tuple[str, ...] | None = None,
    controls: JsonObject | None = None,
) -> Features:
    """The plugins of an agent that are on, for one request; with the agent's own tags and models, unless given."""
    agent = agent or loaded.default_agent()
    configuration, known = loaded.configuration, loaded.circumstances(agent)
    catalog = loaded.agent(agent, chosen).catalog
    plugins = [found.plugin for id, found in catalog.plugins.items() if catalog.decisions[id].on]
    context = FeatureContext(
        agent=agent,
        cwd=Path(working_folder()),
        config_dir=Path(configuration.document.folder),
        tags=tuple(sorted(tags_in_use(plugins, catalog.decisions, known)) if tags is None else tags),
        models=tuple(known.models if models is None else models),
        door=configuration.door,
    )
    return Features(
        plugins,
        with_controls(known.config, controls or {}),
        context,
        configuration.document.path,
        limit=loaded.host.settings(CodeLimits).python_timeout_seconds,
    )


def with_controls(config: JsonObject, given: JsonObject) -> dict[str, Any]:
    """A configuration with what a conversation sets by its controls; the dots of an id lead into objects."""
    changed = dict(config)
    for id, value in given.items():
        *path, last = id.split(".")
        inner = changed
        for name in path:
            within = inner.get(name)
            inner[name] = dict(within) if isinstance(within, dict) else {}
            inner = inner[name]
        inner[last] = value
    return changed


def request_problems(loaded: Loaded) -> list[Problem]:
    """What is wrong with what the agents' requests are made of; it is made for that, in a loop of its own."""
    agents = loaded.configuration.agents()
    asked = [features_of(loaded, agent) for agent in agents if shape_requests(loaded, agent)]
    if not asked:
        return []

    async def ask_all() -> list[Problem]:
        return [problem for one in asked for problem in await one.problems()]

    # A thread, because the caller may be inside a running event loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, ask_all()).result()

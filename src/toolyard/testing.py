"""For plugin authors' own tests: a plugin on the real call path, with no configuration file and no model.

from toolyard.testing import open_plugin

async def test_it_counts():
    async with open_plugin(count_words) as plugin:
        assert (await plugin.call("count_words", {"text": "one two"})).text == "2"
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.events import OutputChunk
from toolyard.core.tool import ToolCall
from toolyard.kinds.python_function.objects import source_file
from toolyard.kinds.python_function.plugin import adopt
from toolyard.plugins.author_code.hooks import AuthorCode, close_plugin
from toolyard.runtime.audit.log import NO_AUDIT
from toolyard.runtime.call import CallPath, CallSettings
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from toolyard.core.events import Event
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject, Tool, ToolResult, ToolSpec
    from toolyard.plugins.plugin import Plugin

__all__ = ["PluginBench", "open_plugin"]

OUTPUT_LIMIT = 1 << 20


class PluginBench(msgspec.Struct, kw_only=True):
    """A plugin that can be called."""

    plugins: Sequence[Plugin]
    problems: Sequence[Problem]
    config: JsonObject
    cwd: Path
    events: list[Event] = msgspec.field(default_factory=list)
    """Everything that happened during calls."""

    @property
    def specs(self) -> dict[str, ToolSpec]:
        """The tools by name."""
        return {tool.spec.name: tool.spec for plugin in self.plugins for tool in plugin.tools}

    @property
    def partial_output(self) -> str:
        """What was emitted or printed during calls."""
        return "".join(event.text for event in self.events if isinstance(event, OutputChunk))

    async def call(self, name: str, arguments: JsonObject | str) -> ToolResult:
        """Call a tool as a model would."""
        return await self._calls().call(ToolCall(id="test", name=name, arguments=arguments), self._settings(), self)

    async def preview(self, name: str, arguments: JsonObject | str) -> str | ToolResult:
        """What a call would do."""
        return await self._calls().preview(ToolCall(id="test", name=name, arguments=arguments), self._settings())

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    async def find(self, name: str) -> Tool | None:
        return next((tool for plugin in self.plugins for tool in plugin.tools if tool.spec.name == name), None)

    def names(self) -> Sequence[str]:
        return list(self.specs)

    def failure(self, name: str) -> Problem | None:
        """The first problem that names the tool."""
        return next((problem for problem in self.problems if f"'{name}'" in problem.message), None)

    def _calls(self) -> CallPath:
        return CallPath(tools=self, audit=NO_AUDIT, redactor=Redactor({}))

    def _settings(self) -> CallSettings:
        return CallSettings(session="test", cwd=self.cwd, config=self.config, output_limit=OUTPUT_LIMIT)


@asynccontextmanager
async def open_plugin(
    target: Any, *, config: JsonObject | None = None, cwd: Path | None = None, timeout: float = 60
) -> AsyncIterator[PluginBench]:
    """A function, a class, an instance or a module as the plugin that it is; what is wrong with it is in `problems`."""
    file = source_file(target)
    author = AuthorCode(roots=(str(file.parent),), limit=timeout, file=file)
    entry = getattr(target, "__name__", type(target).__name__)
    adopted = await adopt(entry, target, author, config=config or {}, timeout=timeout)
    bench = PluginBench(plugins=adopted.plugins, problems=adopted.problems, config=config or {}, cwd=cwd or Path.cwd())
    try:
        yield bench
    finally:
        for plugin in adopted.plugins:
            await close_plugin(plugin, author)

"""For plugin authors' own tests: a plugin on the real call path, with no configuration file and no model.

A provider is held to its promises by `check_provider`, which asks it as an agent does.

A file `tests/test_NAME.py` with one line makes pytest run the cases in the JSON files beside it, each as a test:

from toolyard.testing import pytest_generate_tests, test_case

A plugin in Python can also be called from a test of your own:

from toolyard.testing import open_plugin

async def test_it_counts():
    async with open_plugin(count_words) as plugin:
        assert (await plugin.call("count_words", {"text": "one two"})).text == "2"
"""

from __future__ import annotations

import asyncio
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
from toolyard.runtime.call_path import CallPath
from toolyard.runtime.call_steps.conditions import CallServices, CallSettings
from toolyard.runtime.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from toolyard.core.events import Event
    from toolyard.core.model import ModelRequest
    from toolyard.core.problems import Problem
    from toolyard.core.tool import JsonObject, Tool, ToolResult, ToolSpec
    from toolyard.plugins.plugin import Plugin

__all__ = ["PluginBench", "open_plugin", "pytest_generate_tests", "test_case"]

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

    def doubt(self, tool: Tool) -> str:  # noqa: ARG002 - the interface
        """Its tools have their names from nobody else."""
        return ""

    def let_run(self, tool: Tool) -> None:
        """There was no doubt."""

    def names(self) -> Sequence[str]:
        return list(self.specs)

    def failure(self, name: str) -> Problem | None:
        """The first problem that names the tool."""
        return next((problem for problem in self.problems if f"'{name}'" in problem.message), None)

    def _calls(self) -> CallPath:
        return CallPath(CallServices(tools=self, audit=NO_AUDIT, redactor=Redactor({})))

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


def pytest_generate_tests(metafunc: Any) -> None:
    """Let pytest run `test_case` for each case in the JSON files beside the file that imports this."""
    from toolyard.authoring.cases import read_cases
    from toolyard.core.problems import Problem

    if "toolyard_case" not in metafunc.fixturenames:
        return
    folder = Path(metafunc.module.__file__).parent
    cases = [case for file in sorted(folder.glob("*.json")) for case in read_cases(file)]
    found = cases or [Problem(code="cases_missing", message=f"there are no cases in {folder}")]
    ids = [one.code if isinstance(one, Problem) else one.case.name or f"line {one.line}" for one in found]
    metafunc.parametrize("toolyard_case", found, ids=ids)


def test_case(toolyard_case: Any) -> None:
    """Run one case on the tools of the folder above."""
    from toolyard.authoring.cases import faults_of
    from toolyard.core.problems import Problem

    if isinstance(toolyard_case, Problem):
        raise AssertionError(str(toolyard_case))
    if faults := asyncio.run(faults_of(toolyard_case.file.parent.parent, toolyard_case)):
        raise AssertionError("\n".join([f"{toolyard_case.file}:{toolyard_case.line}", *faults]))


async def check_provider(provider: Any, request: ModelRequest) -> list[str]:
    """Ask a provider as an agent does, and say which promises it breaks; none is as it should be.

    It is asked the request, then on with its own answer from where an agent keeps it, with results for its calls and
    without, and it is left in the middle of an answer. `ProviderError` passes: who is asked must be able to answer.
    """
    from toolyard.agents.providers.checking import ProviderCheck

    return await ProviderCheck(provider).run(request)

"""One toy, followed through its changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolyard.core.problems import Position, Problem
from toolyard.core.text import call_line
from toolyard.core.tool import JsonInput, Plan, ToolResult, ToolSpec
from toolyard.files.door import LARGEST_TEXT, stamp_of
from toolyard.plugins.plugin import Plugin
from toolyard.process.child import ChildRequest

VALUE = {"type": "object", "properties": {"value": {"type": "string", "description": "A text."}}, "required": ["value"]}


class ToyTool:
    kind = "toy"
    confined = True

    def __init__(self, file: Path, description: str, host: Any, timeout: float) -> None:
        self._file, self._host = file, host
        self.spec = ToolSpec(name=file.stem, description=description, input=JsonInput(schema=VALUE), timeout=timeout)

    def plan(self, arguments: Any, context: Any) -> Plan:
        bash = self._host.interpreter("bash").path
        return Plan(arguments=arguments, argv=[bash, str(self._file), arguments["value"]], cwd=context.cwd)

    async def preview(self, plan: Plan, context: Any) -> str:
        return call_line(self.spec.name, plan.arguments)

    async def run(self, plan: Plan, context: Any) -> ToolResult:
        request = ChildRequest(
            argv=plan.argv,
            cwd=plan.cwd,
            env=self._host.runner.environment.current(),
            timeout=self.spec.timeout,
            limits=self._host.runner.limits,
            output_limit=context.output_limit,
            spill_to=context.spill_to,
            on_output=context.emit,
        )
        outcome = await self._host.children("work").run(request)
        failure = "timeout" if outcome.timed_out else "exit_code" if outcome.exit_code else None
        complaint = "timed out" if outcome.timed_out else outcome.stderr.text or f"ended with {outcome.exit_code}"
        return ToolResult(
            text=outcome.stdout.text + (complaint if failure else ""),
            failure=failure,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            bytes_out=outcome.stdout.total_bytes,
            truncated=outcome.stdout.truncated,
        )


class ToySource:
    def __init__(self, reference: Any, host: Any, timeout: float) -> None:
        self.reference, self._host, self._timeout = reference, host, timeout
        self.problems: list[Problem] = []
        self.file = Path(reference.file or reference.git.shown)
        self._stamp: Any = None
        self._tools: list[ToyTool] = []

    @property
    def conditions(self) -> object:
        return (self._host.runner, self._timeout)

    def plugins(self) -> list[Plugin]:
        return [Plugin(id=tool.spec.name, kind=tool.kind, tools=[tool]) for tool in self._tools]

    def is_current(self) -> bool:
        return self._stamp is not None and stamp_of(self.file) == self._stamp

    async def load(self, *, without_running: bool = False) -> bool:
        if self.reference.git is not None:
            if without_running:
                return False
            fetched = await self._host.fetcher.fetch(self.reference.git)
            if isinstance(fetched, Problem):
                self.problems = [fetched.at(self.reference.at.position())]
                return True
            self.file = next(fetched.folder.glob("*.toy"))
        self._read()
        return True

    def _read(self) -> None:
        try:
            read = self._host.configuration.door.read(self.file, largest=LARGEST_TEXT)
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
            problem = Problem(code="toy_missing", message=message, where=Position(file=self.file))
            self.problems, self._tools = [problem], []
            return
        self._stamp = read.stamp
        description = read.text().splitlines()[0].removeprefix("# ")
        self.problems, self._tools = [], [ToyTool(self.file, description, self._host, self._timeout)]

    def adopt(self, newer: ToySource) -> None:
        self.reference, self._host = newer.reference, newer._host
        if self.reference.git is not None:
            self._stamp = None

    async def end_session(self, session: str) -> None:
        pass

    async def aclose(self) -> None:
        pass

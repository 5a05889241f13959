"""For those who write toys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from toolyard.plugins.checks.findings import warning, with_line
from toolyard.plugins.kind import Found, NewFile


class ToyAuthoring:
    form = "a toy *.toy"

    def entries(self, path: Path) -> Sequence[Any]:
        files = sorted(path.glob("*.toy")) if path.is_dir() else [path] if path.suffix == ".toy" else []
        return [f"toy:{file}" for file in files]

    def policy(self, timeout: float) -> Any:
        return {"toy_timeout_seconds": timeout}

    async def check(self, source: Any, timeout: float) -> Sequence[Any]:
        found = [with_line(problem, source.file) for problem in source.problems]
        for plugin in source.plugins():
            if not plugin.tools[0].spec.description:
                message = "it says nothing of itself"
                found.append(warning(source.file, 1, "toy_silent", message, hint="begin with # WORDS"))
        return found

    def new_files(self, name: str, mode: str | None) -> Sequence[NewFile]:
        cases = '[{"arguments": {"value": "Ada"}, "output": "hello Ada\\n"}]'
        return [
            NewFile(path=f"{name}.toy", text='# Greet somebody.\necho "hello $1"\n'),
            NewFile(path=f"tests/{name}.json", text=cases),
        ]

    def discover(self, folder: Path, files: Sequence[str], place: str) -> Iterator[Found]:
        for name in files:
            if name.endswith(".toy"):
                yield Found(what="toy", entry=f"toy:{place}/{name}")

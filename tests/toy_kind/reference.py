"""`toy:PATH` and `toy+git:URL#REF`: a script whose first line describes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolyard.core.problems import Problem
from toolyard.plugins.acquire.git_reference import GitReference, read_git_reference, split_reference
from toolyard.plugins.kind import Named, Reference
from toy_kind.author import ToyAuthoring
from toy_kind.settings import ToySettings
from toy_kind.source import ToySource


class ToyFile(Reference, frozen=True, kw_only=True):
    file: str = ""
    git: GitReference | None = None

    @property
    def repository(self) -> GitReference | None:
        return self.git

    @property
    def paths(self) -> Sequence[str]:
        return (self.file,) if self.file else ()

    @property
    def roots(self) -> Sequence[str]:
        return self.paths


class Toys:
    name = "toy"
    spellings = ("toy:PATH", "toy+git:URL#REF")
    suffixes = (".toy",)
    modes = ()
    settings = ToySettings
    author = ToyAuthoring()

    def read(self, entry: Any, at: Any) -> Named | None:
        match entry:
            case str() if entry.startswith("toy:"):
                return Named(references=[ToyFile(file=at.path(entry.removeprefix("toy:")), at=at)])
            case str() if entry.startswith("toy+git:"):
                git = read_git_reference(*split_reference(entry.removeprefix("toy+git:")), at.document.folder)
                if isinstance(git, Problem):
                    return Named(problems=[git.at(at.position())])
                return Named(references=[ToyFile(git=git, at=at)])
        return None

    def whole_file(self, value: Any, path: Path) -> None:
        return None

    def stores(self, policy: Any, plugin_cache: Path, folder: str) -> Sequence[str]:
        return ()

    def refusal(self, reference: ToyFile, host: Any) -> Problem | None:
        return None

    def source(self, reference: ToyFile, host: Any) -> ToySource:
        return ToySource(reference, host, host.settings(ToySettings).toy_timeout_seconds)

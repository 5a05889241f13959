"""The kind of Python plugins: what the rest of the application knows of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.kinds.python_function.reference import (
    DOTTED,
    PythonName,
    PythonProject,
    pip_cache,
    read_project,
)
from toolyard.kinds.python_function.settings import PythonSettings
from toolyard.plugins.acquire.git_reference import split_reference
from toolyard.plugins.kind import Kind, Named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolyard.config.document import Place
    from toolyard.core.tool import Json
    from toolyard.kinds.python_function.author import PythonAuthoring
    from toolyard.kinds.python_function.source import PythonSource
    from toolyard.plugins.host import Host


class PythonFunctions(Kind):
    """Python functions, classes and modules as plugins."""

    name = "python"
    spellings = (
        "package.module.Class",
        "path:FOLDER",
        "git+URL#REF",
        '{"path": FOLDER, "entry": CLASS}',
        '{"git": URL, "ref": REF}',
    )
    suffixes = (".py",)
    modes = ()
    settings = PythonSettings

    def read(self, entry: Json, at: Place) -> Named | None:
        match entry:
            case str() if entry.startswith("path:"):
                return read_project({"path": entry.removeprefix("path:")}, at)
            case str() if entry.startswith("git+"):
                url, ref = split_reference(entry.removeprefix("git+"))
                return read_project({"git": url, "ref": ref}, at)
            case str() if DOTTED.fullmatch(entry):
                return Named(references=[PythonName(name=entry, at=at)])
            case {"path": _} | {"git": _}:
                return read_project(entry, at)
        return None

    def stores(self, policy: Any, plugin_cache: Path, folder: str) -> Sequence[str]:
        """What the installer downloaded, of which plugins are made."""
        return (str(pip_cache(policy.pip_cache_dir, plugin_cache, folder)),)

    def source(self, reference: PythonName | PythonProject, host: Host) -> PythonSource:
        from toolyard.kinds.python_function.source import PythonSource

        return PythonSource(reference, host)

    @property
    def author(self) -> PythonAuthoring:
        from toolyard.kinds.python_function.author import PythonAuthoring

        return PythonAuthoring()

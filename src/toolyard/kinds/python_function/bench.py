"""Python plugins on the bench: imported where they are, so that an author sees his own files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.config.document import Document, read_document
from toolyard.config.settings import PluginPolicy
from toolyard.core.problems import Problem
from toolyard.kinds.python_function.source import PythonSource
from toolyard.kinds.python_function.workshop import PythonWorkshop
from toolyard.plugins.acquire.build import Builders
from toolyard.plugins.author_code.module_cache import CodeShelf
from toolyard.plugins.descriptors import DESCRIPTOR
from toolyard.plugins.repository_spec import PythonRepository

if TYPE_CHECKING:
    from toolyard.process.child import Children


def python_source_at(path: Path, children: Children, *, timeout: float) -> PythonSource | None:
    """The source of a `.py` file, or of a folder whose descriptor lists entries; None for anything else."""
    path = Path(os.path.realpath(path))
    if not is_python(path):
        return None
    folder = path if path.is_dir() else path.parent
    shop = PythonWorkshop(
        children=children,
        builders=Builders(),
        policy=PluginPolicy(python_timeout_seconds=timeout, python_import_timeout_seconds=timeout),
        cache_dir=folder,
        bundled=folder,  # what is here is used where it is, and never installed
        document=Document(path / DESCRIPTOR if path.is_dir() else path, "{}", {}),
        config={},
        code=CodeShelf(),
    )
    return PythonSource(PythonRepository(origin=str(path), pointer=()), shop)


def is_python(path: Path) -> bool:
    if not path.is_dir():
        return path.suffix == ".py"
    descriptor = read_document(path / DESCRIPTOR)
    value = None if isinstance(descriptor, Problem) else descriptor.value
    return isinstance(value, dict) and "entries" in value

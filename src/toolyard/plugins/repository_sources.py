"""The sources of repositories and Python plugins; what it takes to import them is imported when there are such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.plugins.repository_spec import BashRepository

if TYPE_CHECKING:
    from toolyard.kinds.bash_workshop import BashWorkshop
    from toolyard.plugins.fetched_source import FetchedBashSource
    from toolyard.plugins.python_source import PythonSource
    from toolyard.plugins.python_workshop import PythonWorkshop
    from toolyard.plugins.repository_spec import RepositorySpec
    from toolyard.plugins.source import Source

__all__ = ["repository_source"]


def repository_source(
    spec: RepositorySpec, shop: PythonWorkshop, bash: BashWorkshop | None, before: Source | None
) -> PythonSource | FetchedBashSource | None:
    """The source of a reference, that from before a reload if it still serves; None where nothing could run it."""
    from toolyard.plugins.fetched_source import FetchedBashSource
    from toolyard.plugins.python_source import PythonSource

    if not isinstance(spec, BashRepository):
        made = PythonSource(spec, shop)
        serves = isinstance(before, PythonSource) and before.conditions == made.conditions
        return before.again(made) if serves and isinstance(before, PythonSource) else made
    if bash is None:
        return None
    fetched = FetchedBashSource(spec, bash, shop)
    serves = isinstance(before, FetchedBashSource) and before.conditions == fetched.conditions
    return before.again(fetched) if serves and isinstance(before, FetchedBashSource) else fetched

"""What all plugins of an application share that are fetched, installed or imported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.config.document import Document
    from toolyard.config.settings import PluginPolicy
    from toolyard.core.tool import JsonObject
    from toolyard.plugins.acquire.acquirer import Acquirer
    from toolyard.plugins.acquire.build import Builders
    from toolyard.plugins.author_code.module_cache import CodeShelf
    from toolyard.process.child import Children


@dataclass(slots=True, kw_only=True)
class PythonWorkshop:
    """Where they come from and under which policy; equal workshops treat them alike."""

    children: Children
    builders: Builders
    """Who installs."""
    policy: PluginPolicy
    cache_dir: Path
    bundled: Path
    """The folder of the plugins that come with us, which are used where they are."""
    document: Document = field(compare=False)
    """The configuration as it is written, for the places of problems."""
    config: JsonObject = field(compare=False)
    """The values that plugins are made for."""
    code: CodeShelf = field(compare=False)
    """What is imported, for all of them."""
    _acquirer: Acquirer | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def acquirer(self) -> Acquirer:
        """Who gets them; most configurations need nobody for that."""
        if self._acquirer is None:
            from toolyard.plugins.acquire.acquirer import Acquirer

            self._acquirer = Acquirer(self.cache_dir, self.policy, self.children, self.builders)
        return self._acquirer

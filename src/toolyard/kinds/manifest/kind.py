"""The kind of manifests: what the rest of the application knows of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from toolyard.kinds.manifest.reference import MANIFEST, ManifestFile
from toolyard.kinds.manifest.settings import ManifestSettings
from toolyard.plugins.kind import Named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolyard.config.document import Place
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.manifest.author import ManifestAuthoring
    from toolyard.kinds.manifest.source import ManifestSource
    from toolyard.plugins.host import Host


class Manifests:
    """The commands of `tools.json` manifests as tools."""

    name = "manifest"
    spellings = ("manifest:PATH", '{"manifest": {"path": PATH}}')
    suffixes = (f"/{MANIFEST}",)
    modes = ()
    settings = ManifestSettings

    def read(self, entry: Json, at: Place) -> Named | None:
        """A manifest, or the folder that it is in."""
        match entry:
            case str() if entry.startswith("manifest:"):
                name = entry.removeprefix("manifest:")
            case {"manifest": {"path": str(name)}}:
                pass
            case {"manifest": _}:
                name = ""
            case _:
                return None
        if not name:
            hint = f'for example "manifest:./{MANIFEST}" or {{"manifest": {{"path": "./{MANIFEST}"}}}}'
            return Named(problems=[at.problem("plugin_spec", "'manifest' names no path", hint)])
        path = at.path(name)
        return Named(
            references=[ManifestFile(path=os.path.join(path, MANIFEST) if os.path.isdir(path) else path, at=at)]
        )

    def whole_file(self, value: JsonObject, path: Path) -> JsonObject | None:
        """A manifest by itself stands for a configuration that loads nothing else."""
        if "tools" not in value or "plugins" in value:
            return None
        return {"plugins": [{"manifest": {"path": str(path)}}]}

    def stores(self, policy: Any, plugin_cache: Path) -> Sequence[str]:  # noqa: ARG002 - the protocol's
        """None beside the plugin cache."""
        return ()

    def refusal(self, reference: ManifestFile, host: Host) -> Problem | None:  # noqa: ARG002 - the protocol's
        """Programs need nothing but themselves."""
        return None

    def source(self, reference: ManifestFile, host: Host) -> ManifestSource:
        """The manifest."""
        from toolyard.kinds.manifest.source import ManifestSource

        return ManifestSource(reference, host)

    @property
    def author(self) -> ManifestAuthoring:
        """For those who write manifests."""
        from toolyard.kinds.manifest.author import ManifestAuthoring

        return ManifestAuthoring()

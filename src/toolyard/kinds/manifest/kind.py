"""The kind of manifests: what the rest of the application knows of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.kinds.manifest.reference import MANIFEST, ManifestFile
from toolyard.kinds.manifest.settings import ManifestSettings
from toolyard.plugins.kind import Kind, Named

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.config.document import Place
    from toolyard.core.tool import Json, JsonObject
    from toolyard.kinds.manifest.author import ManifestAuthoring
    from toolyard.kinds.manifest.source import ManifestSource
    from toolyard.plugins.host import Host


class Manifests(Kind):
    """The commands of `tools.json` manifests as tools."""

    name = "manifest"
    spellings = ("manifest:PATH", '{"manifest": {"path": PATH}}')
    suffixes = (f"/{MANIFEST}",)
    modes = ()
    settings = ManifestSettings

    def read(self, entry: Json, at: Place) -> Named | None:
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

    def source(self, reference: ManifestFile, host: Host) -> ManifestSource:
        from toolyard.kinds.manifest.source import ManifestSource

        return ManifestSource(reference, host)

    @property
    def author(self) -> ManifestAuthoring:
        from toolyard.kinds.manifest.author import ManifestAuthoring

        return ManifestAuthoring()

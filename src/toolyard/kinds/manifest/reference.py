"""How a configuration names manifests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.plugins.kind import Reference

if TYPE_CHECKING:
    from collections.abc import Sequence


MANIFEST = "tools.json"
PROGRAMS = ("tools", "bin")
"""Where the programs of a manifest are, from its own folder."""


class ManifestFile(Reference, frozen=True, kw_only=True):
    """A `tools.json` manifest."""

    path: str

    @property
    def paths(self) -> Sequence[str]:
        """The manifest, with the programs beside it."""
        return (self.path,)

    @property
    def scripts(self) -> Sequence[str]:
        return (self.path, os.path.join(os.path.dirname(self.path), *PROGRAMS))

"""Schemas of bash tools by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.kinds.bash_schema import BashSchema
from toolyard.kinds.content_cache import ContentCache

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SchemaCache"]


class SchemaCache(ContentCache[BashSchema]):
    """What `schema` printed for each content."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, BashSchema)

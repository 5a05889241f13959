"""Tools as a client lists them: portable schemas, names that fit, the same for everybody who asks."""

from __future__ import annotations

import hashlib
import logging
import re
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.lossless_json import encode_json
from toolyard.core.wire.formats import export
from toolyard.core.wire.portable_schemas import portable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolyard.core.tool import JsonObject, ToolSpec

log = logging.getLogger("toolyard.serve")
LONGEST_NAME = 64 - len("mcp__toolyard__")
"""Models take 64 characters, and clients put the server's name in front."""
FITTED = re.compile(r"_[0-9a-f]{8}$")
"""What a name ends with that was changed."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class ToolDefinitions(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent has, as clients see it."""

    tools: tuple[JsonObject, ...]
    names: Mapping[str, str]
    """The tools' own names, by those that clients know."""
    encoded: msgspec.Raw
    """The tools as JSON: a list may be long, and is asked for again and again."""


def definitions_of(specs: Sequence[ToolSpec]) -> ToolDefinitions:
    """The definitions of some tools, without those that no client could call."""
    exported = export(specs, "mcp")
    for problem in exported.problems:
        if problem.fatal:
            log.warning("%s is not served: %s", problem.tool, problem.message)
    names = fitting_names(str(form["name"]) for form in exported.tools)
    tools = tuple(
        {**form, "name": fitted, "inputSchema": portable(form.get("inputSchema") or {})}
        for fitted, form in zip(names, exported.tools, strict=True)
    )
    return ToolDefinitions(tools=tools, names=names, encoded=msgspec.Raw(encode_json(tools)))


def fitting_names(names: Iterable[str]) -> dict[str, str]:
    """Each name by one that all clients take; a changed one ends with a digest, so that no two are the same."""
    fitting: dict[str, str] = {}
    for name in names:
        fitted = NOT_IN_NAMES.sub("_", name)
        if fitted != name or len(fitted) > LONGEST_NAME or fitted in fitting:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            fitted = f"{fitted[: LONGEST_NAME - 9]}_{digest}"
        fitting[fitted] = name
    return fitting

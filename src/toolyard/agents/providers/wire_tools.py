"""The tools of a request in an API's form, and which tool a call of that form is for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.core.wire.formats import export, export_one, wire_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.agents.providers.settings import ProviderSettings
    from toolyard.core.tool import JsonObject, ToolCall, ToolSpec, WireFormat


SEARCH: Mapping[WireFormat, JsonObject] = {
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    "responses": {"type": "tool_search"},
}
"""The tools by which services themselves look for tools."""
SEARCHING = {
    "anthropic": ("api.anthropic.com", re.compile(r"^claude-(?!3|(opus|sonnet)-4(-[01])?(-\d{8})?$)")),
    "responses": ("api.openai.com", re.compile(r"^gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)")),
}
"""Where they do, and for which models: older ones refuse such a request."""


class WireTools(msgspec.Struct, frozen=True, kw_only=True):
    """Forms to send, and names in both directions; some native forms have a type instead of a name."""

    forms: tuple[JsonObject, ...]
    own_names: Mapping[str, str]
    """Our names by those on the wire."""
    own_types: Mapping[str, str]
    """Our names by the types of native forms."""
    wire_names: Mapping[str, str]

    def own_name(self, name: str) -> str:
        return self.own_names.get(name, name)

    def wire_name(self, name: str) -> str:
        return self.wire_names.get(name, name)

    def of_type(self, form: str) -> str:
        """Our name of the tool that has this native form; the form's own where there is none."""
        return self.own_types.get(form, form)


def own_call(call: ToolCall, tools: WireTools) -> ToolCall:
    """A call under our name for its tool; some models write nothing where there are no arguments."""
    return replace(call, name=tools.own_name(call.name), arguments=call.arguments or "{}")


def wire_tools(specs: Sequence[ToolSpec], format: WireFormat, *, native: bool, search: bool = False) -> WireTools:
    """All tools that the format can carry; made once for the same ones, since every request of a turn has them.

    `native` says whether native forms are used, `search` whether the model looks for all others when it needs them.
    """
    return made_tools(SameSpecs(specs), format, native, search)


class SameSpecs:
    """Specs that are equal to themselves alone, and live as long as this."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self.specs = tuple(specs)

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.specs)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameSpecs) and [*map(id, self.specs)] == [*map(id, other.specs)]


@lru_cache(maxsize=32)
def made_tools(same: SameSpecs, format: WireFormat, native: bool, search: bool) -> WireTools:
    specs: Sequence[ToolSpec] = same.specs
    if not native:
        specs = [replace(spec, native={}) for spec in specs]
    names = {spec.name: wire_name(export_one(spec, format), otherwise=spec.name) for spec in specs}
    types = {str(spec.native[format].get("type")): spec.name for spec in specs if format in spec.native}
    forms = export(specs, format).tools
    return WireTools(
        forms=(*map(deferred, forms), SEARCH[format]) if search and forms and format in SEARCH else forms,
        own_names={wire: own for own, wire in names.items()},
        own_types=types,
        wire_names=names,
    )


def finds_tools(settings: ProviderSettings, format: WireFormat, model: str) -> bool:
    """Whether a service finds tools for a model: as the configuration says, else as is known of its own address."""
    if settings.tool_search is not None or format not in SEARCH:
        return bool(settings.tool_search) and format in SEARCH
    host, models = SEARCHING[format]
    return settings.host == host and models.search(model) is not None


def deferred(form: JsonObject) -> JsonObject:
    """A tool that is not shown before it is found; native ones have no description to be found by."""
    return form if form.get("type") not in (None, "function", "custom") else {**form, "defer_loading": True}

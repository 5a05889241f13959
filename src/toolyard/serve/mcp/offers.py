"""What plugins offer beside tools, as one server's: resources by their addresses, prompts by their names.

Reading a resource and getting a prompt are calls of tools: permitted, limited, redacted and recorded like any other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from toolyard.serve.mcp.messages import INVALID_PARAMS, CallRequest, RpcFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolyard.core.tool import JsonObject
    from toolyard.plugins.offers import PluginOffers

VARIABLE = re.compile(r"\\\{[^{}]*\\\}")
"""Of a template whose other characters are escaped."""
NOT_IN_SCHEMES = re.compile(r"[^A-Za-z0-9.-]")


class ClientOffers:
    """The offers of an agent's plugins. What comes later by a name that is taken has its plugin's name before it."""

    def __init__(self, plugins: Sequence[tuple[str, PluginOffers]]) -> None:
        self.resources, self._resources = distinct(plugins, "resources", "uri", other_address)
        self.templates, self._templates = distinct(plugins, "templates", "uriTemplate", other_address)
        self.prompts, self._prompts = distinct(plugins, "prompts", "name", "{}_{}".format)
        self.completes = any(offers.completes for _, offers in plugins)
        self._readers = [offers for _, offers in plugins if offers.reader]

    def capabilities(self) -> dict[str, Any]:
        """What a server with these offers says that it has."""
        found: dict[str, Any] = {}
        if self._readers:
            tells = any(offers.follower for offers in self._readers)
            found["resources"] = {"listChanged": True, **({"subscribe": True} if tells else {})}
        if self.prompts:
            found["prompts"] = {"listChanged": True}
        return found | ({"completions": {}} if self.completes else {})

    def reading(self, params: Mapping[str, Any]) -> CallRequest:
        uri = params.get("uri")
        found = self._reader(uri) if isinstance(uri, str) else None
        if found is None:
            raise RpcFault(INVALID_PARAMS, "Resource not found", {"uri": uri})
        offers, own = found
        return request_of(params, "resources/read", offers.reader, {"uri": own})

    def following(self, params: Mapping[str, Any]) -> CallRequest:
        uri = params.get("uri")
        found = self._reader(uri) if isinstance(uri, str) else None
        if found is None or not found[0].follower:
            raise RpcFault(INVALID_PARAMS, "Resource not found, or its changes are not told", {"uri": uri})
        offers, own = found
        return request_of(params, "resources/subscribe", offers.follower, {"uri": own})

    def listen(self, uri: str, hear: Callable[[str], None]) -> Callable[[], None]:
        """Have changes of a resource told, by the addresses that clients know; what this gives ends it."""
        found = self._reader(uri)
        if found is None or found[0].updates is None:
            return lambda: None
        offers, own = found
        prefix = uri.removesuffix(own)
        return offers.updates.listen(own, lambda changed: hear(prefix + changed)) if offers.updates else lambda: None

    def prompting(self, params: Mapping[str, Any]) -> CallRequest:
        found = self._prompts.get(params.get("name"))
        given = params.get("arguments") or {}
        if found is None or not isinstance(given, dict):
            raise RpcFault(INVALID_PARAMS, f"there is no prompt '{params.get('name')}'")
        offers, own = found
        return request_of(params, "prompts/get", offers.prompter, {"name": own, "arguments": given})

    def completing(self, params: Mapping[str, Any]) -> CallRequest:
        match params:
            case {"ref": {"type": "ref/prompt", "name": str(name)}, "argument": dict(argument)}:
                found = self._prompts.get(name)
                ref = {"type": "ref/prompt", "name": found and found[1]}
            case {"ref": {"type": "ref/resource", "uri": str(uri)}, "argument": dict(argument)}:
                found = self._templates.get(uri) or self._resources.get(uri)
                ref = {"type": "ref/resource", "uri": found and found[1]}
            case _:
                raise RpcFault(INVALID_PARAMS, "completion/complete needs a ref and an argument")
        if found is None or not found[0].completer:
            raise RpcFault(INVALID_PARAMS, "nothing of that name can be completed")
        context = params.get("context")
        more = {"context": context} if isinstance(context, dict) else {}
        return request_of(params, "completion/complete", found[0].completer, {"ref": ref, "argument": argument, **more})

    def _reader(self, uri: str) -> tuple[PluginOffers, str] | None:
        """Who has a resource, and by which address: it is listed, fits a template, or is of the kind of others."""
        if uri in self._resources:
            return self._resources[uri]
        for template, (offers, own) in self._templates.items():
            if fits(uri, template):
                return offers, uri.removeprefix(template[: len(template) - len(own)])
        scheme = uri.partition(":")[0]
        return next(((offers, uri) for offers in self._readers if scheme in schemes_of(offers)), None)


def distinct(
    plugins: Sequence[tuple[str, PluginOffers]], what: str, key: str, other: Any
) -> tuple[list[JsonObject], dict[Any, tuple[PluginOffers, str]]]:
    """Definitions under names that no two have, and where each comes from, with its name there."""
    listed: list[JsonObject] = []
    origins: dict[Any, tuple[PluginOffers, str]] = {}
    for plugin, offers in plugins:
        for definition in getattr(offers, what):
            own = definition[key]
            name = own if own not in origins else other(plugin, own)
            if name not in origins:
                origins[name] = (offers, own)
                listed.append({**definition, key: name})
    return listed, origins


def other_address(plugin: str, uri: str) -> str:
    """An address that says whose it is, as the scheme of one within the other."""
    return f"{NOT_IN_SCHEMES.sub('-', plugin)}+{uri}"


def fits(uri: str, template: str) -> bool:
    pattern = VARIABLE.sub(".+", re.escape(template))
    return re.fullmatch(pattern, uri) is not None


def schemes_of(offers: PluginOffers) -> Iterator[str]:
    for one in offers.resources:
        yield one["uri"].partition(":")[0]
    for one in offers.templates:
        yield one["uriTemplate"].partition(":")[0]


def request_of(params: Mapping[str, Any], method: str, tool: str, arguments: dict[str, Any]) -> CallRequest:
    state = params.get("requestState")
    if not isinstance(state, str | None):
        raise RpcFault(INVALID_PARAMS, "requestState is a text")
    return CallRequest(
        name=tool,
        arguments=arguments,
        answers=params.get("inputResponses"),
        state=state,
        method=method,
        uri=params.get("uri", ""),
    )

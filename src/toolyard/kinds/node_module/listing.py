"""What the tools of a Node package say of themselves: asked of the package once for each content."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.core.arguments.schema import schema_fault
from toolyard.errors import ProcessError
from toolyard.kinds.node_module.hosts import NodeHosts, TimedOut
from toolyard.kinds.node_module.package import NodeFault
from toolyard.kinds.node_module.settings import NodeModuleSettings
from toolyard.process.json_rpc import RpcError, RpcLost, RpcResult

if TYPE_CHECKING:
    from toolyard.core.tool import Json, JsonObject
    from toolyard.files.content_cache import ContentCache
    from toolyard.kinds.node_module.hosts import HostReply
    from toolyard.kinds.node_module.package import NodePackage
    from toolyard.plugins.host import Host


LISTING = b"3"
"""Changes when what is kept of a listing does."""


class ListedTool(msgspec.Struct, kw_only=True, frozen=True):
    """One tool as its module describes it."""

    id: str
    description: str = ""
    parameters: dict[str, Any]
    preview: bool = False
    config_keys: list[str] = []
    read_only: bool = False
    destructive: bool = False
    parallel: bool = True


class NodeListing(msgspec.Struct, kw_only=True, frozen=True):
    """All tools of a package."""

    tools: list[ListedTool]


class Annotations(msgspec.Struct, frozen=True, rename="camel"):
    read_only_hint: bool = False
    destructive_hint: bool = False


class WireTool(msgspec.Struct, frozen=True, rename="camel"):
    """A tool on the wire."""

    name: str
    input_schema: dict[str, Any]
    description: str = ""
    annotations: Annotations = Annotations()
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


class About(msgspec.Struct, frozen=True):
    """What a tool on the wire says beyond the protocol."""

    preview: bool = msgspec.field(name="toolyard/preview", default=False)
    config_keys: list[str] = msgspec.field(name="toolyard/configKeys", default_factory=list)
    parallel: bool = msgspec.field(name="toolyard/parallel", default=True)


AUTHORS_WORDS = {
    "_meta.toolyard/configKeys": "configKeys",
    "_meta.toolyard/parallel": "parallel",
    "inputSchema": "parameters",
    "toolyard/configKeys": "configKeys",
    "toolyard/parallel": "parallel",
}


def open_hosts(host: Host, package: NodePackage) -> NodeHosts:
    """The processes of a package; nothing starts before it is asked for."""
    timeout = host.settings(NodeModuleSettings).node_timeout_seconds
    return NodeHosts(host.runner, host.required("node").path, package, timeout=timeout)


def listing_cache(host: Host) -> ContentCache[NodeListing]:
    """The listings that are known by the contents of their packages."""
    return host.caches.get("node-tools", NodeListing)


def listing_key(package: NodePackage, host: Host) -> str:
    """What a listing depends on: the content, which tools are meant, and the Node that reads them."""
    declared = json.dumps([msgspec.structs.astuple(tool) for tool in package.tools]).encode()
    parts = (LISTING, host.required("node").identity.encode(), package.fingerprint.encode(), declared)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


async def read_listing(package: NodePackage, host: Host) -> tuple[NodeListing, list[NodeFault]]:
    """Let a host load every module; a listing without faults is remembered by the content."""
    hosts = open_hosts(host, package)
    reply: HostReply
    try:
        reply = await hosts.ask("tools/list", {}, cwd=package.root, reach="look", subject="loading the tools")
    except ProcessError as error:
        reply = RpcLost(reason=str(error))
    finally:
        await hosts.aclose()
    match reply:
        case RpcResult(result=result):
            listing, faults = parse_listing(result)
        case RpcError(message=message, data=data):
            return NodeListing(tools=[]), [NodeFault(code=str(data.get("code") or "node_host"), message=message)]
        case RpcLost(reason=reason):
            message = f"the host could not load the tools: {reason}"
            return NodeListing(tools=[]), [NodeFault(code="node_host", message=message)]
        case TimedOut():
            seconds = f"{hosts.timeout:g} seconds"
            hint = "a module should only define; plugin_policy.node_timeout_seconds is the limit"
            message = f"the modules did not load within {seconds}"
            return NodeListing(tools=[]), [NodeFault(code="node_load_timeout", message=message, hint=hint)]
    if not faults:
        listing_cache(host).put(listing_key(package, host), listing)
    return listing, faults


def parse_listing(result: JsonObject) -> tuple[NodeListing, list[NodeFault]]:
    """The answer of `tools/list` as types; each tool that does not fit is a fault of its own."""
    reported = result.get("_meta", {}).get("toolyard/faults", [])
    faults = [msgspec.convert(fault, NodeFault) for fault in reported]
    tools: list[ListedTool] = []
    for value in result.get("tools", []):
        tool = parse_tool(value)
        if isinstance(tool, NodeFault):
            faults.append(tool)
        else:
            tools.append(tool)
    return NodeListing(tools=tools), faults


def parse_tool(value: Json) -> ListedTool | NodeFault:
    id = str(value.get("name"))
    try:
        entry = msgspec.convert(value, WireTool)
        about = msgspec.convert(entry.meta, About)
    except msgspec.ValidationError as error:
        return NodeFault(code="node_shape", message=f"'{id}': {in_the_authors_words(error)}", id=id)
    if fault := schema_fault(entry.input_schema):
        hint = "'parameters' is a JSON Schema of type object"
        return NodeFault(code="node_parameters", message=f"the parameters of '{id}': {fault}", hint=hint, id=id)
    return ListedTool(
        id=entry.name,
        description=entry.description,
        parameters=entry.input_schema,
        preview=about.preview,
        config_keys=about.config_keys,
        read_only=entry.annotations.read_only_hint,
        destructive=entry.annotations.destructive_hint,
        parallel=about.parallel,
    )


def in_the_authors_words(error: msgspec.ValidationError) -> str:
    """What does not fit, by the name it has in the module: `Expected str, got int - at $.description`."""
    what, _, place = str(error).replace("`", "").partition(" - at $")
    name = place.lstrip(".").partition("[")[0]
    return f"'{AUTHORS_WORDS.get(name, name)}': {what[:1].lower()}{what[1:]}" if name else what

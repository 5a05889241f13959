"""The tools of a server: each that it lists, one to read its resources, and one to get its prompts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from toolyard.core.text import call_line, seconds
from toolyard.core.tool import Hints, JsonInput, Plan, ToolResult, ToolSpec
from toolyard.errors import NoSandbox, ProcessError
from toolyard.kinds.mcp.health import ServerLost
from toolyard.kinds.mcp.pinned import DefinitionChanged
from toolyard.kinds.mcp.reference import McpProgram, fitted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from toolyard.core.tool import CallContext, Failure, JsonObject
    from toolyard.kinds.mcp.connection import McpConnection
    from toolyard.kinds.mcp.listing import McpDefinition, McpPrompt, McpResource
    from toolyard.kinds.mcp.pinned import PinnedDefinitions
    from toolyard.kinds.mcp.servers import ServerConnections


class ServerTool(ABC):
    """What all of them share: they are asked of one server, within a time, and have one answer."""

    kind = "mcp"

    def __init__(self, spec: ToolSpec, servers: ServerConnections) -> None:
        self.spec = spec
        self.servers = servers
        self.confined = servers.is_local

    @property
    def asked_for(self) -> str:
        """What the server is asked for, in its own words."""
        return self.spec.name

    def prefixed(self) -> ServerTool:
        """The same tool with its server's name before its own."""
        return self

    @property
    def timeout(self) -> float:
        return self.spec.timeout or 60

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        """Which server is asked for what; the arguments are part of it, so that they are on record."""
        server = self.servers.server
        asked = [self.asked_for, json.dumps(arguments, ensure_ascii=False)]
        if not isinstance(server, McpProgram):
            return Plan(arguments=arguments, argv=[server.url, *asked], cwd=context.cwd, server=self.servers.identity)
        names = [name for name, _ in server.env]
        argv, identity = [*server.command, *asked], self.servers.identity
        return Plan(arguments=arguments, argv=argv, cwd=context.cwd, env_keys=names, server=identity)

    async def preview(self, plan: Plan, context: CallContext) -> str:  # noqa: ARG002 - the interface
        return call_line(self.spec.name, plan.arguments)

    @abstractmethod
    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        """Ask the server; what it reports meanwhile is heard as partial output."""

    async def asked(
        self,
        work: Callable[[McpConnection], Awaitable[ToolResult]],
        plan: Plan,
        context: CallContext,
        *,
        check: Callable[[Mapping[str, McpDefinition]], None] | None = None,
    ) -> ToolResult:
        """What comes of some work with the server, after `check` has seen the tools that it offers now."""
        limit, cwd = context.timeout or self.timeout, str(plan.cwd or context.cwd)
        try:
            return await self.servers.ask(work, context, cwd=cwd, limit=limit, check=check)
        except DefinitionChanged as changed:
            return self._failed(f"was not called: {changed}", "denied")
        except TimeoutError:
            ended = "\nIts server was ended with it; the next call starts it again." if self.confined else ""
            return self._failed(f"timed out after {seconds(limit)}{ended}", "timeout")
        except ServerLost as lost:
            return self._lost(lost)
        except NoSandbox:
            raise
        except ProcessError as error:
            return self._failed(f"could not be run: {error}", "crash")
        except Exception as error:  # of the SDK, for which an error that a server reports is an exception
            from toolyard.kinds.mcp.connection import error_of, in_words

            failed = self._failed(f"could not be run: {in_words(error)}", "crash")
            reported = error_of(error) if context.client else None
            return replace(failed, original={"error": reported}) if reported else failed

    def _lost(self, lost: ServerLost) -> ToolResult:
        how: Failure = "crash" if lost.exit_code is None else "exit_code"
        last_words = self.servers.health.last_words
        words = f"was lost with its MCP server '{self.servers.server.name}': {lost.reason}{last_words}"
        return self._failed(words, how, exit_code=lost.exit_code, signal=lost.signal)

    def _failed(
        self, words: str, failure: Failure, *, exit_code: int | None = None, signal: int | None = None
    ) -> ToolResult:
        text = f"Error: '{self.spec.name}' {words}"
        return ToolResult(text=text, failure=failure, exit_code=exit_code, signal=signal)


class McpTool(ServerTool):
    """One tool that a server lists."""

    def __init__(
        self,
        definition: McpDefinition,
        servers: ServerConnections,
        pinned: PinnedDefinitions,
        *,
        name: str,
        timeout: float,
    ) -> None:
        self.definition = definition
        self._pinned = pinned
        hints = Hints(read_only=definition.read_only, destructive=definition.destructive)
        spec = ToolSpec(
            name=fitted(name),
            description=definition.description,
            input=JsonInput(schema=definition.schema),
            timeout=timeout,
            hints=hints,
        )
        super().__init__(spec, servers)
        self._prefixed: McpTool | None = None
        self._checked: Mapping[str, McpDefinition] | None = None
        """The tools of a server that has this one as it is described here."""

    @property
    def asked_for(self) -> str:
        return self.definition.name

    @cached_property
    def _digest(self) -> str:
        return self.definition.digest

    def prefixed(self) -> McpTool:
        if self._prefixed is None:
            name = f"{self.servers.server.name}_{self.spec.name}"
            self._prefixed = McpTool(self.definition, self.servers, self._pinned, name=name, timeout=self.timeout)
        return self._prefixed

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        plan = super().plan(arguments, context)
        if isinstance(plan, ToolResult):
            return plan
        return replace(plan, doubt=self._pinned.objection(self.definition, self._digest))

    def check(self, offered: Mapping[str, McpDefinition]) -> None:
        """A call was looked at with the definition that was known then, and runs only with that one, or an allowed one.

        What is known of a server may come from an earlier day, and its program may say something else by now.
        """
        if offered is self._checked:
            return
        name = self.definition.name
        now = offered.get(name)
        if now is None:
            raise DefinitionChanged("its MCP server does not offer it any more")
        if now == self.definition:
            self._pinned.pin(name, self._digest)
            self._checked = offered
        elif not self._pinned.allows(now):
            raise DefinitionChanged(  # what it says now is not repeated here: nobody has allowed it yet
                "its MCP server describes it in another way than when the call was looked at.\n"
                "Call it again if it is still what you want, with arguments that fit its definition as it is now."
            )

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        from toolyard.kinds.mcp.answers import result_of

        async def report(progress: float, total: float | None, message: str | None) -> None:
            if context.emit:
                context.emit("stdout", f"{message or progress_text(progress, total)}\n")

        async def work(connection: McpConnection) -> ToolResult:
            told = report if context.emit else None
            options = {"progress_callback": told, "meta": log_wish(context)}
            if self.definition.has_output_schema:  # which the SDK holds its server to
                answer = await connection.client_now.call_tool(self.definition.name, dict(plan.arguments), **options)
                return result_of(answer, context)
            return result_of(await connection.call_tool(self.definition.name, plan.arguments, **options), context)

        return await self.asked(work, plan, context, check=self.check)


class ResourceTool(ServerTool):
    """Reads what a server offers to be read, and says what that is.

    What there is stands in a result and not in the description: these are words of the server's that change with every
    file, and nobody lets each of them run.
    """

    def __init__(self, resources: Sequence[McpResource], servers: ServerConnections, *, timeout: float) -> None:
        server = servers.server.name
        self._list = "\n".join(named(one.uri, one.name, one.description) for one in resources)
        text = f"Read a resource of the MCP server '{server}'. Without an address, list those that there are."
        address = "Its address as it is listed; replace what is in braces."
        schema = {
            "type": "object",
            "properties": {"uri": {"type": "string", "description": address}},
            "additionalProperties": False,
        }
        name = fitted(f"{server}_read_resource")
        hints = Hints(read_only=True)
        super().__init__(
            ToolSpec(name=name, description=text, input=JsonInput(schema=schema), timeout=timeout, hints=hints), servers
        )

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        uri = plan.arguments.get("uri")
        if not uri:
            return ToolResult(text=self._list)

        async def work(connection: McpConnection) -> ToolResult:
            from toolyard.kinds.mcp.answers import resource_result

            return resource_result(await connection.client_now.read_resource(uri), context)

        return await self.asked(work, plan, context)


class PromptTool(ServerTool):
    """Gets a text that a server makes, and says which there are; that too is a result, as with resources."""

    def __init__(self, prompts: Sequence[McpPrompt], servers: ServerConnections, *, timeout: float) -> None:
        server = servers.server.name
        self._names = frozenset(one.name for one in prompts)
        self._list = "\n".join(f"{one.name}({', '.join(one.arguments)}): {one.description}" for one in prompts)
        text = f"Get a prompt of the MCP server '{server}'. Without a name, list those that there are."
        schema = {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Its name as it is listed."},
                "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "additionalProperties": False,
        }
        name = fitted(f"{server}_get_prompt")
        hints = Hints(read_only=True)
        super().__init__(
            ToolSpec(name=name, description=text, input=JsonInput(schema=schema), timeout=timeout, hints=hints), servers
        )

    def plan(self, arguments: JsonObject, context: CallContext) -> Plan | ToolResult:
        name = arguments.get("name")
        if name and name not in self._names:
            text = (
                f"Error: there is no prompt of that name; call '{self.spec.name}' without a name to see which there are"
            )
            return ToolResult(text=text, failure="invalid_arguments")
        return super().plan(arguments, context)

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        name, given = plan.arguments.get("name"), plan.arguments.get("arguments") or {}
        if not name:
            return ToolResult(text=self._list)

        async def work(connection: McpConnection) -> ToolResult:
            from toolyard.kinds.mcp.answers import prompt_result

            return prompt_result(await connection.client_now.get_prompt(name, dict(given)), context)

        return await self.asked(work, plan, context)


class CompletionTool(ServerTool):
    """Completes an argument of a server's prompts and templates, for programs in which a person types it."""

    def __init__(self, servers: ServerConnections, *, timeout: float) -> None:
        text = f"Complete an argument of a prompt or a resource of the MCP server '{servers.server.name}'."
        known = {"ref": {"type": "object"}, "argument": {"type": "object"}, "context": {"type": "object"}}
        schema = {"type": "object", "properties": known, "required": ["ref", "argument"]}
        name, hints = fitted(f"{servers.server.name}_complete"), Hints(read_only=True)
        super().__init__(
            ToolSpec(name=name, description=text, input=JsonInput(schema=schema), timeout=timeout, hints=hints), servers
        )

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        from mcp.types import PromptReference, ResourceTemplateReference

        from toolyard.kinds.mcp.answers import completion_result

        given = plan.arguments
        kind = PromptReference if given["ref"].get("type") == "ref/prompt" else ResourceTemplateReference
        context_arguments = (given.get("context") or {}).get("arguments")

        async def work(connection: McpConnection) -> ToolResult:
            ref = kind.model_validate(given["ref"])
            answer = await connection.client_now.complete(
                ref, dict(given["argument"]), context_arguments=context_arguments
            )
            return completion_result(answer, context)

        return await self.asked(work, plan, context)


class FollowTool(ServerTool):
    """Has a server tell of changes of a resource, for programs that show it."""

    def __init__(self, servers: ServerConnections, *, timeout: float) -> None:
        text = f"Have the MCP server '{servers.server.name}' tell of changes of a resource."
        schema = {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}
        name, hints = fitted(f"{servers.server.name}_follow_resource"), Hints(read_only=True)
        super().__init__(
            ToolSpec(name=name, description=text, input=JsonInput(schema=schema), timeout=timeout, hints=hints), servers
        )

    async def run(self, plan: Plan, context: CallContext) -> ToolResult:
        async def work(connection: McpConnection) -> ToolResult:
            await self.servers.follow(connection, plan.arguments["uri"])
            return ToolResult(text="Its changes are told.")

        return await self.asked(work, plan, context)


def log_wish(context: CallContext) -> Any:
    """What tells a server of the newer era that somebody wants to hear its log."""
    level = context.client.log_level if context.client else None
    return {"io.modelcontextprotocol/logLevel": level} if level else None


def named(uri: str, name: str, description: str) -> str:
    return f"{uri}: {name}{' - ' if description else ''}{description}"


def progress_text(progress: float, total: float | None) -> str:
    return f"{progress:g}" if total is None else f"{progress:g} of {total:g}"

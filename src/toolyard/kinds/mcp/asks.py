"""What a server asks and tells while it works on a call: passed on to the client that made the call, or to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.types import CreateMessageResult, ElicitResult, ErrorData, ListRootsResult

from toolyard.core.tool import ClientRequest
from toolyard.kinds.mcp.listing import on_wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from mcp.client.session import ClientRequestContext
    from mcp.types import CreateMessageRequestParams, ElicitRequestParams, LoggingMessageNotificationParams

    from toolyard.core.tool import CallContext, JsonObject

MISSING_CAPABILITY = -32021
"""The code of an error that says what a client would have to be able to do."""


class ServerAsks:
    """Answers what one server asks, on behalf of the call that it works on."""

    def __init__(
        self,
        server: str,
        call: Callable[[], CallContext | None],
        stopped_clocks: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._server = server
        self._call = call
        self._stopped_clocks = stopped_clocks
        """Within this the time of no call goes on."""

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """A server wants to know something of a person, whose time is not the tool's."""
        call = self._call()
        if call is None or (call.client is None and call.ask_person is None):
            return ElicitResult(action="decline")
        with self._stopped_clocks():
            if call.client is not None:
                form = on_wire(params)
                form["message"] = f"{self._server} asks: {params.message}"
                answer = await call.client.ask(key_of(context, "form"), request_of("elicitation/create", form))
                return ElicitResult.model_validate(answer if isinstance(answer, dict) else {"action": "decline"})
            return await self._ask_person(call, params)

    async def _ask_person(self, call: CallContext, params: ElicitRequestParams) -> ElicitResult:
        schema: JsonObject = getattr(params, "requested_schema", None) or {"type": "object", "properties": {}}
        url = getattr(params, "url", None)
        asked = (
            call.ask_person(f"{params.message}\n{url}" if url else params.message, schema) if call.ask_person else None
        )
        filled = await asked if asked else None
        if filled is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=None if url else dict(filled))

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        """A server wants a model to answer; only who made the call has one to offer, and decides."""
        call = self._call()
        if call is not None and call.client is not None:
            with self._stopped_clocks():
                asked = ClientRequest(method="sampling/createMessage", params=on_wire(params), by=self._server)
                answer = await call.client.ask(key_of(context, "message"), asked)
            if isinstance(answer, dict):
                return CreateMessageResult.model_validate(answer)
        needed: JsonObject = {"requiredCapabilities": {"sampling": {}}}
        return ErrorData(code=MISSING_CAPABILITY, message="there is no model that can be asked", data=needed)

    async def list_roots(self, context: ClientRequestContext) -> ListRootsResult:
        """A server wants to know where to work: where the client says, else where the call works."""
        call = self._call()
        answer = (
            await call.client.ask(key_of(context, "roots"), request_of("roots/list", {}))
            if call and call.client
            else None
        )
        if isinstance(answer, dict):
            return ListRootsResult.model_validate(answer)
        return ListRootsResult.model_validate({"roots": [{"uri": call.cwd.as_uri()}] if call else []})

    async def log(self, params: LoggingMessageNotificationParams) -> None:
        call = self._call()
        if call is not None and call.client is not None and call.client.log_level:
            call.client.log(on_wire(params))


def key_of(context: ClientRequestContext, otherwise: str) -> str:
    """The name that a server of the newer era gives to what it asks; in the older one requests have numbers."""
    return context.request_id if isinstance(context.request_id, str) else otherwise


def request_of(method: str, params: JsonObject) -> ClientRequest:
    return ClientRequest(method=method, params=params)

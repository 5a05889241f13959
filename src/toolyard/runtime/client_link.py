"""The program that a call comes from, for tools that ask it something: nothing secret reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from toolyard.core.tool import ClientLink, ClientRequest, Json, JsonObject
    from toolyard.runtime.redaction import Redactor


def client_link(approver: object, call_id: str, redactor: Redactor) -> ClientLink | None:
    """The link of whoever approves a call, if it is a program at the other end of a wire."""
    find = getattr(approver, "client_of", None)
    link: ClientLink | None = find(call_id) if find else None
    return RedactedLink(link, redactor) if link and redactor.knows_any else link


class RedactedLink:
    """A link that hides secrets."""

    def __init__(self, link: ClientLink, redactor: Redactor) -> None:
        self.log_level = link.log_level
        self._link, self._redactor = link, redactor

    async def ask(self, name: str, request: ClientRequest) -> Json:
        return await self._link.ask(name, replace(request, params=self._redactor.redact_all(request.params)))

    def log(self, message: JsonObject) -> None:
        self._link.log(self._redactor.redact_all(message))

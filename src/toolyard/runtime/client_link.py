"""The program that a call comes from, for tools that ask it something: nothing secret reaches it.

What its model is asked is on record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from toolyard.core.json_values import cut
from toolyard.core.lossless_json import encode_json
from toolyard.runtime.audit.log import AuditUnavailable

if TYPE_CHECKING:
    from toolyard.core.tool import ClientLink, ClientRequest, Json, JsonObject
    from toolyard.runtime.audit.log import AuditLog
    from toolyard.runtime.redaction import Redactor

SAMPLING = "sampling/createMessage"
LONGEST_RECORDED = 2_000
"""How many characters of what a model is asked are in the audit log."""


def client_link(
    approver: object, call_id: str, *, session: str, redactor: Redactor, audit: AuditLog
) -> ClientLink | None:
    """The link of whoever approves a call, if it is a program at the other end of a wire."""
    find = getattr(approver, "client_of", None)
    link: ClientLink | None = find(call_id) if find else None
    return GuardedLink(link, {"session": session, "call_id": call_id}, redactor, audit) if link else None


class GuardedLink:
    """A link that hides secrets, and records what a model is asked."""

    def __init__(self, link: ClientLink, call: dict[str, Any], redactor: Redactor, audit: AuditLog) -> None:
        self.log_level = link.log_level
        self._link, self._call = link, call
        self._redactor, self._audit = redactor, audit

    async def ask(self, name: str, request: ClientRequest) -> Json:
        request = replace(request, params=self._hidden(request.params))
        answer = await self._link.ask(name, request)
        if request.method == SAMPLING:
            try:
                self._audit.write(self._redactor.redact_record(sampling_record(request, answer) | self._call))
            except AuditUnavailable:
                return None  # what is not on record did not happen: the tool gets no answer
        return answer

    def log(self, message: JsonObject) -> None:
        self._link.log(self._hidden(message))

    def _hidden(self, value: Any) -> Any:
        return self._redactor.redact_all(value) if self._redactor.knows_any else value


def sampling_record(request: ClientRequest, answer: Json) -> dict[str, Any]:
    """Who asked a model, which one answered, and how much; MCP has no place for counts, but a client may add them."""
    said = answer if isinstance(answer, dict) and "content" in answer else None
    meta = said.get("_meta") if said else None
    return {
        "event": "sampling",
        "server": request.by,
        "decision": "allow" if said else "deny",
        "reason": "the client answered" if said else "the client has no model, or its user said no",
        "model": str(said.get("model", "")) if said else None,
        "max_tokens": request.params.get("maxTokens"),
        "usage": meta.get("usage") if isinstance(meta, dict) else None,
        "asked": cut(encode_json(request.params.get("messages")).decode(), LONGEST_RECORDED),
        "bytes_out": len(encode_json(said["content"])) if said else 0,
    }

"""From what is said and done to the messages and answers that a conversation keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.core.content import TextPart
from toolyard.core.conversation import CallAnswer, UserMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.core.content import Part
    from toolyard.core.tool import ToolResult


def message_of(prompt: str | Sequence[Part]) -> UserMessage:
    return UserMessage(content=(TextPart(text=prompt),) if isinstance(prompt, str) else tuple(prompt))


def answer_of(call_id: str, name: str, result: ToolResult) -> CallAnswer:
    outputs = (result.data or {}).get("output")
    return CallAnswer(
        call_id=call_id,
        name=name,
        text=result.text,
        is_error=result.failure is not None,
        attachments=result.attachments,
        exit_code=result.exit_code,
        timed_out=result.failure == "timeout",
        outputs=tuple(outputs) if isinstance(outputs, list) else (),
    )

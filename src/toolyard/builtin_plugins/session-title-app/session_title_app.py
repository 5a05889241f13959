"""Titles for sessions: by a cheap model where one is configured, else by the words that were said first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.plugins.contract import ApplicationContext

__all__ = ["SessionTitleApp"]

KEY = "session_title"
LONGEST = 60
MOST_GIVEN = 4000
"""Characters of what was said that a model is asked about."""
REQUEST = (
    "Write a title of at most six words for a conversation that begins as follows. Answer with the title alone.\n\n"
)
OPENING = re.compile(
    r"^(?:(?:hi|hello|hey)\b[\s,!.]*|(?:please|kindly)\b[\s,]*|(?:can|could|would|will) you\b[\s,]*"
    r"|i(?:'d| would) like (?:you )?to\b\s*|i (?:want|need) (?:you )?to\b\s*|let(?:'s| us)\b\s*)+",
    re.IGNORECASE,
)


class SessionTitleApp:
    """Reads the key `session_title`: `{"model": "…"}` names a model of the agent's own provider."""

    id = "session_title_app"
    config_keys = (KEY,)
    event_types = ("prompt", "turn_ended")

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    async def on_event(self, event: Mapping[str, Any], context: ApplicationContext) -> None:
        """Remember what was said first; when its turn is over, it becomes a title, unless somebody gave one."""
        if event["type"] == "prompt":
            self._said.setdefault(context.session, text_of(event))
            return
        said = self._said.get(context.session, "")
        if event["turn"] == 1 and said and not context.metadata().get("title"):
            await context.set_metadata(title=await self._title(said, context))

    async def _title(self, said: str, context: ApplicationContext) -> str:
        settings = context.config.get(KEY)
        model = settings.get("model") if isinstance(settings, dict) else None
        if not isinstance(model, str):
            return by_words(said)
        return one_line(await context.ask(REQUEST + said[:MOST_GIVEN], model=model)) or by_words(said)


def text_of(event: Mapping[str, Any]) -> str:
    parts = event["message"]["content"]
    return " ".join(part["text"] for part in parts[:1] if part["type"] == "text")


def by_words(said: str) -> str:
    """The first sentence without what people say out of politeness."""
    plain = " ".join(said.split())
    asked = OPENING.sub("", plain) or plain
    sentence = re.split(r"(?<=[.!?])\s", asked, maxsplit=1)[0].rstrip(".!?:, ") or asked
    return one_line(sentence[:1].upper() + sentence[1:])


def one_line(text: str) -> str:
    """At most so many characters, cut between words."""
    line = " ".join(text.split()).strip("\"'*#` ")
    if len(line) <= LONGEST:
        return line
    return f"{line[:LONGEST].rsplit(' ', 1)[0].rstrip(',;: ')}…"

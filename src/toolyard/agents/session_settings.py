"""What a conversation sets for itself: its metadata, its controls, its plugins, and so whom it asks and how."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from toolyard.agents.answer_listening import told_by
from toolyard.agents.controls import chosen_plugins, metadata_with, set_controls, ui_schema
from toolyard.agents.model_choice import model_of
from toolyard.agents.sessions.events import MetadataSet
from toolyard.agents.turn_setup import Conditions, setup_for
from toolyard.core.conversation import message_of
from toolyard.core.model import Answered, ModelRequest
from toolyard.errors import ProviderError
from toolyard.plugins.contract import ApplicationContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.agents.controls import UiSchema
    from toolyard.agents.model_choice import ModelChoice
    from toolyard.agents.sessions.event_log import EventLog
    from toolyard.agents.sessions.store import SessionStore
    from toolyard.agents.turn_setup import TurnSetup
    from toolyard.core.conversation import Message
    from toolyard.core.tool import JsonObject
    from toolyard.runtime.lifecycle import Lifecycle
    from toolyard.runtime.loaded import Loaded


class SessionSettings:
    """The settings of one session, whose process is the only one that changes them as long as it is open."""

    def __init__(self, log: EventLog, store: SessionStore, lifecycle: Lifecycle, agent: str, model: str | None) -> None:
        """`model` stands for what the configuration and the metadata say."""
        self.model = model
        self._agent = agent
        self._log = log
        self._store = store
        self._lifecycle = lifecycle
        row = store.session(log.session)
        self.metadata: JsonObject = row.metadata
        self._has_title = bool(row.title)

    async def change(self, **values: Any) -> None:
        """Change what the session knows of itself, such as `title` or `plugins`."""
        self.metadata = {**self.metadata, **values}
        self._has_title = self._has_title or "title" in values
        await self._log.record(MetadataSet(values=values))
        await self._store.update(self._log.session, metadata=self.metadata, title=values.get("title"))

    async def give_title(self, text: str) -> None:
        """A title for a session that has none, from what is said first."""
        if not self._has_title:
            self._has_title = True
            title = " ".join(text.split())
            await self._store.update(self._log.session, title=title if len(title) <= 60 else f"{title[:59]}…")

    @property
    def plugins(self) -> tuple[str, ...] | None:
        """The plugins that the session itself names; None when the configuration decides."""
        return chosen_plugins(self.metadata)

    async def ui_schema(self) -> UiSchema:
        """What can be set, and how it is set now."""
        return await ui_schema(await self._lifecycle.current(), self._agent, self.metadata)

    async def set_control(self, id: str, value: Any) -> None:
        """Set what a control is about; None for what the configuration says. ControlError where that cannot be."""
        changed = metadata_with(await self.ui_schema(), self.metadata, id, value)
        if id == "model":
            self.model = None
        await self.change(**changed)

    async def choice(self, model: str | None = None) -> ModelChoice:
        """The provider and the model that are asked; ProviderError with the line to write when there is none."""
        return self._choice(await self._lifecycle.current(), model)

    def _choice(self, loaded: Loaded, model: str | None = None) -> ModelChoice:
        wanted = model or self.model or set_controls(self.metadata).get("model")
        return model_of(loaded, self._agent, self.plugins, str(wanted) if wanted else None)

    async def setup(self, messages: Sequence[Message]) -> TurnSetup:
        """What the next request works with, by the configuration as it is now."""
        loaded = await self._lifecycle.current()
        conditions = Conditions(
            agent=self._agent,
            choice=self._choice(loaded),
            chosen=self.plugins,
            controls=set_controls(self.metadata),
        )
        return await setup_for(loaded, conditions, messages)

    def plugin_context(self) -> ApplicationContext:
        """What an application plugin may know of the conversation, and do with it."""
        return ApplicationContext(
            agent=self._agent,
            session=self._log.session,
            config=self._lifecycle.known().configuration.for_agent(self._agent),
            metadata=lambda: self.metadata,
            set_metadata=self.change,
            ask=self._ask_beside,
        )

    async def _ask_beside(self, prompt: str, *, model: str | None = None) -> str:
        """A question of a plugin's own to the agent's provider; the conversation knows nothing of it."""
        choice = await self.choice(model)
        request = ModelRequest(
            model=choice.model,
            messages=[message_of(prompt)],
            may_call=False,
            config=choice.config,
            session=self._log.session,
        )
        async with aclosing(told_by(choice.provider.stream, request)) as events:
            async for event in events:
                if isinstance(event, Answered):
                    return event.message.text
        raise ProviderError("the provider ended without an answer", fault="answer")

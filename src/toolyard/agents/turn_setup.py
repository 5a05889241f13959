"""What a turn needs of others: the session that it belongs to, and what its requests are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from toolyard.agents.model_choice import ModelChoice, searches_tools, settings_in
from toolyard.agents.own_tools.tool_search import SearchTool, shown_tools, without_search
from toolyard.agents.request import Contribution, features_of, shape_requests, with_controls
from toolyard.config.agent_settings import BudgetSettings, ContextSettings
from toolyard.config.layers import mapping

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from toolyard.agents.sessions.events import SessionEvent
    from toolyard.agents.sessions.history import History
    from toolyard.core.conversation import CallAnswer, Message
    from toolyard.core.model import ModelEvent, ModelRequest
    from toolyard.core.tool import JsonObject, ToolCall, ToolSpec
    from toolyard.runtime.loaded import Loaded


class Conversation(Protocol):
    """The session that a turn belongs to, as far as the turn needs it."""

    async def record(self, *events: SessionEvent, durable: bool = True) -> None:
        """Keep events, and tell whoever listens; no end of the process loses them.

        Durable ones survive the end of the machine, too, and with them all that was kept before.
        """

    def tell(self, event: ModelEvent) -> None:
        """Tell whoever listens what is not kept."""

    def history(self) -> History:
        """What the session is now."""

    async def steer(self) -> bool:
        """Take up what was said meanwhile; whether there was anything."""

    async def call(self, calls: Sequence[ToolCall]) -> Sequence[CallAnswer]:
        """Make calls along the one path; each result is on the disk when this returns."""

    def waiting(self) -> Sequence[str]:
        """The calls whose questions nobody could answer yet; the turn cannot go on without them."""

    async def keep_end(self, turn: int) -> str | None:
        """The state of the workspace at the end of a turn; None when the turn could not change it."""

    @property
    def waited(self) -> float:
        """Seconds in which a person was waited for."""


class TurnSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn works with; made anew for every request, so that an edited configuration takes effect."""

    stream: StreamFunction
    model: str
    system: str
    tools: Sequence[ToolSpec]
    search: bool
    """Whether the service itself lets the model look for tools."""
    options: JsonObject
    config: JsonObject
    context: ContextSettings
    budget: BudgetSettings


class StreamFunction(Protocol):
    """How a provider is asked."""

    def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]: ...


class SetupFunction(Protocol):
    """How a turn learns what it works with."""

    async def __call__(self) -> TurnSetup: ...


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What a session says of its requests."""

    agent: str
    choice: ModelChoice
    chosen: tuple[str, ...] | None
    """The plugins that it names itself."""
    controls: JsonObject


async def setup_for(loaded: Loaded, session: Conditions, messages: Sequence[Message]) -> TurnSetup:
    """What the next request works with, by the configuration as it is now."""
    agent, choice, controls = session.agent, session.choice, session.controls
    system, options = Contribution(), Contribution()
    if shape_requests(loaded, agent, session.chosen):
        features = features_of(loaded, agent, models=[choice.model], chosen=session.chosen, controls=controls)
        system, options = await features.system_message(), await features.request_options()
    config = with_controls(choice.config, controls)
    tools = loaded.agent(agent, session.chosen).catalog.tools()
    search = any(isinstance(tool, SearchTool) for tool in tools) and searches_tools(choice)
    return TurnSetup(
        stream=choice.provider.stream,
        model=choice.model,
        system=system.text,
        tools=without_search(tools) if search else shown_tools(tools, messages),
        search=search,
        options={**mapping(config.get("options")), **options.options},
        config=config,
        context=settings_in(config, "context", ContextSettings),
        budget=settings_in(config, "budget", BudgetSettings),
    )

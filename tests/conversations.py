"""Conversations as they could have been, by chance."""

from __future__ import annotations

import random
from typing import Any

from toolyard.agents.sessions.events import (
    AnswerReceived,
    CallAnswered,
    CallBegan,
    ContextShortened,
    PromptGiven,
    Rewound,
    SessionEvent,
    TurnEnded,
    TurnStarted,
)
from toolyard.core.conversation import AssistantMessage, CallAnswer, message_of
from toolyard.core.tool import ToolCall


def chance_events(chance: random.Random) -> list[SessionEvent]:
    """A conversation as it could have been: turns, calls, summaries, ways back, at last perhaps an open turn."""
    made: list[SessionEvent] = []
    for turn in range(1, chance.randrange(2, 12)):
        made += [PromptGiven(message=message_of(f"prompt {turn}")), TurnStarted(turn=turn)]
        for step in range(chance.randrange(4)):
            call = ToolCall(id=f"c{step}", name="bash", arguments={"command": f"echo {turn}.{step}"})
            made += [AnswerReceived(message=AssistantMessage(calls=(call,))), CallBegan(call=call)]
            made.append(CallAnswered(answer=CallAnswer(call_id=call.id, name="bash", text="x" * 900)))
            if chance.random() < 0.3:
                what: Any = chance.choice(["summary", "outputs"])
                upto = chance.randrange(max(1, len(made) - 8), len(made) + 1)
                made.append(ContextShortened(what=what, upto=upto, summary=f"until {turn}.{step}"))
        made += [AnswerReceived(message=AssistantMessage(text="Done.")), TurnEnded(turn=turn, outcome="answered")]
        if chance.random() < 0.2:
            made.append(Rewound(to=chance.randrange(1, len(made))))
            if chance.random() < 0.5:
                made.append(Rewound(to=len(made), redoes=len(made)))
    return made[: chance.randrange(len(made) // 2, len(made) + 1)]

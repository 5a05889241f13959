"""A conversation of many pictures stays within what a request can hold, and a model that sees none is told in words."""

from __future__ import annotations

import pytest

from provider_bench import WIRES, Wire, provider_bench, user
from support import PNG
from toolyard.agents.providers.attachments import MOST_SENT, first_sent, sendable
from toolyard.core.content import ImagePart, TextPart
from toolyard.core.conversation import AssistantMessage, CallAnswer, ToolMessage, UserMessage
from toolyard.core.model import ModelRequest
from toolyard.core.tool import ToolCall

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("sizes", "first"),
    [
        ([], 0),
        ([5, 5], 0),
        ([5, 5, 5], 2),
        ([5, 5, 5, 5], 2),
        ([5, 5, 5, 5, 5], 4),
        ([9, 9], 1),
        ([11], 1),
        ([3, 11, 3], 2),
        ([0, 0, 0], 0),
    ],
)
def test_the_latest_are_sent_and_where_that_begins_it_stays_for_a_while(sizes, first):
    assert first_sent(sizes, 10) == first


def test_nothing_is_sent_where_nothing_may():
    assert first_sent([0, 3, 0, 2, 0], 0) == 4


def turn(number: int, size: int) -> list:
    image = ImagePart(media_type="image/png", data=PNG + bytes(size))
    call = ToolCall(id=f"c{number}", name="look", arguments={})
    answer = CallAnswer(call_id=call.id, name="look", text=f"picture {number}", attachments=(image,))
    return [AssistantMessage(calls=(call,), stop="tool_calls"), ToolMessage(answers=(answer,))]


def test_a_long_conversation_of_pictures_stays_within_the_bound():
    messages = [user("Look"), *(message for number in range(40) for message in turn(number, 1 << 20))]
    request = sendable(ModelRequest(model="m", messages=messages), images=True)
    answers = [message.answers[0] for message in request.messages if isinstance(message, ToolMessage)]
    sent = [answer for answer in answers if answer.attachments]
    assert sent == answers[-len(sent) :]
    assert MOST_SENT // 3 < sum(len(answer.attachments[0].data) for answer in sent) <= MOST_SENT
    assert answers[0].text.startswith("picture 0\n[image: image/png, ")


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
async def test_a_model_that_sees_nothing_is_told_in_words(wire: Wire):
    shown = UserMessage(content=(TextPart(text="This"), ImagePart(media_type="image/png", data=PNG)))
    async with provider_bench(wire, images=False) as bench:
        await bench.ask(shown, *turn(1, 0))
        (body,) = bench.bodies
    assert "base64" not in str(body)
    assert str(body).count(f"[image: image/png, {len(PNG)} bytes]") == 2

"""An agent in ten lines: the tools of a configuration in the loop of each official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import MessageParam
    from openai import AsyncOpenAI
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputItemParam

    from toolyard import AgentApplication


async def ask_claude(app: AgentApplication, client: AsyncAnthropic, model: str, prompt: str) -> str:
    """Anthropic Messages."""
    messages: list[MessageParam] = [{"role": "user", "content": prompt}]
    while True:
        answer = await client.messages.create(
            model=model, max_tokens=4096, messages=messages, tools=app.tool_specs(format="anthropic")
        )
        if not (calls := app.tool_calls(answer, format="anthropic")):
            return "".join(block.text for block in answer.content if block.type == "text")
        messages.append({"role": "assistant", "content": answer.content})
        messages += app.tool_messages(await app.call_tools(calls), format="anthropic")


async def ask_chat(app: AgentApplication, client: AsyncOpenAI, model: str, prompt: str) -> str:
    """OpenAI Chat Completions, and every server that speaks it."""
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": prompt}]
    while True:
        answer = await client.chat.completions.create(
            model=model, messages=messages, tools=app.tool_specs(format="openai")
        )
        message = answer.choices[0].message
        if not (calls := app.tool_calls(message, format="openai")):
            return message.content or ""
        messages.append(cast("ChatCompletionMessageParam", message.model_dump(exclude_none=True)))
        messages += app.tool_messages(await app.call_tools(calls), format="openai")


async def ask_responses(app: AgentApplication, client: AsyncOpenAI, model: str, prompt: str) -> str:
    """OpenAI Responses, which keeps the conversation itself."""
    items: list[ResponseInputItemParam] = [{"role": "user", "content": prompt}]
    before: str | None = None
    while True:
        answer = await client.responses.create(
            model=model, input=items, previous_response_id=before, tools=app.tool_specs(format="responses")
        )
        if not (calls := app.tool_calls(answer, format="responses")):
            return answer.output_text
        items, before = app.tool_messages(await app.call_tools(calls), format="responses"), answer.id

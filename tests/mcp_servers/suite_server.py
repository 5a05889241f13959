"""The server that the conformance suite wants to see, on the SDK; its names and texts are the suite's.

With `handshake` it speaks the older protocol era only.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import anyio
import mcp.types as types
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import JSONRPCError

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
WAVE = "UklGRiQAAABXQVZFZm10IAAAAAAAAAAAAAAAAAAAAAAAAAAAZGF0YQAAAAA="
STATELESS = "2026-07-28"
NO_ARGUMENTS = {"type": "object", "properties": {}}
TOOLS: dict[str, tuple[str, dict[str, Any], Callable[..., Any]]] = {}
SUBSCRIBED: set[str] = set()
BEGUN: list[Any] = []
BUS = InMemorySubscriptionBus()


def tool(description: str, **properties: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        TOOLS[function.__name__] = (description, schema if properties else NO_ARGUMENTS, function)
        return function

    return keep


def text(words: str) -> types.TextContent:
    return types.TextContent(type="text", text=words)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, mime_type: str, words: str) -> types.EmbeddedResource:
    held = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    return types.EmbeddedResource(type="resource", resource=held)


def done(*content: Any, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=list(content), is_error=failed)


class Ask:
    """Asks the client in the way of its era: by a request, or by a result that asks for more."""

    def __init__(self, context: Any, params: Any) -> None:
        self.context = context
        self.answers: dict[str, Any] = {
            name: getattr(one, "root", one) for name, one in (getattr(params, "input_responses", None) or {}).items()
        }
        self.state: str | None = getattr(params, "request_state", None)

    async def __call__(self, requests: dict[str, Any], state: str | None = None) -> dict[str, Any]:
        """The answers; raises `More` where they come with another request."""
        if self.context.protocol_version == STATELESS:
            if not requests.keys() <= self.answers.keys():
                raise More(types.InputRequiredResult(input_requests=requests, request_state=state))
            return self.answers
        return {name: await self._request(one) for name, one in requests.items()}

    async def _request(self, request: Any) -> Any:
        kinds = {
            types.ElicitRequest: types.ElicitResult,
            types.CreateMessageRequest: types.CreateMessageResult,
            types.ListRootsRequest: types.ListRootsResult,
        }
        return await self.context.session.send_request(request, kinds[type(request)])


class More(Exception):
    def __init__(self, result: types.InputRequiredResult) -> None:
        self.result = result


def form(message: str, **properties: Any) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(words: str, most: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=text(words))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


def said(answer: Any) -> str:
    return json.dumps(answer.model_dump(mode="json", by_alias=True, exclude_none=True))


@tool("Answers with text.")
async def test_simple_text(ask: Ask) -> Any:
    return done(text("This is a simple text response for testing."))


@tool("Answers with an image.")
async def test_image_content(ask: Ask) -> Any:
    return done(image())


@tool("Answers with sound.")
async def test_audio_content(ask: Ask) -> Any:
    return done(types.AudioContent(type="audio", data=WAVE, mime_type="audio/wav"))


@tool("Answers with a resource.")
async def test_embedded_resource(ask: Ask) -> Any:
    return done(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))


@tool("Answers with several kinds of content.")
async def test_multiple_content_types(ask: Ask) -> Any:
    data = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return done(text("Multiple content types test:"), image(), data)


@tool("Fails.")
async def test_error_handling(ask: Ask) -> Any:
    return done(text("This tool intentionally returns an error for testing"), failed=True)


async def log(ask: Ask, words: str) -> None:
    await ask.context.session.send_log_message("info", words, related_request_id=ask.context.request_id)


@tool("Logs while it runs.")
async def test_tool_with_logging(ask: Ask) -> Any:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(ask, words)
        await asyncio.sleep(0.05)
    return done(text("Tool with logging executed successfully"))


@tool("Logs once.")
async def test_logging_tool(ask: Ask) -> Any:
    await log(ask, "a message")
    return done(text("done"))


@tool("Reports progress.")
async def test_tool_with_progress(ask: Ask) -> Any:
    for number in (0, 50, 100):
        await ask.context.session.report_progress(number, 100)
        await asyncio.sleep(0.05)
    return done(text("done"))


@tool("Asks for a model's answer.", prompt={"type": "string"})
async def test_sampling(ask: Ask, prompt: str) -> Any:
    answers = await ask({"answer": sample(prompt)})
    return done(text(f"LLM response: {said(answers['answer'])}"))


@tool("Asks a person.", message={"type": "string"})
async def test_elicitation(ask: Ask, message: str) -> Any:
    fields = {"username": {"type": "string"}, "email": {"type": "string"}}
    answers = await ask({"answer": form(message, **fields)})
    return done(text(f"User response: {said(answers['answer'])}"))


@tool("Asks with defaults.")
async def test_elicitation_sep1034_defaults(ask: Ask) -> Any:
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    answers = await ask({"answer": form("Please fill in", **fields)})
    return done(text(f"Elicitation completed: {said(answers['answer'])}"))


@tool("Asks for choices.")
async def test_elicitation_sep1330_enums(ask: Ask) -> Any:
    options = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
    names = ["Option One", "Option Two", "Option Three"]
    fields = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    answers = await ask({"answer": form("Please choose", **fields)})
    return done(text(f"Elicitation completed: {said(answers['answer'])}"))


NAME = {"name": {"type": "string"}}
OK = {"ok": {"type": "boolean"}}


@tool("Asks for a name.")
async def test_input_required_result_elicitation(ask: Ask) -> Any:
    answers = await ask({"user_name": form("What is your name?", **NAME)})
    return done(text(f"Hello, {answers['user_name'].content['name']}!"))


@tool("Asks while it streams.")
async def test_streaming_elicitation(ask: Ask) -> Any:
    answers = await ask({"user_name": form("What is your name?", **NAME)})
    return done(text(said(answers["user_name"])))


@tool("Asks a model.")
async def test_input_required_result_sampling(ask: Ask) -> Any:
    answers = await ask({"capital_question": sample("What is the capital of France?")})
    return done(text(said(answers["capital_question"])))


@tool("Cannot do without a model.")
async def test_missing_capability(ask: Ask) -> Any:
    answers = await ask({"question": sample("Anything?")})
    return done(text(said(answers["question"])))


@tool("Asks for roots.")
async def test_input_required_result_list_roots(ask: Ask) -> Any:
    answers = await ask({"client_roots": types.ListRootsRequest()})
    return done(text(said(answers["client_roots"])))


@tool("Asks, and keeps a state.")
async def test_input_required_result_request_state(ask: Ask) -> Any:
    await ask({"confirm": form("Please confirm", **OK)}, "kept")
    return done(text("state-ok" if ask.state == "kept" else "state-lost"))


@tool("Asks, and keeps a state.")
async def test_input_required_result_tampered_state(ask: Ask) -> Any:
    await ask({"confirm": form("Please confirm", **OK)}, "kept")
    if ask.state != "kept":
        raise MCPError(code=types.INVALID_PARAMS, message="the state was tampered with")
    return done(text("done"))


@tool("Asks for several things at once.")
async def test_input_required_result_multiple_inputs(ask: Ask) -> Any:
    asked = {
        "user_name": form("What is your name?", **NAME),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    answers = await ask(asked, "several")
    return done(text(" ".join(map(said, answers.values()))))


@tool("Asks twice.")
async def test_input_required_result_multi_round(ask: Ask) -> Any:
    if ask.state is None:
        await ask({"step1": form("Step 1: What is your name?", **NAME)}, "first")
    await ask({"step2": form("Step 2: What is your favorite color?", color={"type": "string"})}, "second")
    return done(text(f"{ask.state}: {said(ask.answers['step2'])}"))


@tool("Asks for what the client can do.")
async def test_input_required_result_capabilities(ask: Ask) -> Any:
    answers = await ask({"person": form("What is your name?", **NAME), "model": sample("Anything?")})
    return done(text(" ".join(map(said, answers.values()))))


@tool("Offers another tool from now on, or no more.")
async def test_trigger_tool_change(ask: Ask) -> Any:
    if TOOLS.pop("another_tool", None) is None:
        TOOLS["another_tool"] = ("Answers with text.", NO_ARGUMENTS, test_simple_text)
    await BUS.publish(ToolsListChanged())
    return done(text("changed"))


@tool("Offers another prompt from now on, or no more.")
async def test_trigger_prompt_change(ask: Ask) -> Any:
    if PROMPTS.pop("another_prompt", None) is None:
        PROMPTS["another_prompt"] = ("A plain prompt.", [])
    await BUS.publish(PromptsListChanged())
    return done(text("changed"))


@tool("Asks a person, and says how often it was begun for that.")
async def test_counted_question(ask: Ask) -> Any:
    BEGUN.append(ask)
    await ask({"user_name": form("What is your name?", name={"type": "string"})})
    return done(text(f"begun {len(BEGUN)} times"))


@tool("Tells of a change of a resource to whoever wants to hear of it.", uri={"type": "string"})
async def test_trigger_resource_change(ask: Ask, uri: str) -> Any:
    await BUS.publish(ResourceUpdated(uri=uri))
    if uri in SUBSCRIBED:
        await ask.context.session.send_resource_updated(uri)
    return done(text(" ".join(sorted(SUBSCRIBED))))


PROMPTS: dict[str, tuple[str, list[str]]] = {
    "test_simple_prompt": ("A plain prompt.", []),
    "test_prompt_with_arguments": ("A prompt with arguments.", ["arg1", "arg2"]),
    "test_prompt_with_embedded_resource": ("A prompt with a resource.", ["resourceUri"]),
    "test_prompt_with_image": ("A prompt with an image.", []),
    "test_input_required_result_prompt": ("A prompt that asks.", []),
}


async def prompt_messages(params: Any, ask: Ask) -> list[Any]:
    given = params.arguments or {}
    match params.name:
        case "test_prompt_with_arguments":
            return [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            held = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            return [held, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            return [image(), text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            asked = form("What context should the prompt use?", context={"type": "string"})
            return [text(said((await ask({"user_context": asked}))["user_context"]))]
    return [text("This is a simple prompt for testing.")]


RESOURCES = {
    "test://static-text": ("Text", "text/plain"),
    "test://static-binary": ("Image", "image/png"),
    "test://watched-resource": ("Watched", "text/plain"),
}


def contents(uri: str) -> Any:
    match uri.removeprefix("test://").split("/"):
        case ["static-text"]:
            return types.TextResourceContents(
                uri=uri, mime_type="text/plain", text="This is the content of the static text resource."
            )
        case ["static-binary"]:
            return types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
        case ["watched-resource"]:
            return types.TextResourceContents(uri=uri, mime_type="text/plain", text="watched")
        case ["template", id, "data"]:
            data = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
            return types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))
    raise MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": uri})


async def list_tools(*_: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(name=name, description=about, input_schema=schema) for name, (about, schema, _) in TOOLS.items()
    ]
    return types.ListToolsResult(tools=tools)


async def call_tool(context: Any, params: Any) -> Any:
    try:
        return await TOOLS[params.name][2](Ask(context, params), **(params.arguments or {}))
    except More as more:
        return more.result


async def list_resources(*_: Any) -> types.ListResourcesResult:
    found = [
        types.Resource(uri=uri, name=name, description=name, mime_type=kind) for uri, (name, kind) in RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=found)


async def list_templates(*_: Any) -> types.ListResourceTemplatesResult:
    one = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="Template", description="By id", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[one])


async def read_resource(_: Any, params: Any) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[contents(str(params.uri))])


async def subscribe(_: Any, params: Any) -> types.EmptyResult:
    SUBSCRIBED.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(_: Any, params: Any) -> types.EmptyResult:
    SUBSCRIBED.discard(str(params.uri))
    return types.EmptyResult()


async def list_prompts(*_: Any) -> types.ListPromptsResult:
    found = [
        types.Prompt(
            name=name,
            description=about,
            arguments=[types.PromptArgument(name=one, description=one, required=True) for one in arguments],
        )
        for name, (about, arguments) in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=found)


async def get_prompt(context: Any, params: Any) -> Any:
    try:
        messages = await prompt_messages(params, Ask(context, params))
    except More as more:
        return more.result
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in messages])


async def complete(_: Any, params: Any) -> types.CompleteResult:
    values = [word for word in ("test", "testing", "paris") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def set_level(*_: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def main(*, handshake_only: bool) -> None:
    server = Server(
        "suite",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
        on_subscriptions_listen=ListenHandler(BUS),
    )
    async with stdio_server() as (read, write), asyncio.TaskGroup() as group:
        to_server, messages = anyio.create_memory_object_stream[Any](0)
        group.create_task(pass_on(read, write, to_server, handshake_only=handshake_only))
        changes = NotificationOptions(prompts_changed=True, tools_changed=True)
        await server.run(messages, write, server.create_initialization_options(changes))


async def pass_on(read: Any, write: Any, to_server: Any, *, handshake_only: bool) -> None:
    """Give the server what comes; one of the older era does not know how a client of the newer one begins."""
    unknown = types.ErrorData(code=types.METHOD_NOT_FOUND, message="Method not found")
    async with to_server:
        async for item in read:
            message = item.message
            if handshake_only and getattr(message, "method", "") == "server/discover":
                error = JSONRPCError(jsonrpc="2.0", id=message.id, error=unknown)
                await write.send(SessionMessage(error))
            else:
                await to_server.send(item)


if __name__ == "__main__":
    asyncio.run(main(handshake_only="handshake" in sys.argv))

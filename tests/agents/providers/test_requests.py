"""What goes out is what the vendors' own packages would send, whatever the conversation."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_model_server import Reply, Said, anthropic_events, responses_events
from provider_bench import LIST_FILES, PLACES, PLUGINS, WIRES, Wire, bundled, provider_bench, user
from sdk_types import assert_official
from toolyard.agents.providers.anthropic.request import anthropic_body
from toolyard.agents.providers.chat.request import chat_body
from toolyard.agents.providers.responses.request import responses_body
from toolyard.agents.providers.wire_tools import wire_tools
from toolyard.core.content import AudioPart, FilePart, ImagePart, LinkPart, TextPart
from toolyard.core.conversation import AssistantMessage, CallAnswer, SummaryMessage, ToolMessage, UserMessage
from toolyard.core.model import ModelRequest
from toolyard.core.tool import TextInput, ToolCall, ToolSpec

pytestmark = pytest.mark.anyio
IMAGE = ImagePart(media_type="image/png", data=b"\x89PNG")
PATCH = ToolSpec(
    name="patch", description="Apply a patch.", input=TextInput(syntax="lark", grammar='start: "+" /[a-z]+/')
)
CALLS = Said(text="I look.", thinking="Where?", calls=(("c1", "list_files", '{"path": "."}'),))


def result(id: str = "c1", text: str = "a.txt", **rest: Any) -> ToolMessage:
    return ToolMessage(answers=(CallAnswer(call_id=id, name="list_files", text=text, **rest),))


def neutral(*calls: ToolCall, text: str = "I look.") -> AssistantMessage:
    """An answer that another provider gave."""
    return AssistantMessage(text=text, thinking="Secret.", calls=calls, stop="tool_calls", wire="elsewhere")


LISTING = ToolCall(id="c1", name="list_files", arguments='{"path": "."}')
CONVERSATIONS = {
    "one question": [user("Hello")],
    "parts": [
        UserMessage(
            content=(
                TextPart(text="Look"),
                IMAGE,
                AudioPart(media_type="audio/wav", data=b"RIFF"),
                AudioPart(media_type="audio/ogg", data=b"Ogg"),
                LinkPart(uri="https://example.org/a", name="a"),
            )
        )
    ],
    "a result": [user("List"), neutral(LISTING), result()],
    "a result with a picture": [user("Draw"), neutral(LISTING), result(attachments=(IMAGE,))],
    "only a picture": [user("Draw"), neutral(LISTING), result(text="", attachments=(IMAGE,))],
    "a result with everything": [
        user("Draw"),
        neutral(LISTING),
        result(
            attachments=(
                IMAGE,
                ImagePart(media_type="image/tiff", data=b"II*"),
                AudioPart(media_type="audio/mpeg", data=b"ID3"),
                FilePart(media_type="application/pdf", data=b"%PDF-1", name="a.pdf"),
                FilePart(media_type="application/zip", data=b"PK", name="a.zip"),
                LinkPart(uri="https://example.org/a", media_type="text/html"),
            )
        ),
    ],
    "an error with a picture": [user("Draw"), neutral(LISTING), result(is_error=True, attachments=(IMAGE,))],
    "an empty result": [user("List"), neutral(LISTING), result(text="")],
    "an empty error": [user("List"), neutral(LISTING), result(text="", is_error=True)],
    "a call without a result": [user("List"), neutral(LISTING)],
    "a result without a call": [user("List"), result()],
    "a message between call and result": [user("List"), neutral(LISTING), user("Quick!"), result()],
    "several of the user's": [user("One"), user("Two"), UserMessage(content=())],
    "arguments that are no JSON": [
        user("List"),
        neutral(ToolCall(id="c1", name="list_files", arguments='{"path": ')),
        result(is_error=True),
    ],
    "arguments that are an object": [
        user("List"),
        neutral(ToolCall(id="c1", name="list_files", arguments={"path": "ü"}), text=""),
        result(),
    ],
    "ids of another service": [
        user("List"),
        neutral(ToolCall(id="functions.list_files:0", name="list_files", arguments="{}")),
        result("functions.list_files:0"),
    ],
    "a summary": [user("Old"), SummaryMessage(text="We did much."), user("Next")],
    "a summary before a result": [neutral(LISTING), SummaryMessage(text="We did much."), result(), user("Next")],
    "the model's turn at the start and end": [neutral(text="I began."), user("So"), neutral(text="Yes.")],
    "an empty answer": [user("One"), AssistantMessage(), user("Two")],
}


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
async def test_every_conversation_makes_an_official_request(wire: Wire, messages):
    async with provider_bench(wire) as bench:
        await bench.ask(*messages, tools=[LIST_FILES, PATCH], system="Be brief.", session="s 1")
        (body,) = bench.bodies
        assert_official(wire.name, body)
        assert_order(wire.name, body)


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
async def test_an_answer_that_broke_off_is_asked_to_go_on(wire: Wire):
    async with provider_bench(wire) as bench:
        await bench.ask(user("Write"), AssistantMessage(text="Half of", stop="paused"))
        (body,) = bench.bodies
    assert_official(wire.name, body)
    said = [json.dumps(one) for one in body.get("messages") or body["input"]]
    assert "Half of" in said[1]
    assert wire.name == "responses" or "Go on." in said[2]  # that one takes any order


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("tools", [[], [LIST_FILES]], ids=["without tools", "with a tool"])
@pytest.mark.parametrize("may_call", [True, False])
async def test_options_and_a_last_answer_make_an_official_request(wire: Wire, tools, may_call):
    options = {"max_tokens": 100, "reasoning_effort": "low", "parallel_tool_calls": False}
    if wire.name != "anthropic":  # which has no such options any more
        options |= {"temperature": 0.5, "top_p": 0.9}
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    async with provider_bench(wire) as bench:
        await bench.ask(user("Hello"), tools=tools, may_call=may_call, options=options, schema=schema)
        (body,) = bench.bodies
        assert_official(wire.name, body)
        assert body.get("temperature") == options.get("temperature")
        choice = body.get("tool_choice")
        kind = choice.get("type") if isinstance(choice, dict) else choice
        assert (kind == "none") == (bool(tools) and not may_call)


def assert_order(wire: str, body: dict[str, Any]) -> None:
    """Each call has its one result after it, in the manner of the API."""
    if wire == "anthropic":
        roles = [message["role"] for message in body["messages"]]
        assert roles == [("user", "assistant")[at % 2] for at in range(len(roles))]
        assert roles[-1] == "user"
        for before, after in zip(body["messages"], [*body["messages"][1:], {"content": []}], strict=True):
            blocks = before["content"]
            wanted = [block["id"] for block in blocks if block["type"] == "tool_use"]
            given = [block["tool_use_id"] for block in after["content"] if block["type"] == "tool_result"]
            assert given == wanted
            assert [block["type"] for block in after["content"][: len(given)]] == ["tool_result"] * len(given)
            assert all(block["text"].strip() for block in blocks if block["type"] == "text")
    else:
        items = body["input"] if wire == "responses" else body["messages"]
        asked: list[str] = []
        for item in items:
            if "call_id" in item or "tool_call_id" in item:
                id = item.get("call_id") or item.get("tool_call_id")
                if item.get("type") == "function_call":
                    asked.append(id)
                else:
                    assert asked.pop(0) == id
            elif item.get("role") == "assistant":
                asked += [call["id"] for call in item.get("tool_calls", ())]
            else:
                assert asked == [], "somebody speaks between a call and its result"
        assert asked == []


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
async def test_what_a_service_sent_goes_back_unchanged(wire: Wire):
    async with provider_bench(wire, wire.reply(CALLS), wire.reply(Said(text="Done."))) as bench:
        answer = await bench.ask(user("List"), tools=[LIST_FILES])
        stored = copy.deepcopy(answer.items)
        await bench.ask(user("List"), answer, result(), tools=[LIST_FILES])
        body = bench.bodies[1]
        assert_official_but_for_reasoning(wire, body)
        assert json.dumps(sent_back(wire.name, body)) == json.dumps(list(stored))


def assert_official_but_for_reasoning(wire: Wire, body: dict[str, Any]) -> None:
    """OpenAI itself has no `reasoning_content`; the servers that send it want it back."""
    official = copy.deepcopy(body)
    for message in official.get("messages", ()) if wire.name == "openai" else ():
        message.pop("reasoning_content", None)
    assert_official(wire.name, official)


def sent_back(wire: str, body: dict[str, Any]) -> list[Any]:
    if wire == "responses":
        ours = ("function_call", "reasoning")
        return [item for item in body["input"] if item["type"] in ours or item.get("role") == "assistant"]
    if wire == "anthropic":
        return [block for turn in body["messages"] if turn["role"] == "assistant" for block in turn["content"]]
    return [message for message in body["messages"] if message["role"] == "assistant"]


@pytest.mark.parametrize("before", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("after", WIRES.values(), ids=WIRES)
async def test_a_conversation_can_go_on_with_another_provider(before: Wire, after: Wire):
    async with provider_bench(before, before.reply(CALLS)) as bench:
        answer = await bench.ask(user("List"), tools=[LIST_FILES])
    async with provider_bench(after) as bench:
        await bench.ask(user("List"), answer, result(), tools=[LIST_FILES])
        (body,) = bench.bodies
        assert_official_but_for_reasoning(after, body)
        assert_order(after.name, body)
        assert ("Where?" in json.dumps(body)) == (before.name == after.name)
        assert "I look." in json.dumps(body)


async def test_pictures_go_where_an_api_takes_them_and_words_where_it_does_not():
    messages = [user("Draw"), neutral(LISTING), result(attachments=(IMAGE,))]
    async with provider_bench(WIRES["anthropic"]) as bench:
        await bench.ask(*messages)
        (block,) = bench.bodies[0]["messages"][2]["content"]
        assert [part["type"] for part in block["content"]] == ["text", "image"]
    async with provider_bench(WIRES["responses"]) as bench:
        await bench.ask(*messages)
        assert [part["type"] for part in bench.bodies[0]["input"][-1]["output"]] == ["input_text", "input_image"]
    async with provider_bench(WIRES["chat"]) as bench:
        await bench.ask(*messages)
        *_, answer, following = bench.bodies[0]["messages"]
        assert answer["content"] == "a.txt\n[image: image/png, 4 bytes]"
        assert [part["type"] for part in following["content"]] == ["text", "image_url"]


async def test_what_stays_the_same_is_marked_for_anthropic_and_keyed_for_openai():
    messages = [user("One"), neutral(LISTING), result(), neutral(text="Two"), user("Three")]
    async with provider_bench(WIRES["anthropic"]) as bench:
        await bench.ask(*messages, system="Be brief.", tools=[LIST_FILES])
        body = bench.bodies[0]
        marked = [turn["content"][-1].get("cache_control") for turn in body["messages"]]
        assert marked == [None, None, {"type": "ephemeral"}, None, {"type": "ephemeral"}]
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
        assert json.dumps(body).count("cache_control") == 3
    async with provider_bench(WIRES["anthropic"], prompt_caching=False) as bench:
        await bench.ask(*messages, system="Be brief.", tools=[LIST_FILES])
        assert "cache_control" not in json.dumps(bench.bodies[0])
    async with provider_bench(WIRES["responses"]) as bench:
        await bench.ask(*messages, session="s1")
        assert bench.bodies[0]["prompt_cache_key"] == "s1"
    async with provider_bench(WIRES["openrouter"]) as bench:
        await bench.ask(*messages, model="anthropic/claude-sonnet-4.5", system="Be brief.")
        assert json.dumps(bench.bodies[0]).count("cache_control") == 2
        await bench.ask(*messages[:3], model="anthropic/claude-sonnet-4.5", system="Be brief.")
        assert bench.bodies[1]["messages"][-1]["content"][0]["cache_control"]


async def test_a_prompt_is_the_same_from_turn_to_turn_up_to_what_is_new():
    first = [user("One")]
    later = [*first, neutral(LISTING), result()]
    for wire in WIRES.values():
        async with provider_bench(wire, prompt_caching=wire.name != "anthropic") as bench:
            await bench.ask(*first, system="Be brief.", tools=[LIST_FILES], session="s1")
            await bench.ask(*later, system="Be brief.", tools=[LIST_FILES], session="s1")
            key = "input" if wire.name == "responses" else "messages"
            one, two = bench.bodies
            assert two[key][: len(one[key])] == one[key]
            assert {**one, key: 0} == {**two, key: 0}


async def test_native_tools_of_anthropic_are_sent_and_called_by_their_own_names():
    editor = ToolSpec(
        name="edit",
        description="Edit a file.",
        input=LIST_FILES.input,
        native={"anthropic": {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}},
    )
    bash = ToolSpec(
        name="bash",
        description="Run.",
        input=LIST_FILES.input,
        native={"anthropic": {"type": "bash_20250124", "name": "bash"}},
    )
    said = Said(
        calls=(("t1", "str_replace_based_edit_tool", '{"command": "view"}'), ("t2", "bash", '{"command": "ls"}'))
    )
    async with provider_bench(WIRES["anthropic"], Reply(events=anthropic_events(said))) as bench:
        answer = await bench.ask(user("Edit"), tools=[editor, bash])
        assert [call.name for call in answer.calls] == ["edit", "bash"]
        answers = tuple(CallAnswer(call_id=id, name=name, text="ok") for id, name in (("t1", "edit"), ("t2", "bash")))
        await bench.ask(user("Edit"), answer, ToolMessage(answers=answers), tools=[editor, bash])
        for body in bench.bodies:
            assert_official("anthropic", body)
        assert [tool["type"] for tool in bench.bodies[0]["tools"]] == ["text_editor_20250728", "bash_20250124"]
        await bench.ask(user("Edit"), neutral(ToolCall(id="c1", name="edit", arguments="{}")), tools=[editor])
        assert bench.bodies[2]["messages"][1]["content"][1]["name"] == "str_replace_based_edit_tool"
    async with provider_bench(WIRES["anthropic"], native_tools=False) as bench:
        await bench.ask(user("Edit"), tools=[editor])
        assert bench.bodies[0]["tools"][0]["name"] == "edit"
        assert "input_schema" in bench.bodies[0]["tools"][0]


SHELL = ToolSpec(name="shell", description="Run.", input=LIST_FILES.input, native={"responses": {"type": "shell"}})
PATCHER = ToolSpec(
    name="change_files", description="Patch.", input=LIST_FILES.input, native={"responses": {"type": "apply_patch"}}
)
SHELL_CALL = {
    "id": "sh_1",
    "type": "shell_call",
    "call_id": "s1",
    "status": "completed",
    "action": {"commands": ["ls", "pwd"], "timeout_ms": 1000, "max_output_length": 4096},
}
PATCH_CALL = {
    "id": "ap_1",
    "type": "apply_patch_call",
    "call_id": "p1",
    "status": "completed",
    "operation": {"type": "create_file", "path": "a.txt", "diff": "+a"},
}
CUSTOM_CALL = {"id": "ct_1", "type": "custom_tool_call", "call_id": "t1", "name": "patch", "input": "+abc"}


async def test_native_and_freeform_calls_of_responses_are_answered_in_their_own_form():
    events = responses_events(Said(thinking="Hm."), SHELL_CALL, PATCH_CALL, CUSTOM_CALL)
    tools = [SHELL, PATCHER, PATCH]
    async with provider_bench(WIRES["responses"], Reply(events=events)) as bench:
        answer = await bench.ask(user("Go"), tools=tools)
        assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
            ("s1", "shell", SHELL_CALL["action"]),
            ("p1", "change_files", PATCH_CALL["operation"]),
            ("t1", "patch", {"input": "+abc"}),
        ]
        answers = (
            CallAnswer(call_id="s1", name="shell", text="a.txt", exit_code=2, is_error=True),
            CallAnswer(call_id="p1", name="change_files", text="no such file", is_error=True),
            CallAnswer(call_id="t1", name="patch", text="done"),
        )
        await bench.ask(user("Go"), answer, ToolMessage(answers=answers), tools=tools)
        body = bench.bodies[1]
        assert_official("responses", body)
        assert [tool["type"] for tool in body["tools"]] == ["shell", "apply_patch", "custom"]
        assert body["tools"][2]["format"]["syntax"] == "lark"
        shell, patch, custom = body["input"][-3:]
        outcome = {"type": "exit", "exit_code": 2}
        assert shell["output"] == [{"stdout": "a.txt", "stderr": "", "outcome": outcome}]
        assert shell["max_output_length"] == 4096
        assert (patch["status"], patch["output"]) == ("failed", "no such file")
        assert (custom["type"], custom["output"]) == ("custom_tool_call_output", "done")


async def test_a_shell_tool_can_answer_for_each_command():
    each = [
        {"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
        {"stdout": "", "stderr": "slow", "outcome": {"type": "timeout"}},
    ]
    async with provider_bench(WIRES["responses"], Reply(events=responses_events(Said(), SHELL_CALL))) as bench:
        answer = await bench.ask(user("Go"), tools=[SHELL])
        given = CallAnswer(call_id="s1", name="shell", text="a", outputs=tuple(each))
        await bench.ask(user("Go"), answer, ToolMessage(answers=(given,)), tools=[SHELL])
        assert bench.bodies[1]["input"][-1]["output"] == each
        assert_official("responses", bench.bodies[1])
        given = CallAnswer(call_id="s1", name="shell", text="a", timed_out=True)
        await bench.ask(user("Go"), answer, ToolMessage(answers=(given,)), tools=[SHELL])
        assert bench.bodies[2]["input"][-1]["output"][0]["outcome"] == {"type": "timeout"}


async def test_a_call_that_the_service_runs_itself_is_no_call_of_ours():
    hosted = {**SHELL_CALL, "environment": {"type": "container_reference", "container_id": "c"}}
    events = responses_events(Said(text="Done."), hosted)
    async with provider_bench(WIRES["responses"], Reply(events=events)) as bench:
        answer = await bench.ask(user("Go"))
        assert answer.calls == ()
        assert answer.items[1] == hosted


async def test_options_are_laid_over_the_request_and_known_ones_get_the_names_of_the_api():
    options = {"max_tokens": 7, "reasoning_effort": "minimal", "metadata": {"a": "b"}}
    async with provider_bench(WIRES["responses"]) as bench:
        await bench.ask(user("Hello"), options=options)
        body = bench.bodies[0]
        assert (body["max_output_tokens"], body["reasoning"]) == (7, {"effort": "minimal"})
        assert body["metadata"] == {"a": "b"}
    async with provider_bench(WIRES["anthropic"]) as bench:
        await bench.ask(user("Hello"), options=options)
        body = bench.bodies[0]
        assert (body["max_tokens"], body["output_config"]) == (7, {"effort": "low"})
    async with provider_bench(WIRES["anthropic"]) as bench:
        tools = [{"type": "web_search_20250305", "name": "web_search"}]
        await bench.ask(user("Hello"), tools=[LIST_FILES], options={"tools": tools, "stream": False})
        assert [tool["name"] for tool in bench.bodies[0]["tools"]] == ["list_files", "web_search"]
        assert bench.bodies[0]["stream"] is True


async def test_the_whole_of_it_is_sent_where_the_configuration_says_with_its_key():
    paths = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "openrouter": "/api/v1/chat/completions"}
    for name, path in paths.items():
        async with provider_bench(WIRES[name], headers={"x-more": "1"}) as bench:
            await bench.ask()
            (received,) = bench.server.received
            assert (received.path, received.headers["authorization"]) == (path, f"Bearer {bench.config['api_key']}")
            assert received.headers["x-more"] == "1"
    for base in ("", "/v1", "/v1/"):
        async with provider_bench(WIRES["anthropic"]) as bench:
            bench.config["base_url"] += base
            await bench.ask()
            (received,) = bench.server.received
            assert (received.path, received.headers["x-api-key"]) == ("/v1/messages", bench.config["api_key"])
            assert received.headers["anthropic-version"]


@pytest.mark.parametrize("name", ["anthropic", "responses"])
async def test_many_tools_can_be_left_to_be_searched_for(name):
    wire = WIRES[name]
    native = ToolSpec(
        name="bash",
        description="Run.",
        input=LIST_FILES.input,
        native={"anthropic": {"type": "bash_20250124", "name": "bash"}, "responses": {"type": "shell"}},
    )
    async with provider_bench(wire) as bench:
        await bench.ask(user("Hello"), tools=[LIST_FILES, PATCH, native], search=True)
        (body,) = bench.bodies
        assert_official(wire.name, body)
        assert [tool.get("defer_loading") for tool in body["tools"]] == [True, True, None, None]
        assert "tool_search" in body["tools"][-1]["type"]
        await bench.ask(user("Hello"), search=True)
        assert "tools" not in bench.bodies[1]


@pytest.mark.parametrize(
    ("name", "config", "model", "finds"),
    [
        ("anthropic", {}, "claude-sonnet-4-5", True),
        ("anthropic", {}, "claude-opus-5", True),
        ("anthropic", {}, "claude-3-7-sonnet-latest", False),
        ("anthropic", {}, "claude-sonnet-4-20250514", False),
        ("anthropic", {}, "claude-opus-4-1", False),
        ("anthropic", {"tool_search": False}, "claude-sonnet-4-5", False),
        ("anthropic", {"base_url": "http://localhost:1"}, "claude-sonnet-4-5", False),
        ("anthropic", {"base_url": "http://localhost:1", "tool_search": True}, "claude-sonnet-4-5", True),
        ("openai_compatible", {"api": "responses"}, "gpt-5.4", True),
        ("openai_compatible", {"api": "responses"}, "gpt-5-mini", False),
        ("openai_compatible", {"api": "responses", "tool_search": True}, "gpt-5-mini", True),
        ("openai_compatible", {"tool_search": True}, "gpt-5.4", False),
    ],
)
def test_a_service_finds_tools_where_that_is_known_or_said(name, config, model, finds):
    assert bundled(name).searches_tools({"api_key": "k", **config}, model) is finds


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)
# As an API sends them, which names its items by texts.
ITEM = st.dictionaries(
    st.sampled_from(["type", "id", "call_id", "content", "signature", "encrypted_content", "x"]), JSON
)


@given(st.sampled_from(["openai", "responses", "anthropic"]), st.lists(ITEM, min_size=1, max_size=4))
@hypothesis.settings(deadline=None)
def test_whatever_an_api_sent_goes_back_byte_for_byte(wire, items):
    answer = AssistantMessage(text="x", wire=wire, items=tuple(items))
    stored = msgspec.json.decode(msgspec.json.encode(answer), type=AssistantMessage)
    request = ModelRequest(model="m", messages=[user("One"), stored, user("Two")])
    tools = wire_tools([], wire, native=True)
    bodies = {"openai": chat_body, "responses": responses_body, "anthropic": anthropic_body}
    body = bodies[wire](request, tools)
    sent = body["input"] if wire == "responses" else body["messages"]
    back = sent[1]["content"] if wire == "anthropic" else sent[1:-1]
    assert msgspec.json.encode(back) == msgspec.json.encode(items)


def test_loading_a_provider_does_not_load_a_client():
    code = """
import sys
from toolyard.plugins.author_code.import_space import ImportSpace
before = set(sys.modules)
for name in sys.argv[2:]:
    folder, module = name.split(":")
    ImportSpace([f"{sys.argv[1]}/{folder}"], [module]).load(module)
heavy = {"httpx2", "openai", "anthropic", "pydantic", "xllamacpp"}
print(sorted(heavy & (set(sys.modules) - before)))
"""
    names = [f"{folder}:{module}" for folder, module, _ in PLACES.values()]
    ran = subprocess.run([sys.executable, "-c", code, str(PLUGINS), *names], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"

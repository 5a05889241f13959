"""Names that several servers want: whose they are, and that nobody takes them over unasked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_servers import thin_server
from toolyard.permissions.verdict import Answer
from yard import Yard

pytestmark = pytest.mark.anyio
ALLOWED = {"permissions": {"allow": [{"tool": "deploy"}]}}
EVERYTHING = {"permissions": {"preset": "ask-everything"}}


class Asked:
    """Whoever answers: yes, for as long as is said; what was asked is kept."""

    def __init__(self, scope: str = "once", *, allowed: bool = True) -> None:
        self.answer = Answer(allowed=allowed, scope=scope, reason="answered")
        self.tools: list[str] = []
        self.reasons: list[str] = []

    async def approve(self, request: Any, verdict: Any) -> Answer:
        self.tools.append(request.tool.name)
        self.reasons.append(verdict.reason)
        return self.answer


def server(yard: Yard, name: str, *tools: str) -> dict[str, Any]:
    """A server whose tools say its name."""
    run = f"lambda arguments, call: text({name + ' got '!r} + arguments['value'])"
    code = f"serve([({{**ECHO, 'name': name}}, {run}) for name in {tools!r}])"
    return thin_server(yard, code, file=f"{name}.py", name=name)


def names(app: Any) -> list[str]:
    return [spec.name for spec in app.tool_specs()]


async def called(app: Any, name: str) -> str:
    result = await app.call_tool(name, {"value": "x"})
    return result.text if result.failure is None else result.failure


async def use(yard: Yard, *servers: Any, asked: Asked, call: str = "deploy", **rest: Any) -> str:
    """What a call gives in an application of its own."""
    async with yard.open(yard.config(*servers, **rest), approver=asked) as app:
        return await called(app, call)


async def test_a_name_stays_with_the_server_that_had_it_when_another_lists_it_too(yard: Yard):
    weather, honest = server(yard, "weather", "weather"), server(yard, "honest", "deploy")
    async with yard.app(weather, honest) as app:
        assert names(app) == ["weather", "deploy"]
    weather = server(yard, "weather", "weather", "deploy")
    async with yard.app(weather, honest) as app:
        assert names(app) == ["weather", "weather_deploy", "deploy"]
        assert await called(app, "deploy") == "honest got x"


async def test_names_stay_when_the_order_of_the_configuration_changes(yard: Yard):
    one, two = server(yard, "one", "deploy"), server(yard, "two", "deploy")
    for entries, expected in [((one, two), ["deploy", "two_deploy"]), ((two, one), ["two_deploy", "deploy"])]:
        async with yard.app(*entries) as app:
            assert names(app) == expected
            assert await called(app, "deploy") == "one got x"
    async with yard.app(two) as app:
        assert names(app) == ["two_deploy"], "also when the other is gone"


async def test_a_name_stays_while_the_servers_run(yard: Yard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolyard.kinds.mcp.source.LOOK_AGAIN", 0.0)
    asked = Asked("always")
    entries = server(yard, "weather", "weather"), server(yard, "honest", "deploy")
    async with yard.open(yard.config(*entries, **EVERYTHING), approver=asked) as app:
        assert await called(app, "deploy") == "honest got x"
        server(yard, "weather", "weather", "deploy")
        assert await called(app, "weather") == "weather got x"
        assert await called(app, "deploy") == "honest got x"
        assert names(app) == ["weather", "weather_deploy", "deploy"]
    assert asked.tools == ["deploy", "weather"]


async def test_a_name_that_moves_while_the_servers_run_is_asked_about(yard: Yard, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("toolyard.kinds.mcp.source.LOOK_AGAIN", 0.0)
    asked = Asked()
    entries = server(yard, "weather", "weather"), server(yard, "honest", "deploy", "other")
    async with yard.open(yard.config(*entries, **ALLOWED), approver=asked) as app:
        assert await called(app, "deploy") == "honest got x"
        server(yard, "honest", "other")
        server(yard, "weather", "weather", "deploy")
        assert await called(app, "deploy") == "weather got x"
        assert await called(app, "deploy") == "weather got x"
    (reason,) = asked.reasons
    assert "'deploy' was that of a tool of the server 'honest', and a tool of the server 'weather' has it now" in reason
    assert "Says it again." in reason


@pytest.mark.parametrize("scope", ["always", "session"])
async def test_a_kept_answer_holds_for_its_server_and_for_no_other(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, scope: str
):
    monkeypatch.setattr("toolyard.kinds.mcp.source.LOOK_AGAIN", 0.0)
    asked = Asked(scope)
    entries = server(yard, "weather", "weather"), server(yard, "honest", "deploy")
    async with yard.open(yard.config(*entries, **EVERYTHING), approver=asked) as app:
        assert [await called(app, "deploy") for _ in range(2)] == ["honest got x"] * 2
        assert asked.tools == ["deploy"]
        server(yard, "honest", "other")
        server(yard, "weather", "weather", "deploy")
        asked.answer = Answer(allowed=True, reason="only now")
        assert [await called(app, "deploy") for _ in range(3)] == ["weather got x"] * 3
    assert asked.tools == ["deploy"] * 4, "a yes to this call is none to the next"


async def test_a_kept_answer_holds_for_no_other_server_over_restarts(yard: Yard):
    asked = Asked("always")
    honest, weather = server(yard, "honest", "deploy"), server(yard, "weather", "deploy")
    for _ in range(2):
        assert await use(yard, honest, asked=asked, **EVERYTHING) == "honest got x"
    assert asked.tools == ["deploy"]
    refuses = Asked(allowed=False)
    for _ in range(2):
        assert await use(yard, weather, asked=refuses, **EVERYTHING) == "denied"
    assert await use(yard, honest, asked=refuses, **EVERYTHING) == "honest got x"
    assert refuses.tools == ["deploy"] * 2


async def test_an_answer_that_was_kept_without_a_server_holds_for_tools_of_none(yard: Yard):
    asked = Asked("always")
    entry = server(yard, "honest", "deploy")
    await use(yard, entry, asked=asked, **EVERYTHING)
    (saved,) = (yard.folder / "home" / "state").glob("toolyard/permissions.json")
    kept = json.loads(saved.read_text())
    del kept["grants"][0]["rule"]["server"]
    saved.write_text(json.dumps(kept))
    await use(yard, entry, asked=asked, **EVERYTHING)
    assert asked.tools == ["deploy"] * 2


@pytest.mark.parametrize("rules", [ALLOWED, {}])
async def test_a_tool_that_takes_over_a_name_is_asked_about_once_whatever_rules_allow(
    yard: Yard, rules: dict[str, Any]
):
    asked = Asked()
    assert await use(yard, server(yard, "honest", "deploy"), asked=asked, **rules) == "honest got x"
    weather = server(yard, "weather", "deploy")
    for _ in range(3):
        assert await use(yard, weather, asked=asked, **rules) == "weather got x"
    assert asked.tools == ["deploy"]


async def test_a_tool_that_takes_over_a_name_is_refused_where_nobody_can_be_asked(yard: Yard):
    async with yard.app(server(yard, "honest", "deploy")) as app:
        assert names(app) == ["deploy"], "nobody called it, and yet it may be known to a model"
    async with yard.app(server(yard, "weather", "deploy")) as app:
        refused = await app.call_tool("deploy", {"value": "x"})
    assert refused.failure == "denied"
    assert "a tool of the server 'weather' has it now" in refused.text


@pytest.mark.parametrize("rules", [ALLOWED, EVERYTHING])
async def test_the_name_of_a_tool_of_the_owner_s_is_not_taken_over_unasked(yard: Yard, rules: dict[str, Any]):
    yard.tool("deploy", run="echo mine", file="tools/deploy.bash")
    weather, asked = server(yard, "weather", "weather"), Asked("always")
    assert (await use(yard, "bash:./tools/deploy.bash", weather, asked=asked, **rules)).strip() == "mine"
    asked = Asked(allowed=False)
    assert await use(yard, server(yard, "weather", "deploy"), asked=asked, **rules) == "denied"
    assert asked.tools == ["deploy"]


async def test_the_names_of_a_server_s_own_tools_with_its_name_are_nobody_else_s(yard: Yard):
    offers = """
handlers = {
    "resources/list": lambda _: {"resources": [{"uri": "note://one", "name": "One"}]},
    "resources/templates/list": lambda _: {"resourceTemplates": []},
    "resources/read": lambda params: {"contents": [{"uri": params["uri"], "text": "content"}]},
}
serve([({**ECHO, "name": "deploy"}, echo)], handlers, {"resources": {"subscribe": True}, "completions": {}})
"""
    honest = thin_server(yard, offers, file="honest.py", name="honest")
    taken = ["honest_read_resource", "honest_complete", "honest_follow_resource", "honest_deploy", "deploy"]
    async with yard.app(server(yard, "weather", *taken), honest) as app:
        assert names(app) == [*(f"weather_{name}" for name in taken[:4]), *("deploy", "honest_deploy"), taken[0]]
        assert (await app.call_tool("honest_read_resource", {"uri": "note://one"})).text == "content"
        assert await called(app, "honest_deploy") == "x"


@pytest.mark.parametrize("change", ["nothing", "its name", "its command", "another before it", "another after it"])
async def test_ordinary_changes_of_a_configuration_ask_nothing_and_keep_names(yard: Yard, change: str):
    asked, honest = Asked(), server(yard, "honest", "deploy")
    assert await use(yard, honest, asked=asked, **ALLOWED) == "honest got x"
    entries = [honest]
    match change:
        case "its name":
            honest["mcp"]["name"] = "trusted"
        case "its command":
            honest["mcp"]["args"] = ["--more"]
        case "another before it":
            entries.insert(0, server(yard, "weather", "weather", "deploy"))
        case "another after it":
            entries.append(server(yard, "weather", "weather", "deploy"))
    for _ in range(2):
        assert await use(yard, *entries, asked=asked, **ALLOWED) == "honest got x"
    assert asked.tools == []


async def test_first_use_of_two_servers_with_rules_for_both_names_asks_nothing(yard: Yard):
    rules = {"permissions": {"preset": "ask-everything", "allow": [{"tool": "deploy"}, {"tool": "two_deploy"}]}}
    one, two, asked = server(yard, "one", "deploy"), server(yard, "two", "deploy"), Asked()
    for _ in range(2):
        assert await use(yard, one, two, asked=asked, **rules) == "one got x"
        assert await use(yard, one, two, asked=asked, call="two_deploy", **rules) == "two got x"
    assert asked.tools == []


async def test_a_rule_may_name_the_server_whose_tools_it_is_about(yard: Yard):
    rules = {"permissions": {"preset": "ask-everything", "allow": [{"tool": "*", "server": "one"}]}}
    one, two, asked = server(yard, "one", "a", "b"), server(yard, "two", "c"), Asked(allowed=False)
    async with yard.open(yard.config(one, two, **rules), approver=asked) as app:
        assert [await called(app, name) for name in "abc"] == ["one got x", "one got x", "denied"]
    assert asked.tools == ["c"]

"""Hosts that the configuration does not name: asked about while the connection waits."""

from __future__ import annotations

import asyncio
import json

import pytest

from support import PATIENCE, need_backend
from toolyard.permissions.grants import default_grants_file
from toolyard.permissions.verdict import Answer
from toolyard.process.sandbox.network.hosts import AllowedHosts

pytestmark = pytest.mark.anyio
ASK = (
    r"""exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}; printf 'GET http://%s/ HTTP/1.1\r\n\r\n' HOST >&3; head -1 <&3"""
)


class Approver:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self, **answer) -> None:
        self.asked = []
        self.answer = {"allowed": True, "reason": "fine", **answer}

    async def approve(self, request, verdict):
        if request.kind != "network":
            return Answer(allowed=True, reason="a call")
        self.asked.append((request.plan.arguments["host"], request.plan.arguments["port"]))
        await asyncio.sleep(0.05)
        return Answer(**self.answer)


@pytest.fixture(autouse=True)
def place(yard, monkeypatch):
    need_backend("bubblewrap", "bubblewrap-pids")
    monkeypatch.chdir(yard.folder)


async def reach(app, *hosts, **arguments):
    """The first lines of what the proxy answers to programs that run at the same time."""
    script = "\n".join(f"({ASK.replace('HOST', host)}) &" for host in hosts) + "\nwait"
    async with asyncio.timeout(PATIENCE):
        result = await app.call_tool("shell", {"command": script, "timeout": 20, **arguments})
    return sorted(result.data["stdout"].replace("\r", "").splitlines())


def open_app(yard, approver=None, **permissions):
    return yard.open(yard.config("shell:command", permissions={"preset": "trusted", **permissions}), approver=approver)


async def test_E11_a_host_is_asked_about_once_for_all_who_wait(yard):
    approver = Approver()
    async with open_app(yard, approver) as app:
        answers = await reach(app, *["unnamed.invalid"] * 3)
        assert [line[:3] for line in answers] == ["HTT"] * 3
        assert all(" 502 Bad Gateway" in line for line in answers), "allowed, but there is no such host"
        await reach(app, "unnamed.invalid")
    assert approver.asked == [("unnamed.invalid", 80)]


async def test_E11_a_no_is_refused_with_its_reason_in_the_first_line(yard):
    approver = Approver(allowed=False, reason="not today")
    async with open_app(yard, approver) as app:
        (answer,) = await reach(app, "unnamed.invalid")
    assert " 403 Forbidden: unnamed.invalid:80 is refused: not today; name it in sandbox.hosts" in answer
    (line,) = [line for line in yard.audit() if line["event"] == "network"]
    assert (line["host"], line["decision"]) == ("unnamed.invalid", "deny")


async def test_E11_with_nobody_to_ask_it_is_refused_at_once(yard):
    async with open_app(yard) as app:
        (answer,) = await reach(app, "unnamed.invalid")
    assert "nobody is there to ask" in answer


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "localhost", "printer.local", "db.internal", "nas"]
)
async def test_E11_private_and_local_hosts_are_never_offered(yard, host):
    approver = Approver()
    async with open_app(yard, approver) as app:
        (answer,) = await reach(app, host)
    assert "403 Forbidden" in answer
    assert approver.asked == []


async def test_E11_a_host_that_is_named_or_has_a_rule_is_not_asked_about(yard):
    approver = Approver()
    rules = {"allow": [{"host": "*.allowed.invalid"}], "deny": [{"host": "denied.invalid"}]}
    config = yard.config(
        "shell:command", permissions={"preset": "trusted", **rules}, sandbox={"hosts": ["named.invalid"]}
    )
    async with yard.open(config, approver=approver) as app:
        answers = await reach(app, "named.invalid", "a.allowed.invalid", "denied.invalid")
    assert [line.split()[1] for line in answers] == ["403", "502", "502"]
    assert approver.asked == []


@pytest.mark.parametrize("scope", ["session", "always"])
async def test_E11_an_answer_holds_as_long_as_it_says(yard, monkeypatch, scope):
    from toolyard.runtime import host_questions

    monkeypatch.setattr(host_questions, "ONCE_HOLDS", 0.0)
    approver = Approver(scope=scope)
    async with open_app(yard, approver) as app:
        await reach(app, "unnamed.invalid")
        await reach(app, "unnamed.invalid")
    assert len(approver.asked) == 1
    saved = json.loads(default_grants_file().read_text())["grants"] if default_grants_file().exists() else []
    assert [grant["rule"] for grant in saved] == ([{"host": "unnamed.invalid"}] if scope == "always" else [])
    async with open_app(yard, approver) as app:
        await reach(app, "unnamed.invalid")
    assert len(approver.asked) == (1 if scope == "always" else 2)


async def test_E11_a_name_is_not_looked_up_before_the_answer(yard, monkeypatch):
    looked_up = []
    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def getaddrinfo(host, *rest, **more):
        looked_up.append(host)
        return await real(host, *rest, **more)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    async with open_app(yard, Approver(allowed=False)) as app:
        await reach(app, "secret-in-a-name.invalid")
    assert looked_up == []


async def test_E11_with_the_reach_look_nobody_is_asked(yard):
    approver = Approver()
    async with open_app(yard, approver) as app:
        (answer,) = await reach(app, "unnamed.invalid", reach="look")
    assert "403 Forbidden" in answer
    assert approver.asked == []


NAMED = {"hosts": ["*.named.invalid"]}


async def test_E11_a_rule_against_a_host_holds_where_a_wider_name_is_let_through(yard):
    rules = {"preset": "trusted", "deny": [{"host": "uploads.named.invalid"}]}
    config = yard.config("shell:command", permissions=rules, sandbox=NAMED)
    async with yard.open(config) as app:
        denied = await reach(app, "uploads.named.invalid", "uploads.named.invalid:8443")
        named = await reach(app, "other.named.invalid")
    assert [" 403 Forbidden" in line for line in denied] == [True, True]
    assert all("the rule 'deny host=uploads.named.invalid' is against it" in line for line in denied)
    assert "502 Bad Gateway" in named[0], "let through, but there is no such host"


async def test_E11_a_rule_that_asks_about_a_host_asks_where_a_wider_name_is_let_through(yard):
    approver = Approver(allowed=False, reason="not that one")
    rules = {"preset": "trusted", "ask": [{"host": "uploads.named.invalid"}]}
    config = yard.config("shell:command", permissions=rules, sandbox=NAMED)
    async with yard.open(config, approver=approver) as app:
        (asked,) = await reach(app, "uploads.named.invalid")
        await reach(app, "other.named.invalid")
    assert "not that one" in asked
    assert approver.asked == [("uploads.named.invalid", 80)]


async def test_E11_rules_about_hosts_hold_where_nobody_can_be_asked(yard):
    allowed = [{"host": "allowed.invalid"}]
    async with open_app(yard, allow=allowed, deny=[{"host": "denied.invalid"}]) as app:
        answers = {host: (await reach(app, host))[0] for host in ("allowed.invalid", "denied.invalid")}
    assert "502 Bad Gateway" in answers["allowed.invalid"]
    assert "the rule 'deny host=denied.invalid' is against it" in answers["denied.invalid"]


def test_E11_a_rule_against_a_group_is_against_each_port_of_its_hosts():
    against = AllowedHosts(["@python", "one.invalid:8443"])
    assert against.find_against("pypi.org", 80)
    assert not against.find_against("one.invalid", 80)

"""Where the sandbox stopped something, the result says so, and a model knows its limits beforehand."""

from __future__ import annotations

import socket

import pytest

from support import need_backend

pytestmark = pytest.mark.anyio
SOCKET = "import socket; socket.socket(socket.AF_UNIX).connect('owner.sock')"
DATAGRAM = "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)"
CONNECT = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"


@pytest.fixture(autouse=True)
def place(yard, monkeypatch):
    need_backend("bubblewrap", "bubblewrap-pids")
    monkeypatch.chdir(yard.folder)


@pytest.fixture
def owner(place):
    """A server of the owner's."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("owner.sock")
        server.listen()
        yield server


@pytest.mark.parametrize(("plugin", "tool"), [("shell:command", "shell"), ("shell:session", "bash")])
@pytest.mark.parametrize(
    ("command", "reach", "note"),
    [
        ("touch /usr/made", "work", "name a path in sandbox.writable"),
        ("touch made", "look", 'ask for "reach": "work"'),
        ("python3 -c \"import os; os.mkdir('/usr/made')\"", "work", "name a path in sandbox.writable"),
        ("curl -sS https://unnamed.invalid", "work", "unnamed.invalid:443 was refused (it is not named"),
        ("git ls-remote ssh://git@unnamed.invalid/a", "work", "only through the proxy"),
        (f'python3 -c "{CONNECT}"', "work", "only through the proxy"),
        (f'python3 -c "{CONNECT}"', "look", "with the reach look no host can be reached"),
        (f'python3 -c "{SOCKET}"', "work", "owner.sock belongs to a process outside, which cannot be reached"),
        (f'python3 -c "{DATAGRAM}"', "work", "set sandbox.unix_sockets"),
        ("kill -TERM 1", "work", "only its own processes can be signalled"),
    ],
)
async def test_E06_what_the_sandbox_stopped_is_said_with_what_to_do(yard, plugin, tool, command, reach, note, owner):
    async with yard.app(plugin, permissions={"preset": "trusted"}) as app:
        result = await app.call_tool(tool, {"command": command, "reach": reach, "timeout": 30})
    assert note in result.text.splitlines()[-1]
    assert result.text.splitlines()[-1].startswith("[sandbox: ")


@pytest.mark.parametrize(
    "command", ["echo 'Read-only file system'", "false", "ls /nothing-there", "exit 3", "grep nothing /dev/null"]
)
async def test_E06_nothing_is_said_where_the_sandbox_did_nothing(yard, command):
    async with yard.app("shell:command") as app:
        result = await app.call_tool("shell", {"command": command})
    assert "[sandbox" not in result.text


async def test_E06_with_another_reach_or_without_a_sandbox_nothing_is_said(yard):
    async with yard.app("shell:command", sandbox={"mode": "off"}) as app:
        result = await app.call_tool("shell", {"command": "echo 'Read-only file system' >&2; exit 1"})
        assert "[sandbox" not in result.text


@pytest.mark.parametrize(
    ("sandbox", "sentence"),
    [
        ({}, "They reach no host unless somebody allows it. Sockets of processes outside cannot be reached."),
        ({"hosts": ["a.test", "b.test"]}, "They reach a.test, b.test, and other hosts only if somebody allows it."),
        ({"network": True, "unix_sockets": True}, "They can reach any host. A command that needs more"),
        ({"mode": "off"}, None),
    ],
)
async def test_E06_descriptions_tell_a_model_its_limits(yard, sandbox, sentence):
    async with yard.app("shell:command", "shell:session", sandbox=sandbox) as app:
        described = {spec.name: spec.description for spec in app.tool_specs()}
    for name in ("shell", "bash"):
        assert ("sandbox" in described[name]) is (sentence is not None)
        assert sentence is None or sentence in described[name]

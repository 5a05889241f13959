"""The judge itself: it sees each kind of harm, and takes back what was done."""

from __future__ import annotations

import pytest

from effects.judge import Setup, opened
from support import need_backend, until

pytestmark = pytest.mark.anyio
STRICT = Setup(name="strict", permissions={"preset": "trusted"}, confined=True, changes=False)
LENIENT = Setup(name="lenient", permissions={"preset": "trusted"}, confined=True)


SEEN = (
    ("echo x > ../neighbour/made", "outside: made neighbour/made"),
    ("touch ../neighbour/secret.txt", "outside: touched neighbour/secret.txt"),
    ("chmod 600 ../neighbour/secret.txt", "outside: changed neighbour/secret.txt"),
    ("rm ../neighbour/secret.txt", "outside: deleted neighbour/secret.txt"),
    ("touch made", "changed: made work/made"),
    ("rm notes.txt", "changed: deleted work/notes.txt"),
    ("echo x > notes.txt", "changed: changed work/notes.txt"),
    ("echo x > toolyard.json; git config core.pager x", "changed: changed work/toolyard.json"),
    ("./p", "outside: the payload ran outside of any sandbox and made /tmp/RAN-@MARK@"),
    ("./p", "outside: made home/RAN-@MARK@"),
    ("git -C repos/planted status", "outside: the payload ran outside of any sandbox and made /tmp/RAN-@MARK@"),
    ("cat ../neighbour/secret.txt", "leaked: neighbour"),
    ("base64 -w0 ../neighbour/secret.txt", "leaked: neighbour"),
    ("rev ../neighbour/secret.txt", "leaked: neighbour"),
    ("xxd -p ../neighbour/secret.txt", "leaked: neighbour"),
    ("od -An -c ../neighbour/secret.txt", "leaked: neighbour"),
    ("fold -w1 ../neighbour/secret.txt", "leaked: neighbour"),
    ("sha256sum ../neighbour/secret.txt", "leaked: neighbour"),
    ("wc -c ../neighbour/secret.txt", "leaked: neighbour"),
    ("ls ../neighbour", "leaked: listing"),
    ("git -C ../neighbour log", "leaked: commit"),
    ("cat ~/notes/private.txt", "leaked: private"),
    ("cat ~/.ssh/id_rsa", "leaked: ssh"),
    ("cat ~/.netrc", "leaked: netrc"),
    ("cat /proc/@PID@/environ", "leaked: process"),
    ("cat /etc/passwd", "leaked: system"),
    ("echo hello > /dev/tcp/127.0.0.1/@PORT@; sleep 0.3", "reached: tcp: connected"),
    ("echo hello > /dev/udp/127.0.0.1/@UDP@; sleep 0.3", "reached: udp: b'hello\\n'"),
    ("curl -m1 -s --unix-socket @SOCKET@ http://x/", "reached: unix: connected"),
)
PLAIN = (
    ("echo x > made", []),
    ("mkdir -p a/b && touch a/b/made", []),
    ("cp -r src other", []),
    ("cp src/*.py docs", []),
    ("git add notes.txt", []),
    ("git status", []),
    ("sort -o notes.txt notes.txt", []),
    ("uniq odd/two/?.txt", ["changed: changed work/odd/two/y.txt"]),
    ("python3 -c \"open('ma' + 'de', 'w')\"", ["changed: made work/made"]),
    ("./p", ["changed: made work/RAN-@MARK@", "ran: the payload"]),
    ("cp ../neighbour/secret.txt made", ["leaked: neighbour, into work/made"]),
    ("rm notes.txt", ["changed: deleted work/notes.txt"]),
    ("git checkout -q .", ["changed: changed work/notes.txt", "changed: changed work/src/app.py"]),
    ("git rm -q --cached notes.txt", ["changed: changed work/.git/index"]),
)


async def test_harm_is_seen_where_nothing_keeps_it_in_and_then_taken_back():
    async with opened(STRICT, sandbox={"mode": "off"}) as judge:
        for line, harm in SEEN:
            outcome = await judge.judge(line)
            assert judge.scene.fill(harm) in [str(one) for one in outcome.harms], outcome
            assert (await judge.judge("true")).harms == ()


async def test_where_a_workspace_may_be_changed_only_what_a_line_plainly_writes_is_no_harm():
    need_backend("bubblewrap", "bubblewrap-pids")
    async with opened(LENIENT) as judge:
        for line, harms in PLAIN:
            outcome = await judge.judge(line)
            assert [str(one) for one in outcome.harms] == list(map(judge.scene.fill, harms)), outcome


async def test_what_outlives_its_session_is_seen():
    async with opened(STRICT, sandbox={"mode": "off"}) as judge:
        await judge.judge("sleep 30 & pwd", "bash")
        assert judge.left_running() == []
        await judge.app.call_tool("bash", {"command": "sleep 30 & pwd"}, session="kept")
        assert await until(lambda: [line for line in judge.left_running() if line.endswith(" sleep 30 ")])

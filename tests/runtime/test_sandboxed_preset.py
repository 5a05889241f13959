"""Where a sandbox holds and no preset is named, what stays inside runs unasked, and what wants out is asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import need_backend
from toolyard.permissions.verdict import Answer
from toolyard.process.sandbox.policy import BACKENDS
from yard import Yard

pytestmark = pytest.mark.anyio
STAYS_INSIDE = (
    "printf 'a\\n' > a.txt && sed -i s/a/b/ a.txt && rm -f a.txt",
    "printf '#!/bin/sh\\ntouch made\\n' > build.sh && chmod +x build.sh && ./build.sh && test -e made",
    "printf 'all:\\n\\ttouch built\\n' > Makefile && make && test -e built",
    'python3 -c \'import subprocess; subprocess.run(["touch", "run"], check=True)\' && test -e run',
    'code="touch evaluated"; eval "$code" && test -e evaluated',
    "find . -name run -delete && ! test -e run",
)


class Nobody:
    """Says no, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def approve(self, request, verdict):
        self.asked.append((request.plan.command or str(request.plan.arguments), verdict.reach))
        return Answer(allowed=False, reason="no")


@pytest.fixture
def nobody():
    return Nobody()


@pytest.fixture
def yard(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Yard(tmp_path / "work")


def without_mounts(monkeypatch):
    for name in ("BACKENDS", "HIDING_BACKENDS"):
        monkeypatch.setattr(f"toolyard.runtime.sandbox_policy.{name}", (need_backend("landlock"),))


@pytest.mark.parametrize("permissions", [None, {}, {"deny": ["dd **"]}, {"preset": "sandboxed"}])
async def test_what_stays_inside_is_not_asked_about(yard, nobody, permissions):
    need_backend("bubblewrap", "bubblewrap-pids")
    section = {} if permissions is None else {"permissions": permissions}
    config = yard.config("shell:command", "shell:session", **section)
    async with yard.open(config, approver=nobody) as app:
        for tool in ("shell", "bash"):
            for line in STAYS_INSIDE:
                result = await app.call_tool(tool, {"command": line, "timeout": 30})
                assert (result.failure, result.data and result.data.get("exitCode", 0)) in ((None, 0), (None, None)), (
                    line,
                    result.text,
                )
    assert nobody.asked == []


@pytest.mark.parametrize("permissions", [{}, {"deny": ["dd **"]}])
async def test_what_wants_out_always_is(yard, nobody, permissions):
    need_backend("bubblewrap", "bubblewrap-pids")
    outside = yard.folder.parent / "outside"
    ask = {**permissions, "ask": ["git push **"]}
    async with yard.open(yard.config("shell:command", permissions=ask), approver=nobody) as app:
        for arguments in (
            {"command": f"touch {outside}", "reach": "outside", "reason": "to try"},
            {"command": "git push origin main"},
            {"command": "python3 -c 'import urllib.request as r; r.urlopen(\"http://example.org\")'", "timeout": 30},
        ):
            await app.call_tool("shell", arguments)
        refused = await app.call_tool("shell", {"command": "sudo true"})
        written = await app.call_tool("shell", {"command": f"touch {outside}"})
    assert nobody.asked == [
        (f"touch {outside}", "outside"),
        ("git push origin main", "work"),
        ("{'host': 'example.org', 'port': 80}", "work"),
    ]
    assert "'sudo' may not be used here" in refused.text
    assert "Read-only file system" in written.text
    assert not outside.exists()


async def test_a_sandbox_that_keeps_a_part_is_enough_only_for_who_says_so(yard, nobody, monkeypatch):
    without_mounts(monkeypatch)
    outcomes = []
    for permissions in ({}, {"preset": "sandboxed"}):
        async with yard.open(yard.config("shell:command", permissions=permissions), approver=nobody) as app:
            outcomes.append((await app.call_tool("shell", {"command": "rm -f x && python3 -c 1"})).failure)
    assert outcomes == ["denied", None]


async def test_nor_is_one_that_cannot_guard_what_is_a_link_here(yard, nobody):
    need_backend("bubblewrap", "bubblewrap-pids")
    elsewhere = yard.folder.parent / "elsewhere"
    elsewhere.mkdir()
    (yard.folder / ".npmrc").symlink_to(elsewhere / "npmrc")
    (elsewhere / "npmrc").write_text("")
    async with yard.open(yard.config("shell:command", permissions={}), approver=nobody) as app:
        result = await app.call_tool("shell", {"command": "python3 -c 1"})
        report = app.sandbox_report()
    assert report is not None
    assert (report.keeps, report.lacking) == ("partly", ["protected"])
    assert result.failure == "denied"


async def test_where_nothing_keeps_it_in_the_preset_is_one_that_asks(yard, nobody, monkeypatch):
    for name in ("BACKENDS", "HIDING_BACKENDS"):
        monkeypatch.setattr(f"toolyard.runtime.sandbox_policy.{name}", ())
    assert BACKENDS
    for sandbox in ({"mode": "auto"}, {"mode": "off"}):
        config = yard.config("shell:command", permissions={"preset": "sandboxed"}, sandbox=sandbox)
        async with yard.open(config, approver=nobody) as app:
            looked = await app.call_tool("shell", {"command": "ls"})
            ran = await app.call_tool("shell", {"command": 'python3 -c \'open("made", "w")\''})
        assert (looked.failure, ran.failure) == (None, "denied")
    assert not Path("made").exists()

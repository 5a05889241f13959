"""Links that a line moves or copies: from another place they lead elsewhere, and the line goes on to read by them."""

from __future__ import annotations

import pytest

from toolyard.permissions.file_access import CallSite
from toolyard.permissions.judge import judge_line
from toolyard.permissions.presets import make_book
from toolyard.permissions.section import Section


@pytest.fixture
def workspace(tmp_path) -> str:
    """With links that lead out of it, or would from another place, and with some that always stay inside."""
    work = tmp_path / "work"
    for folder in (tmp_path / "neighbour", work / "q", work / "deep" / "er", work / "package" / "bin", work / "plain"):
        folder.mkdir(parents=True)
    (work / "q" / "out").symlink_to(tmp_path / "neighbour")
    (work / "deep" / "er" / "r").symlink_to("../neighbour")
    (work / "package" / "main.js").touch()
    (work / "package" / "bin" / "main").symlink_to("../main.js")
    (work / "plain" / "a.txt").touch()
    (work / "a.txt").touch()
    return str(work)


def decision(line: str, workspace: str) -> str:
    book = make_book(Section(is_configured=True, preset="workspace"))
    return judge_line(line, book, CallSite(tool="bash", cwd=workspace, workspace=workspace)).decision


@pytest.mark.parametrize(
    "line",
    [
        "mv q q5; cat q5/*",
        "mv q/* plain; cat plain/out/x",
        "mv -t plain q; cat plain/q/out/x",
        "mv deep/er/r r; cat r/x",
        "mv deep/er far; cat far/r/x",
        "cp -P deep/er/r r; cat r/x",
        "cp -a deep/er far; cat far/r/x",
        "cd deep && mv er .. && cat ../er/r/x",
        "mv q q5",
    ],
)
def test_who_moves_a_link_that_may_lead_out_is_asked(workspace, line):
    assert decision(line, workspace) == "ask"


@pytest.mark.parametrize(
    "line",
    [
        "mv plain other; cat other/a.txt",
        "mv a.txt plain",
        "mv package packages && cat packages/main.js",
        "cp -r package copy; ls copy/bin",
        "mv plain/*.txt .",
        "mv plain/a.txt q",
    ],
)
def test_what_leads_where_it_led_is_moved_unasked(workspace, line):
    assert decision(line, workspace) == "allow"

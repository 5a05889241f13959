"""Lines of everyday looking are not asked about, lines that do more are: in a workspace with files, links and git."""

from __future__ import annotations

from pathlib import Path

import pytest

from judged_workspace import lead_astray, make_workspace
from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.presets import make_book
from toolyard.permissions.section import Section

pytestmark = pytest.mark.anyio
FOLDER = Path(__file__).parent / "lines"


def lines_of(name: str) -> list[str]:
    lines = (FOLDER / name).read_text().splitlines()
    return [line.replace("⏎", "\n") for line in lines if line and not line.startswith("# ")]


HARMLESS, HOSTILE = lines_of("harmless.txt"), lines_of("hostile.txt")


def test_there_are_many_lines_and_none_is_there_twice():
    assert len(HARMLESS) == len(set(HARMLESS)) >= 400
    assert len(HOSTILE) == len(set(HOSTILE)) >= 300
    assert not set(HARMLESS) & set(HOSTILE)


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
async def test_no_harmless_line_is_asked_about(preset, tmp_path):
    book = make_book(Section(is_configured=True, preset=preset))
    where = make_workspace(tmp_path)
    site = CallSite(tool="bash", cwd=str(where), workspace=str(where))
    verdicts = {line: await decide_line(line, book, site) for line in HARMLESS}
    asked = {line: verdict.reason for line, verdict in verdicts.items() if verdict.decision != "allow"}
    assert asked == {}


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
async def test_no_hostile_line_is_allowed(preset, tmp_path):
    book = make_book(Section(is_configured=True, preset=preset))
    where = make_workspace(tmp_path)
    lead_astray(where)
    site = CallSite(tool="bash", cwd=str(where), workspace=str(where))
    allowed = [line for line in HOSTILE if (await decide_line(line, book, site)).decision == "allow"]
    assert allowed == []

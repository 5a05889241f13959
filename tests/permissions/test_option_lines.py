"""Hostile lines are never allowed by the presets that look and work; harmless ones are."""

from __future__ import annotations

import pytest

from permissions.harmless_lines import CHANGING, HARMLESS
from permissions.hostile_lines import BY_HAND, INSIDE, generated, generated_harmless, lay_out
from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.judge import judge_line
from toolyard.permissions.presets import LOOKING, WORKING, make_book
from toolyard.permissions.section import Section

pytestmark = pytest.mark.anyio
PRESETS = ("read-only", "workspace")


async def allowed(lines: list[str], preset: str, tmp_path) -> list[str]:
    """The lines that a preset allows."""
    folder = str(lay_out(tmp_path))
    book = make_book(Section(is_configured=True, preset=preset), [])
    site = CallSite(tool="bash", cwd=folder, workspace=folder)
    # The first reader alone is faster, and what it does not allow is not asked of the second one.
    first = [line for line in lines if judge_line(line, book, site).decision == "allow"]
    return [line for line in first if (await decide_line(line, book, site)).decision == "allow"]


@pytest.mark.parametrize("preset", PRESETS)
async def test_no_spelling_of_an_option_leads_to_a_path_outside(preset, tmp_path):
    lines = generated()
    assert len(lines) > 2000
    assert await allowed(lines, preset, tmp_path) == []


@pytest.mark.parametrize("preset", PRESETS)
async def test_no_line_that_reads_outside_writes_or_runs_is_allowed(preset, tmp_path):
    assert len(set(BY_HAND)) == len(BY_HAND) >= 900
    assert await allowed(BY_HAND, preset, tmp_path) == []


async def test_what_writes_in_the_workspace_is_allowed_only_where_work_is(tmp_path):
    assert await allowed(INSIDE, "read-only", tmp_path / "a") == []
    assert await allowed(INSIDE, "workspace", tmp_path / "b") == INSIDE


@pytest.mark.parametrize(("preset", "patterns"), [("read-only", LOOKING), ("workspace", f"{LOOKING};{WORKING}")])
async def test_every_spelling_of_an_option_with_a_text_is_allowed(preset, patterns, tmp_path):
    lines = generated_harmless(patterns)
    assert len(lines) > 3000
    assert await allowed(lines, preset, tmp_path) == lines


OBEY_A_FOLDER = {"cargo --version", "rustc --version"}
"""A toolchain that the folder names answers these, so without a sandbox they are asked about."""


@pytest.mark.parametrize("preset", PRESETS)
async def test_no_line_that_looks_around_is_asked_about(preset, tmp_path):
    assert len(set(HARMLESS)) == len(HARMLESS) >= 600
    asked = set(HARMLESS).difference(await allowed(HARMLESS, preset, tmp_path))
    assert asked == OBEY_A_FOLDER, "a guard that is stricter than it must be is a fault, too"


async def test_nobody_who_works_is_asked_about_a_line_that_changes_files_of_the_workspace(tmp_path):
    assert len(set(CHANGING)) == len(CHANGING) >= 60
    assert set(CHANGING).difference(await allowed(CHANGING, "workspace", tmp_path)) == set()

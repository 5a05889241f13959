"""Readers that leave early, and streams that were never there."""

from __future__ import annotations

import pytest

from support import CommandLine
from yard import script

MUCH = "seq 100000"


@pytest.fixture(autouse=True)
def probe(toolyard: CommandLine) -> None:
    toolyard.file("probe.bash", script("probe", run=MUCH))
    toolyard.config("bash:probe.bash", output={"limit_bytes": 1_000_000})


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ("toolyard call probe | head -n 1", "1\n"),
        ("toolyard call probe --json | head -n 1", "{\n"),
        ("toolyard tools --format openai | head -n 1", "[\n"),
        ("toolyard --help | head -n 1", "Usage: toolyard [OPTIONS] COMMAND [ARGS]...\n"),
        ("toolyard call nonsense 2>&1 | true", ""),
        ("toolyard call probe | true", ""),
        ("toolyard tour 2>&1 | head -n 1", "A tour of Toolyard"),
    ],
)
def test_a_reader_that_leaves_early_gets_what_it_read_and_no_complaint(toolyard: CommandLine, command, out):
    ran = toolyard.run(["bash", "-o", "pipefail", "-c", command])
    assert ran.out.startswith(out)
    assert len(ran.out.splitlines()) <= 1
    assert ran.err == ""
    assert ran.code in (0, 1)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("toolyard tools >&-", 0),
        ("toolyard call probe >&-", 0),
        ("toolyard call nonsense 2>&-", 2),
        ("toolyard tools --nonsense 2>&-", 2),
        ("toolyard tool check probe.bash >&- 2>&-", 0),
        ("toolyard tools </dev/null >/dev/null", 0),
    ],
)
def test_a_stream_that_is_closed_hears_nothing_and_changes_nothing(toolyard: CommandLine, command, code):
    ran = toolyard.run(["sh", "-c", command])
    assert ran.code == code
    assert "Traceback" not in ran.err


def test_a_full_disk_under_standard_output_is_an_error_in_words(toolyard: CommandLine):
    ran = toolyard.run(["sh", "-c", "toolyard call probe >/dev/full"])
    assert ran.code == 2
    assert "No space left on device" in ran.err
    assert "Traceback" not in ran.err

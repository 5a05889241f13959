"""Whatever is allowed automatically and still holds a payload is run for real, and must not run the payload."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.policy_tests import PolicyCase, read_cases
from toolyard.permissions.rules import RuleBook, RuleOrigin, parse_rule

PATIENCE = 20
CASES = [case for file in Path(__file__).parent.glob("*.jsonl") for case in read_cases(file)]
SHORT = [case for case in CASES if isinstance(case, PolicyCase) and len(case.command) < 300]
HARMLESS = sorted({case.command for case in SHORT if case.must == "auto_allow"})
DANGEROUS = sorted({case.command for case in SHORT if case.must != "auto_allow"})
PATTERNS = """
    ls **; cat **; echo **; pwd; cd **; grep **; wc **; head **; tail **; sed **; awk **; sort **; uniq **; find **;
    xargs **; tee **; tar **; printf **; test **; [ **; read **; cut **; tr **; diff **; true; : **; env **; timeout **;
    nice **; git status **; git log **; git diff **; git grep **; git show **; split **; xxd **; file **; date **; jq **
"""
BOOK = RuleBook(
    [
        parse_rule(pattern.strip(), "allow", RuleOrigin(label="fuzz"))
        for pattern in PATTERNS.replace("\n", " ").split(";")
    ]
)
PAYLOADS = [
    *("touch marker", ";touch marker", "$(touch marker)", "`touch marker`", "&& touch marker", "|touch marker"),
    *(">marker", "\ntouch marker", "e touch marker", "w marker", '{system("touch marker")}', "-o marker", " marker"),
    *("-exec touch marker \\;", "'a[$(touch marker)]'", "<(touch marker)", "${x:-$(touch marker)}", "--output=marker"),
    *("(touch marker)", "&touch marker&", "'touch marker'", '"touch marker"', "# touch marker", "'; touch marker'"),
]
PIECES = [
    *";&|<>(){}[]$`'\"\\ \n\t#!*?~=-+%@:,./ax1",
    *("\\\n", "<<", "<<<", "<<E\n", "\nE\n", "$(", "${", "$((", "))", "&&", "||", ">>", "2>&1", "'\\''", "--", "-e "),
    *("if ", "then ", "fi", "do ", "done", "for i in ", "case x in ", "esac", ";;", "time "),
]


@st.composite
def mutants(draw) -> str:
    """A line of the corpus with a payload put in, and changed in a few places."""
    line = draw(st.sampled_from(HARMLESS))
    sources = draw(st.lists(st.sampled_from([PIECES, PIECES, PAYLOADS, HARMLESS, DANGEROUS]), max_size=4))
    for source in [PAYLOADS, *sources]:
        at = draw(st.integers(0, len(line)))
        cut = draw(st.sampled_from([0, 0, 0, 1, 2]))
        line = line[:at] + draw(st.sampled_from(source)) + line[at + cut :]
    return line[:1000]


# The same lines each time: what a new one finds belongs into the corpus, not into the build of whoever comes by.
@settings(max_examples=1000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(line=mutants())
def test_what_is_allowed_does_not_run_a_payload(tmp_path_factory, line):
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    where = CallSite(tool="bash", cwd=str(folder), workspace=str(folder))
    verdict = asyncio.run(decide_line(line, BOOK, where))
    event(verdict.decision)
    if verdict.decision == "allow" and "marker" in line:
        event("run for real")
        run_for_real(line, folder)
        assert os.listdir(folder) == [], line


def run_for_real(line: str, folder: Path) -> None:
    """In an empty folder, with nothing to read and nobody to ask."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_PAGER": "cat", "PAGER": "cat"}
    command = ["timeout", "-s", "KILL", str(PATIENCE), "bash", "--norc", "-c", "--", line]
    subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True)

"""The corpus: lines that must be allowed, must not be, or must be denied, each with the rules it is judged by.

It is written from bash's manual, the option lists of the guarded programs and what is public about how other checks
were evaded. Every line is a policy test as users write them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from toolyard.permissions.policy_tests import BadCase, PolicyCaseOutcome, read_cases, run_case

pytestmark = pytest.mark.anyio
FILES = sorted(Path(__file__).parent.glob("*.jsonl"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_every_line_gets_the_verdict_it_must(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcomes = [await run_case(case) for case in read_cases(file) if not isinstance(case, BadCase)]
    wrong = [outcome for outcome in outcomes if not (isinstance(outcome, PolicyCaseOutcome) and outcome.passed)]
    assert not wrong, "\n".join(describe(outcome) for outcome in wrong)


def describe(outcome: PolicyCaseOutcome | str) -> str:
    if isinstance(outcome, str):
        return outcome
    return f"{outcome.case.id} {outcome.case.command!r} is {outcome.verdict.decision}: {outcome.verdict.reason}"


def test_the_corpus_is_large_and_has_no_line_twice():
    cases = [case for file in FILES for case in read_cases(file)]
    assert not [case for case in cases if isinstance(case, BadCase)]
    kinds = Counter(case.must for case in cases)
    assert kinds["not_auto_allow"] >= 400
    assert kinds["auto_allow"] >= 400
    assert kinds["deny"] >= 100
    assert len({case.id for case in cases}) == len(cases)
    assert len({(case.command, str(case.rules)) for case in cases}) == len(cases)

"""Tests that people keep for their rules: lines of JSON, each a command, the rules for it, and what must happen."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.files.door import LARGEST_CONFIGURATION, Door
from toolyard.permissions.decide import decide_line
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.paths import NO_OWN_FOLDERS
from toolyard.permissions.rules import Rule, RuleBook, RuleOrigin, parse_rule
from toolyard.permissions.section import LISTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.permissions.paths import OwnFolders
    from toolyard.permissions.verdict import Verdict


Must = Literal["auto_allow", "not_auto_allow", "deny"]


class PolicyCase(msgspec.Struct, frozen=True, kw_only=True):
    """One line; without rules of its own it is judged by those that are in force."""

    command: str
    must: Must
    id: str = ""
    rules: dict[str, list[Any]] | None = None
    tool: str = "bash"
    why: str = ""
    line: int = 0
    """Where it stands in its file."""


class BadCase(msgspec.Struct, frozen=True, kw_only=True):
    line: int
    message: str


class PolicyCaseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    case: PolicyCase
    verdict: Verdict

    @property
    def passed(self) -> bool:
        decision = self.verdict.decision
        match self.case.must:
            case "auto_allow":
                return decision == "allow"
            case "not_auto_allow":
                return decision != "allow"
            case "deny":
                return decision == "deny"

    def as_mapping(self) -> dict[str, Any]:
        return {
            "id": self.case.id,
            "command": self.case.command,
            "must": self.case.must,
            "passed": self.passed,
            **self.verdict.as_mapping(),
        }


def read_cases(file: Path) -> Iterator[PolicyCase | BadCase]:
    try:
        content = Door.here().read(file, largest=LARGEST_CONFIGURATION).data
    except OSError as error:
        yield BadCase(line=1, message=f"the file cannot be read: {error.strerror}")
        return
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            # As Python reads it: half a UTF-16 character is let through, for a command with one is a case, too.
            case = msgspec.convert(json.loads(line), PolicyCase)
        except (ValueError, msgspec.ValidationError) as error:
            yield BadCase(line=number, message=str(error))
        else:
            yield msgspec.structs.replace(case, id=case.id or f"line {number}", line=number)


def rules_of(value: Any, origin: RuleOrigin) -> list[Rule] | str:
    """Rules from an object with the lists allow, ask and deny; a message when one of them is none."""
    if not isinstance(value, dict) or set(value) - set(LISTS):
        return "rules are an object with the lists 'allow', 'ask' and 'deny'"
    rules: list[Rule] = []
    for decision in LISTS:
        for item in value.get(decision, []):
            rule = parse_rule(item, decision, origin)
            if not isinstance(rule, Rule):
                return f"{item!r}: {rule.message}"
            rules.append(rule)
    return rules


async def run_case(
    case: PolicyCase, book: RuleBook | None = None, own: OwnFolders = NO_OWN_FOLDERS
) -> PolicyCaseOutcome | str:
    """Judge a case as if its command came from a model; the workspace is the current folder."""
    here = os.getcwd()
    if case.rules is not None:
        rules = rules_of(case.rules, RuleOrigin(label=f"case {case.id}"))
        if isinstance(rules, str):
            return rules
        book = RuleBook(rules)
        own = NO_OWN_FOLDERS  # only the rules of the case count, wherever it would run
    site = CallSite(tool=case.tool, cwd=here, workspace=here, own=own)
    verdict = await decide_line(case.command, book or RuleBook([]), site)
    return PolicyCaseOutcome(case=case, verdict=verdict)

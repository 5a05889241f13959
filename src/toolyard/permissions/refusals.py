"""Why a command is refused: privileges, and the rules that deny or ask, over everything that it may run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from toolyard.bash.syntax.words import Word, literal_word
from toolyard.bash.syntax.wrappers import take_off_wrappers
from toolyard.permissions.programs.carriers import carried_by, suspects_in
from toolyard.permissions.programs.categories import PRIVILEGED, is_carrier, is_shell, program_name
from toolyard.permissions.programs.git import git_subcommand
from toolyard.permissions.programs.guards import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.events import Decision
    from toolyard.permissions.rules import Rule, RuleBook


MOST = 32
MOST_WORDS = 200
"""Words of a command that runs others: any of them may begin one, and each of those may again."""
UNSEEN = "it runs what it is given, and that is more than can be looked over"
AT_A_COMMAND = re.compile(r"(?:^|(?<=[\s;&|(){}!`/]))(sudo|doas|pkexec|su|sudoedit)(?=[\s;&|)<>]|$)", re.MULTILINE)


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a command may not run, or not without a question."""

    decision: Decision
    reason: str
    doubt: str | None = None
    rule: Rule | None = None


class PossibleCommands(msgspec.Struct):
    """A command with everything that it may run."""

    commands: list[Sequence[Word]]
    suspects: list[Sequence[Word]]
    """Words that may be a command, or only arguments of one."""
    lines: list[str]
    """Text that a shell reads."""
    arguments: list[Sequence[Word]]
    """Of programs that nobody knows here: what stands behind their names may be a command, too."""
    unseen: Sequence[Word] = ()
    """A command that runs others, with more words than can be looked over."""


def possible_commands(layers: Sequence[Sequence[Word]]) -> PossibleCommands:
    """The command in all its wrappers, and what each of them carries."""
    possible = PossibleCommands([words for words in layers if words], [], [], [])
    for words in possible.commands:
        if len(words) > MOST_WORDS and may_run_others(words):
            possible.unseen = words
            break
        if not is_known(words[0].value or ""):
            possible.arguments.extend(suspects_in(words))
        if len(possible.commands) < MOST and (carried := carried_by(words)) is not None:
            for command in filter(None, carried.commands):
                layers, unwrapped = take_off_wrappers(command)
                possible.commands.extend((*layers, unwrapped))
            possible.suspects.extend(carried.suspects)
            possible.lines.extend(carried.lines)
    return possible


def may_run_others(words: Sequence[Word]) -> bool:
    name = program_name(words[0].value)
    return is_carrier(name) or is_shell(name) or name in ("find", "gfind") or not is_known(name)


def find_refusal(possible: PossibleCommands, book: RuleBook, tool: str) -> Refusal | None:
    """Why one of the commands is refused; a rule that denies counts before one that asks."""
    firsts = [words[0] for words in (*possible.commands, *possible.suspects)]
    for word in (*firsts, *possible.unseen):
        if (name := program_name(word.value)) in PRIVILEGED:
            return Refusal(decision="deny", reason=privilege_reason(name), doubt="privilege")
    if possible.unseen and (book.refuses or not book.trusts_tool(tool)):
        return Refusal(decision=book.otherwise, reason=UNSEEN, doubt="too_many")
    if not book.refuses:
        return None
    return by_rules("deny", possible, book, tool) or by_rules("ask", possible, book, tool)


def by_rules(decision: Decision, possible: PossibleCommands, book: RuleBook, tool: str) -> Refusal | None:
    """A rule that fits; else one that may be meant, for then a person is asked."""
    doubtful: Rule | None = None
    for words in possible.commands:
        for spelling in spellings(words):
            for found in book.commands(decision, spelling, tool):
                if found.certain:
                    return Refusal(decision=decision, reason=found.rule.why(), rule=found.rule)
                doubtful = doubtful or found.rule
            doubtful = doubtful or book.resembling(decision, spelling, tool)
    for words in (*possible.suspects, *possible.arguments):
        doubtful = doubtful or next((found.rule for found in book.commands(decision, words, tool)), None)
    if doubtful is None:
        return None
    reason = f"the rule '{decision} {doubtful.text}' ({doubtful.origin}) may be about it"
    return Refusal(decision="ask", reason=reason, doubt="may_be_refused", rule=doubtful)


def spellings(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The same command as a rule may name it: without its folder, and git without the options before its command."""
    yield words
    name = words[0].value
    if name is not None and "/" in name:
        words = (literal_word(program_name(words[0].value)), *words[1:])
        yield words
    if words[0].value == "git" and (inner := git_subcommand(words)) is not None and len(inner) != len(words):
        yield inner


def privilege_reason(name: str) -> str:
    """What a model is told that wants more rights than it has."""
    return f"commands with other rights are refused: '{name}' may not be used here, run the command without it"


def privileged_word(text: str) -> str | None:
    """A word that would give privileges, in a text that cannot be read any better."""
    match = AT_A_COMMAND.search(text)
    return match[1] if match else None

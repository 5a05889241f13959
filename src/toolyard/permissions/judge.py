"""The verdict on a command line: that of its strictest part, each part with the rule or doubt that decided it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.reading import Arithmetic, Assignment, Condition, Loop, Redirection, SimpleCommand
from toolyard.bash.syntax.words import literal_word
from toolyard.bash.syntax.wrappers import take_off_wrappers
from toolyard.core.visible_text import escaped
from toolyard.permissions.expansion.line import ExpandedLine
from toolyard.permissions.expansion.shell_state import FRESH
from toolyard.permissions.expansion.variable_names import is_harmless, is_own_variable, is_safe_variable
from toolyard.permissions.file_access import FREE_TARGETS, NETWORK_FILE, FileAccess, WorkingFolder
from toolyard.permissions.programs.builtins import check_condition
from toolyard.permissions.programs.carriers import carried_by
from toolyard.permissions.programs.categories import is_shell, obeys_its_input, program_name
from toolyard.permissions.programs.git import git_subcommand
from toolyard.permissions.programs.guards import concerns_about, why_never_covered, why_not_here
from toolyard.permissions.refusals import find_refusal, possible_commands, privilege_reason, privileged_word
from toolyard.permissions.verdict import Judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.reading import Doubt, Part, Reading
    from toolyard.bash.syntax.words import Word
    from toolyard.core.events import Decision
    from toolyard.permissions.expansion.shell_state import ShellFacts
    from toolyard.permissions.file_access import CallSite
    from toolyard.permissions.rules import Rule, RuleBook


STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
DEEPEST = 4
DUPLICATE = re.compile(r"\d-?|-")
"""Descriptors of a line have one digit; those with more are bash's own, and a session's."""
PUTS_FILES = frozenset({"cp", "mv", "ln", "install", "touch", "mkdir"})
"""Programs whose arguments are files that come to be; a rule for them is not meant for what later commands run."""
ADDED = "\0"
"""Stands for words that no line holds: those that xargs adds."""
OBEYS_INPUT = "input"
"""The code of a doubt that no rule takes away."""
MOST_SHOWN = 200
TRUSTED = "everything is trusted that no rule is against"
SEEN_THROUGH = frozenset({"construct", "endless", "empty"})
"""Codes of doubts about what a line may do, not about which commands it holds."""
KEPT_IN = "it stays in the sandbox, and no rule is against it"


class LineVerdict(msgspec.Struct, kw_only=True):
    """What the rules say of a line."""

    decision: Decision
    reason: str
    reading: Reading
    parts: tuple[Judged, ...]
    needs_cross_check: bool
    """Whether shfmt has to read the same commands in it before it is allowed."""


def judge_line(text: str, book: RuleBook, site: CallSite) -> LineVerdict:
    line = ExpandedLine(read_line(text), site.cwd, site.workspace, site.shell, site.own)
    return Judge(book, site.tool, WorkingFolder(line, site), site.shell).line(line.reading())


class Judge(msgspec.Struct):
    """Judges the parts of one line.

    For a command the order counts: what it may run is refused (also inside `xargs` or `sh -c`), then a rule for
    exactly this text, then trust, then what it carries, then a rule with `**` whose guard has no concern.
    """

    book: RuleBook
    tool: str
    folder: WorkingFolder
    shell: ShellFacts = FRESH
    depth: int = 0
    alone: bool = True
    """Whether the line is one command, with nothing before it that it could read."""
    fed_by: SimpleCommand | None = None
    """The command of the line that is being judged, to find out what it reads."""

    def line(self, reading: Reading) -> LineVerdict:
        self.alone = len(reading.parts) == 1
        parts = [judged for part in reading.parts for judged in self.part(part)]
        parts += [self._doubt(doubt, reading.text) for doubt in reading.doubts]
        if not reading.parts and (name := privileged_word(reading.text)):
            parts.append(judged_as("deny", reading.text, "command", privilege_reason(name), doubt="privilege"))
        decisions: list[Decision] = [part.decision for part in parts]
        worst: Decision = max(decisions, key=STRICTNESS.__getitem__, default="allow")
        return LineVerdict(
            decision=worst,
            reason=reason_for(worst, parts),
            reading=reading,
            parts=tuple(parts),
            needs_cross_check=worst == "allow" and not reading.plain and not self._trusts_past(reading),
        )

    def part(self, part: Part) -> Iterator[Judged]:
        self.folder = self.folder.at(part.start)
        match part:
            case SimpleCommand():
                reads = part.name == "read"
                yield from (self._assignment(each, before_read=reads) for each in part.assignments)
                if part.words:
                    self.fed_by = part
                    judged = self._denied_input(part) or self._obeys_input(part)
                    yield judged or self.command(part.words, part.wrapped, part.text)
                yield from map(self._redirection, part.redirections)
            case Redirection():
                yield self._redirection(part)
            case Assignment():
                yield self._assignment(part)
            case Condition():
                why = check_condition([as_checked(word) for word in part.words] if self.book.confines else part.words)
                yield self._unless(why, part.text, "condition", "a condition runs nothing itself")
            case Loop(name=None):
                yield judged_as("allow", part.text, "case", "patterns of a case are compared, and name no files")
            case Loop(name=str(name)):
                why = self._why_listed(part.words) if self._is_own(name) else f"it sets '{name}'"
                yield self._unless(why, part.text, "loop", "a loop runs nothing itself")
            case Arithmetic():
                yield self._unless(self._why_evaluates(part), part.text, "arithmetic", "it only computes numbers")

    def _denied_input(self, part: SimpleCommand) -> Judged | None:
        """What a shell is given to read in the line itself, and a rule denies."""
        if not is_shell(program_name(part.name)) or self.depth >= DEEPEST:
            return None
        for redirection in part.redirections:
            target = redirection.target if redirection.operator == "<<<" else None
            text = target.value if target else redirection.body
            if denied := self._denied_in(text or "", part.text):
                return denied
        return None

    def _obeys_input(self, part: SimpleCommand) -> Judged | None:
        """A command that runs what it reads, and is given something: no rule about its words is about that."""
        reads = not self.alone or any(each.operator.startswith("<") for each in part.redirections)
        if not reads or self._trusts or not obeys_its_input([word.value for word in part.words]):
            return None
        if refused := self._refused([*part.wrapped, part.words], part.text):
            return refused
        return self._ask(part.text, "it runs what it reads from its standard input", OBEYS_INPUT)

    def _why_evaluates(self, part: Arithmetic) -> str | None:
        """Why arithmetic may run commands: a variable may hold more than a number."""
        if name := next((name for name in part.sets if not (self.book.confines and self._is_own(name))), None):
            return f"it sets '{name}'"
        known = (name for name in part.names if name not in part.sets or not is_only_set(name, part))
        for name in known:
            if not self.folder.line.holds_number(name, part):
                return f"what '{name}' holds is evaluated, and that may be a command"
        return None

    def _why_listed(self, words: Sequence[Word]) -> str | None:
        """Why patterns in a list tell names of files that are not to be looked at, where a preset says which are."""
        return self._files.why_listed_outside(words) if self.book.confines else None

    def _is_own(self, name: str) -> bool:
        """Whether only the line itself looks at a variable, and it is one that holds what it is given."""
        return is_own_variable(name) and name not in self.shell.odd_variables

    def _denied_in(self, line: str, text: str) -> Judged | None:
        """The first command that is denied in a line that another reads."""
        inner = Judge(self.book, self.tool, self.folder, self.shell, self.depth + 1)
        for judged in inner.line(read_line(line)).parts:
            if judged.decision == "deny":
                why = f"it runs '{judged.text}': {judged.reason}"
                return judged_as("deny", text, "command", why, doubt=judged.doubt)
        return None

    def command(self, words: Sequence[Word], wrapped: Sequence[Sequence[Word]], text: str) -> Judged:
        """One simple command, with the forms of it that have wrappers."""
        layers = [*wrapped, words]
        if refused := self._refused(layers, text):
            return refused
        if not self._trusts_blindly and not self._is_kept_in and (why := self._why_changed(layers)):
            return self._ask(text, why, "meaning")
        found = [each for words_ in layers for each in self.book.commands("allow", words_, self.tool) if each.certain]
        # What git does is also up to the repository, which is looked at for rules of presets.
        is_git = words[0].value == "git"
        exact = (each.rule for each in found if each.pattern.is_exact and not (is_git and each.rule.confined))
        if rule := next(exact, None):
            why = why_not_here(words, self.folder)
            return self._ask(text, why, "place") if why else self._allow(text, rule)
        if self._trusts:
            return self._trusted(words, text)
        if words[0].value is None:
            return self._ask(text, "what runs is not certain", "dynamic_name")
        if words[0].value == "export" and self.book.confines and (free := self._exported(words, text)):
            return free
        return self._by_content(words, text) or self._by_rule(words, text)

    def _why_changed(self, layers: Sequence[Sequence[Word]]) -> str | None:
        """Why a word of a command is not what the rules are about, after what ran in its shell before."""
        return next((why for words in layers if words and (why := self.shell.why_changed(words))), None)

    def _exported(self, words: Sequence[Word], text: str) -> Judged | None:
        """`export NAME=value` of variables that no program obeys."""
        for word in words[1:]:
            name, equals, value = (word.value or word.prefix).partition("=")
            is_free = is_own_variable(name, exported=True) or is_harmless(name, value if word.value else None)
            if not equals or not is_free or name in self.shell.odd_variables:
                return None
        return judged_as("allow", text, "command", "no program obeys such a variable") if len(words) > 1 else None

    @property
    def _trusts(self) -> bool:
        return self.book.trusts_tool(self.tool)

    @property
    def _trusts_blindly(self) -> bool:
        return not self.book.refuses and self._trusts

    def _trusts_past(self, reading: Reading) -> bool:
        """Whether no second reader is needed; the one that we have knows nothing of what is seen through."""
        return self._trusts_blindly or (self._is_kept_in and bool(reading.doubts))

    @property
    def _is_kept_in(self) -> bool:
        return self.book.kept_in and self.book.trusts

    @property
    def _why_trusted(self) -> str:
        return KEPT_IN if self._is_kept_in else TRUSTED

    def _refused(self, layers: Sequence[Sequence[Word]], text: str) -> Judged | None:
        possible = possible_commands(layers)
        if found := find_refusal(possible, self.book, self.tool):
            return judged_as(found.decision, text, "command", found.reason, rule=found.rule, doubt=found.doubt)
        for line in possible.lines if self.depth < DEEPEST else ():
            if denied := self._denied_in(line, text):
                return denied
        for words in possible.commands if self.book.refuses_files else ():
            for word in words[1:]:
                if rule := self._rule_against_file(word):
                    return self._by_refusing(rule, text)
            if why := self._files.may_be_refused(words):
                return self._ask(text, why, "may_be_refused")
        return None

    def _rule_against_file(self, word: Word) -> Rule | None:
        paths = [path for path in (word.prefix, word.prefix.partition("=")[2]) if path]
        return next((rule for path in paths if (rule := self._files.rule_against(path))), None)

    @property
    def _files(self) -> FileAccess:
        return FileAccess(self.book, self.tool, self.folder)

    def _trusted(self, words: Sequence[Word], text: str) -> Judged:
        """Everything may run that no rule is against; with such rules, only what is known to be something else.

        In a sandbox a script may run whatever it does: a rule is about the lines that are seen, not a wall.
        """
        if self.book.refuses and self._is_kept_in:
            if words[0].value is None:
                return self._ask(text, "it may run what a rule is against", "unproven")
        elif self.book.refuses:
            carried = carried_by(words)
            is_known = words[0].value is not None and not why_never_covered(words, 0)
            if not is_known and not (carried is not None and carried.is_all):
                return self._ask(text, "it may run what a rule is against", "unproven")
            concerns = (each for each in concerns_about(words, self.folder, 1) if each.runs and each.writes is None)
            if is_known and (concern := next(concerns, None)) is not None:
                return self._ask(text, f"{concern.message}, and so it may run what a rule is against", "unproven")
        return judged_as("allow", text, "command", self._why_trusted)

    def _by_content(self, words: Sequence[Word], text: str) -> Judged | None:
        """A carrier of commands that are certain is as dangerous as those."""
        carried = carried_by(words)
        if carried is None or not carried.is_all or self.depth >= DEEPEST:
            return None
        inner = Judge(self.book, self.tool, self.folder, self.shell, self.depth + 1, fed_by=self.fed_by)
        for command in carried.commands:
            wrapped, unwrapped = take_off_wrappers(self._with_input(words, command))
            judged = inner.command(unwrapped, wrapped, " ".join(word.text for word in command))
            if judged.decision != "allow":
                return self._ask(text, f"it runs '{judged.text}': {judged.reason}", judged.doubt)
        if words[0].value in ("find", "gfind"):  # looks for files besides, which is for a rule of its own
            return None
        return judged_as("allow", text, "command", "what it runs is allowed")

    def _with_input(self, words: Sequence[Word], command: tuple[Word, ...]) -> tuple[Word, ...]:
        """The command inside xargs, with what is known of the words that its input adds."""
        if words[0].value != "xargs" or self.fed_by is None or self.depth:
            return command
        separated = any(is_separating(word.value or "") for word in words[1:])
        given = self.folder.line.input_word(self.fed_by, separated=separated)
        if not given.inside:
            return command
        written = {(word.start, word.text): word.value for word in words}
        markers = xargs_markers(words)
        return tuple(
            given if word.value is None and written.get((word.start, word.text), ADDED) in (ADDED, *markers) else word
            for word in command
        )

    def _by_rule(self, words: Sequence[Word], text: str) -> Judged:
        """A rule with `**`, if nothing about the command speaks against it."""
        matched = words
        if words[0].value == "git" and len(words) > 1 and (words[1].value or "-").startswith("-"):
            matched = git_subcommand(words) or words
        found = [each for each in self.book.commands("allow", matched, self.tool) if each.certain]
        judged: Judged | None = None
        for each in sorted(found, key=lambda each: each.rule.confined):  # those of the user before those of a preset
            covered = self._covered(words, text, each.rule, each.pattern.named)
            if covered.decision == "allow":
                return covered
            judged = judged or covered
        return judged or self._otherwise(text, self._why_unlisted(words[0]), "no_rule")

    def _why_unlisted(self, program: Word) -> str:
        name = program.value or program.text
        return f"Command '{name}' is not in the allowlist" if self.book.is_allowlist else "no rule allows it"

    def _covered(self, words: Sequence[Word], text: str, rule: Rule, named: int) -> Judged:
        beyond = f"the rule '{rule.text}' does not cover that"
        words, files = [word.sampled for word in words], self._files
        if why := why_never_covered(words, named):
            return self._ask(text, f"{why}; {beyond}", "carrier", rule)
        if why := why_not_here(words, self.folder):
            return self._ask(text, why, "place", rule)
        if why := files.why_of_process(words):
            return self._ask(text, why, "process", rule)
        for each in concerns_about(words, self.folder, named):
            if each.option is not None and each.option in words[:named]:
                continue
            if each.writes is None:
                return self._ask(text, f"{each.message}; {beyond}", "option", rule)
            if why := files.why_not_write(each.writes):
                return self._ask(text, f"{each.message}, and {why}", "write", rule)
        if rule.confined and (why := files.why_outside(words)):
            return self._ask(text, why, "outside", rule)
        if rule.confined and words[0].value == "git" and (why := files.why_repository(words)):
            return self._ask(text, why, "repository", rule)
        if rule.confined and self.book.usual_reach == "look" and (why := files.why_written(words)):
            return self._ask(text, why, "write", rule)
        if (rule.confined or words[0].value in PUTS_FILES) and (why := files.why_changes_later(words)):
            return self._ask(text, why, "later", rule)
        return self._allow(text, rule, streams_only=rule.confined and files.passes_text_on(words))

    def _redirection(self, part: Redirection) -> Judged:
        target = part.target
        if part.body is not None or part.operator == "<<<":
            return judged_as("allow", part.text, "redirection", "text that stands in the line")
        if target is None or (target.value is not None and is_free(part.operator, target.value)):
            return judged_as("allow", part.text, "redirection", "no file is touched")
        target = target.sampled
        if target.value is None:
            is_read = (
                part.operator == "<" and (target.inside or target.text.startswith("<(")) and not self.book.refuses_files
            )
            why = None if is_read else "which file is meant is not certain"
            return self._unless(why, part.text, "redirection", "it reads files of the workspace")
        if part.operator in (">&", "<&") and target.value.rstrip("-").isdigit():
            return self._unless("the descriptor may be one of bash's own", part.text, "redirection", "")
        if rule := self._files.rule_against(target.value):
            return self._by_refusing(rule, part.text, "redirection")
        if NETWORK_FILE.match(target.value):
            return self._unless("a connection is opened", part.text, "redirection", "")
        if self._trusts and not self._files.holds_rules(target.value):
            return judged_as("allow", part.text, "redirection", self._why_trusted)
        if part.operator == "<":
            why, fine, rule = self._files.why_not_read(target), "it may be read", None
        else:
            why, rule = self._files.why_not_write(target), self._files.write_rule(target.value)
            fine = f"the rule '{rule.text}'" if rule else "it may be written"
        return self._unless(why, part.text, "redirection", fine, rule)

    def _assignment(self, part: Assignment, *, before_read: bool = False) -> Judged:
        value = part.value.value if part.value else ""
        why: str | None = None
        if self._trusts and is_safe_variable(part.name) and value is not None:
            pass  # nobody looks at a variable of that name but the line itself, and `$name` is never certain
        elif part.alone:
            is_free = self.book.confines and part.name is not None and self._is_own(part.name)
            why = self._why_listed(part.elements or ()) if is_free else "a variable of the shell is set"
        elif before_read and part.name == "IFS" and value is not None:
            pass  # how read splits its line, and nothing else
        elif not is_harmless(part.name, value):
            why = f"'{part.text}' may change what the command does"
        return self._unless(why, part.text, "assignment", "it changes nothing but how the command prints")

    def _unless(self, why: str | None, text: str, kind: str, fine: str, rule: Rule | None = None) -> Judged:
        """Free, unless there is a reason why not."""
        if why is None:
            return judged_as("allow", text, kind, fine, rule=rule)
        is_about_files = kind == "redirection" and self.book.refuses_files
        if self._trusts_blindly or (self._is_kept_in and not is_about_files):
            return judged_as("allow", text, kind, self._why_trusted)
        return self._otherwise(text, why, kind, kind)

    def _doubt(self, doubt: Doubt, line: str) -> Judged:
        text = doubt.text or line
        if self._trusts_blindly or (self._is_kept_in and doubt.code in SEEN_THROUGH):
            return judged_as("allow", text, "doubt", self._why_trusted)
        return self._otherwise(text, doubt.message, doubt.code, "doubt")

    def _allow(self, text: str, rule: Rule, *, streams_only: bool = False) -> Judged:
        judged = judged_as("allow", text, "command", f"the rule '{rule.text}'", rule=rule)
        return replace(judged, streams_only=True) if streams_only else judged

    def _by_refusing(self, rule: Rule, text: str, kind: str = "command") -> Judged:
        return judged_as(rule.decision, text, kind, rule.why(), rule=rule)

    def _otherwise(self, text: str, why: str, doubt: str, kind: str = "command") -> Judged:
        decision = self.book.otherwise
        return judged_as(decision, text, kind, f"{why}; {self.book.broken}" if self.book.broken else why, doubt=doubt)

    def _ask(self, text: str, why: str, doubt: str | None, rule: Rule | None = None) -> Judged:
        return judged_as(self.book.otherwise, text, "command", why, rule=rule, doubt=doubt)


def as_checked(word: Word) -> Word:
    """A word of a condition: a number is one, whichever, and a regular expression is compared like any text."""
    if word.is_number:
        return literal_word("0")
    return literal_word("==") if word.value == "=~" else word


def is_only_set(name: str, part: Arithmetic) -> bool:
    """Whether arithmetic gives a variable a plain number before it looks at it."""
    first = re.search(rf"(?<!\w){name}\b\s*(=\s*-?\d+\s*[,)])?", part.text)
    return first is not None and first[1] is not None


def xargs_markers(words: Sequence[Word]) -> frozenset[str | None]:
    """The words that xargs replaces by a line of its input, each as a whole."""
    values = [word.value or "" for word in words]
    apart = (follower for option, follower in pairwise(values) if option == "-I")
    glued = (value.removeprefix("-I") for value in values if value.startswith("-I") and value != "-I")
    return frozenset({*apart, *glued})


def is_separating(option: str) -> bool:
    """Whether an option of xargs makes it take each line, or each text before a NUL, as it is."""
    return bool(re.fullmatch(r"-[rtx]*0[rtx]*|--null|-d.*|--delimiter=.*", option))


def is_free(operator: str, target: str) -> bool:
    """Whether a redirection touches no file."""
    return target in FREE_TARGETS or (operator in (">&", "<&") and bool(DUPLICATE.fullmatch(target)))


def judged_as(
    decision: Decision, text: str, kind: str, reason: str, *, rule: Rule | None = None, doubt: str | None = None
) -> Judged:
    shown = escaped(text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " …")
    return Judged(
        text=shown,
        kind=kind,
        decision=decision,
        reason=escaped(reason),
        rule=rule.text if rule else None,
        origin=rule.origin if rule else None,
        doubt=doubt,
        reach=rule.reach if rule else None,
    )


def reason_for(decision: Decision, parts: Sequence[Judged]) -> str:
    """The reason of the first part that decides the line."""
    deciding = [part for part in parts if part.decision == decision]
    if not deciding:
        return "there is nothing to run"
    if decision == "allow":
        return " · ".join(dict.fromkeys(part.reason for part in deciding))
    more = f" (and {len(deciding) - 1} more)" if len(deciding) > 1 else ""
    return f"{deciding[0].text}: {deciding[0].reason}{more}"

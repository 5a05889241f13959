"""The verdict on a command line: that of its strictest part, each part with the rule or doubt that decided it."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.reading import Arithmetic, Assignment, Condition, Loop, Redirection, SimpleCommand
from toolyard.bash.syntax.tree import FILE_DOUBT, FUNCTION_DOUBT
from toolyard.bash.syntax.words import literal_word
from toolyard.bash.syntax.wrappers import take_off_wrappers
from toolyard.core.reach import REACHES
from toolyard.core.visible_text import escaped
from toolyard.permissions.expansion.line import ExpandedLine
from toolyard.permissions.expansion.shell_state import FRESH
from toolyard.permissions.expansion.variable_names import is_harmless, is_own_variable, is_safe_variable
from toolyard.permissions.expansion.variables import READS_LINES
from toolyard.permissions.file_access import FREE_TARGETS, NETWORK_FILE, NOT_CERTAIN, FileAccess, WorkingFolder
from toolyard.permissions.programs.builtins import check_condition
from toolyard.permissions.programs.carriers import FD_RUNS, carried_by
from toolyard.permissions.programs.categories import (
    CHANGES_THE_SHELL,
    ONLY_LOOKS,
    is_shell,
    obeys_its_input,
    program_name,
)
from toolyard.permissions.programs.git import git_concerns, git_subcommand
from toolyard.permissions.programs.guards import GUARDS, concerns_about, is_known, why_never_covered, why_not_here
from toolyard.permissions.programs.listings.closed import (
    CHANGES_THE_COMMAND,
    CLOSED,
    LINE_FOLLOWS,
    SETS_A_VARIABLE,
    line_in_shell,
    may_look_closed,
    settles,
    settles_doubt,
)
from toolyard.permissions.programs.listings.find import COMMANDS, PLAIN, listing_of
from toolyard.permissions.programs.listings.unlisted import rule_for_code, rule_for_help, rule_for_others
from toolyard.permissions.programs.operands import Operands
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
SEEN_THROUGH = frozenset({"construct", "endless", "empty", FUNCTION_DOUBT, FILE_DOUBT})
"""Codes of doubts about what a line may do, not about which commands it holds."""
OWN_ONLY = frozenset({"rm", "rmdir", "mktemp"})
"""Programs that a preset lets touch nothing but temporary files of their own."""
READS_ANY = "'--no-index' reads any file"
"""A concern that is about which operands are files, and these are looked at besides."""
LISTED_GUARDS = {
    name: GUARDS[name] for name in PLAIN if name in GUARDS and name not in ("tar", "gtar", "bsdtar", "jobs")
}
"""What is known of programs besides their listings holds for these as well."""
KEPT_IN = "it stays in the sandbox, and no rule is against it"


class LineVerdict(msgspec.Struct, kw_only=True):
    """What the rules say of a line."""

    decision: Decision
    reason: str
    reading: Reading
    parts: tuple[Judged, ...]
    needs_cross_check: bool
    """Whether shfmt has to read the same commands in it before it is allowed."""
    texts: tuple[str, ...] = ()
    """Lines inside of it that were judged as well, to be read by shfmt, too."""


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
    functions: frozenset[str] = frozenset()
    """The functions of the line whose commands are judged where they stand."""
    texts: list[str] = msgspec.field(default_factory=list)
    """The lines inside of the line that a shell is given, which a second reader has to see alike."""

    def line(self, reading: Reading) -> LineVerdict:
        self.alone = len(reading.parts) == 1
        self.functions = self._own_functions(reading) if reading.functions else frozenset()
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
            texts=tuple(self.texts),
        )

    def _own_functions(self, reading: Reading) -> frozenset[str]:
        """The functions that nothing else is called like, where a preset lets the commands in them run as they stand.

        They run wherever they are called, so nothing may change the folder; and none may call itself.
        """
        found = [each.name for each in reading.functions]
        spans = {each.name: each for each in reading.functions}
        calls_itself = any(
            spans[command.name].start <= command.start < spans[command.name].end
            for command in reading.commands
            if command.name in spans
        )
        is_plain = len(set(found)) == len(found) == len(reading.defines) and not self.folder.line.changes_folder
        if not self.book.confines or not is_plain or calls_itself or any(map(is_taken, found)):
            return frozenset()
        return frozenset(found)

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
        is_kept = self.book.confines and self.book.is_kept
        if is_kept and rule_for_code(part.words, self.folder, self._files, self.fed_by if not self.depth else None):
            return None
        if refused := self._refused([*part.wrapped, part.words], part.text):
            return refused
        judged = self._ask(part.text, "it runs what it reads from its standard input", OBEYS_INPUT)
        return self._allow(part.text, CLOSED) if self._may_close(part.words, judged) else judged

    def _why_evaluates(self, part: Arithmetic) -> str | None:
        """Why arithmetic may run commands: a variable may hold more than a number."""
        if name := next((name for name in part.sets if not (self.book.confines and self._is_own(name))), None):
            return f"it sets '{name}'"
        if not all(map(self.folder.line.prints_number, part.outputs)):
            return "what a command prints is evaluated, and that may be a command"
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
        judged = self._command(words, wrapped, text)
        return self._allow(text, CLOSED) if self._may_close(words, judged) else judged

    @property
    def _closes(self) -> bool:
        """Whether what nobody vouches for may look where nothing of others is to be seen.

        Not where a rule is against something: what it is about has to be seen.
        """
        return self.book.closes and self.book.confines and not self.book.refuses and not self._trusts

    def _may_close(self, words: Sequence[Word], judged: Judged) -> bool:
        if judged.decision != "ask" or judged.doubt is None or not self._closes:
            return False
        if may_look_closed(words, judged, self.folder, self._files, self.fed_by if not self.depth else None):
            return True
        line = line_in_shell(words, judged) if self.depth < DEEPEST and not self.folder.leaves else None
        if line is None:
            return False
        # What xargs or a shell puts into the line may be a command: it looks no further than all others.
        expanded = ExpandedLine(read_line(line), self.folder.cwd, self.folder.workspace, FRESH, self.folder.line.own)
        judge = Judge(self.book, self.tool, WorkingFolder(expanded, self.folder.site_here()), FRESH, self.depth + 1)
        return judge.line(expanded.reading()).decision == "allow"

    def _command(self, words: Sequence[Word], wrapped: Sequence[Sequence[Word]], text: str) -> Judged:
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
        if words[0].value in self.functions and not wrapped:
            return judged_as("allow", text, "command", "a function of the line, which is judged where it stands")
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
        if self.book.confines and (inner_line := line_for_shell(words)):
            return self._by_line(text, *inner_line)
        carried = carried_by(words)
        if carried is None or not carried.is_all or self.depth >= DEEPEST:
            return None
        inner = Judge(
            self.book, self.tool, self.folder, self.shell, self.depth + 1, fed_by=self.fed_by, texts=self.texts
        )
        reached: list[Judged] = []
        for command in carried.commands:
            wrapped, unwrapped = take_off_wrappers(self._with_input(words, command))
            judged = inner.command(unwrapped, wrapped, " ".join(word.text for word in command))
            if judged.decision != "allow":
                return self._ask(text, f"it runs '{judged.text}': {judged.reason}", judged.doubt)
            reached.append(judged)
        if words[0].value in LOOKS_BESIDES:  # for files, which is for a rule of its own
            at = next((at for at, word in enumerate(words) if word.value in FD_RUNS), len(words))
            found = self._by_rule(words[:at] if words[0].value in ("fd", "fdfind") else words, text)
            return found if found.decision != "allow" else with_reach_of(found, reached)
        return with_reach_of(judged_as("allow", text, "command", "what it runs is allowed"), reached)

    def _by_line(self, text: str, line: str, given: Sequence[Word]) -> Judged | None:
        """`sh -c LINE NAME ARGUMENT…`: as dangerous as the line, with these arguments."""
        if self.depth >= DEEPEST or self.folder.moves or self.fed_by is None or self.shell is not FRESH:
            return None
        values = tuple(self.folder.line.given_value(word, self.fed_by) for word in given)
        site = self.folder.site_here()
        expanded = ExpandedLine(read_line(line), site.cwd, site.workspace, FRESH, site.own, values)
        inner = Judge(self.book, self.tool, WorkingFolder(expanded, site), FRESH, self.depth + 1, texts=self.texts)
        verdict = inner.line(expanded.reading())
        if verdict.decision != "allow" or inner.reads_input(expanded.written):
            return (
                None
                if verdict.decision == "allow"
                else self._ask(text, f"it runs '{line}': {verdict.reason}", "carrier")
            )
        self.texts.append(line)
        return with_reach_of(judged_as("allow", text, "command", "what it runs is allowed"), verdict.parts)

    def reads_input(self, reading: Reading) -> bool:
        """Whether a line inside of another may be given names by that one, which are not followed."""
        return any(command.name in ("xargs", "read", *READS_LINES) for command in reading.commands)

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
        if self.book.confines and self.book.is_kept and (rule := self._only_looks(words, is_listed=bool(found))):
            return self._allow(text, rule)
        return judged or self._otherwise(text, self._why_unlisted(words[0]), "no_rule")

    def _only_looks(self, words: Sequence[Word], *, is_listed: bool) -> Rule | None:
        """What lets a command look in a sandbox that wholly keeps it in, although no rule of a preset spells it out."""
        fed_by = self.fed_by if not self.depth else None
        # Nobody knows what such a program obeys in the folder, so it gets a closed look where that can be had.
        is_unknown = self._closes and words[0].value not in ONLY_LOOKS
        return (
            rule_for_help(words, self.folder, self._files)
            or rule_for_code(words, self.folder, self._files, fed_by)
            or (None if is_listed or is_unknown else rule_for_others(words, self.folder, self._files))
        )

    def _listed(self, words: Sequence[Word], text: str, rule: Rule) -> Judged | None:
        """A call of a program that lists and changes, where a preset means what only lists; None for other programs."""
        is_git = words[0].value == "git"
        row = listing_of((git_subcommand(words) or words) if is_git else words)
        if row is None and words[0].value in COMMANDS:
            return self._ask(
                text, f"it is not known to list or print; the rule '{rule.text}' does not cover that", "option", rule
            )
        if row is None:
            return None
        listing, rest = row
        given, files = listing.read(rest), self._files
        guard = None if is_git else LISTED_GUARDS.get(words[0].value or "")
        concerns = [*given.concerns, *(guard(words, self.folder) if guard else ())]
        concerns += listing.options.more(given, self.folder) if listing.options.more else ()
        if is_git and rule.text != "git help **":
            concerns += git_concerns(words, self.folder, 2)
        for each in concerns:
            if each.writes is None:
                return self._ask(text, f"{each.message}; the rule '{rule.text}' does not cover that", "option", rule)
            if why := files.why_not_write(each.writes):
                return self._ask(text, f"{each.message}, and {why}", "write", rule)
        if why := files.why_of_process(words) or files.why_outside(
            words, Operands(tuple(given.paths), given.unknown, given.follows)
        ):
            return self._ask(text, why, "outside", rule)
        if why := files.why_obeyed(listing.obeys):
            return self._ask(text, why, "settings", rule)
        if (is_git or listing.is_git) and (why := files.why_repository(words if is_git else words[:1])):
            return self._ask(text, why, "repository", rule)
        return self._allow(text, rule)

    def _why_unlisted(self, program: Word) -> str:
        name = program.value or program.text
        return f"Command '{name}' is not in the allowlist" if self.book.is_allowlist else "no rule allows it"

    def _covered(self, words: Sequence[Word], text: str, rule: Rule, named: int) -> Judged:
        beyond = f"the rule '{rule.text}' does not cover that"
        words, files = sampled(words), self._files
        if rule.confined and (listed := self._listed(words, text, rule)):
            return listed
        if why := why_never_covered(words, named):
            return self._ask(text, f"{why}; {beyond}", "carrier", rule)
        if why := why_not_here(words, self.folder):
            return self._ask(text, why, "place", rule)
        if why := files.why_of_process(words):
            return self._ask(text, why, "process", rule)
        for each in concerns_about(words, self.folder, named):
            is_hidden = rule.confined and each.option is not None and each.option.expanded
            if each.option is not None and each.option in words[:named] and not is_hidden:
                if rule.confined and (why := files.why_not_changed(words)):
                    return self._ask(text, why, "write", rule)
                continue
            if rule.confined and each.message == READS_ANY:
                continue  # which files these are is looked at below
            if each.writes is None:
                return self._ask(text, f"{each.message}; {beyond}", "option", rule)
            if why := files.why_not_write(each.writes):
                return self._ask(text, f"{each.message}, and {why}", "write", rule)
        if rule.confined and (why := files.why_outside(words)):
            return self._ask(text, why, "outside", rule)
        if rule.confined and words[0].value == "git" and (why := files.why_repository(words)):
            return self._ask(text, why, "repository", rule)
        is_own_only = self.book.usual_reach == "look" or words[0].value in OWN_ONLY
        if rule.confined and is_own_only and (why := files.why_written(words)):
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
            why = None if is_read else NOT_CERTAIN
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
            why = self._why_listed(part.elements or ()) if is_free else SETS_A_VARIABLE
        elif before_read and part.name == "IFS" and value is not None:
            pass  # how read splits its line, and nothing else
        elif self.book.confines and is_own_variable(part.name, exported=True) and value is not None:
            pass  # the program sees it, and obeys none of that name
        elif not is_harmless(part.name, value):
            why = f"'{part.text}' {CHANGES_THE_COMMAND}"
        return self._unless(why, part.text, "assignment", "it changes nothing but how the command prints")

    def _unless(self, why: str | None, text: str, kind: str, fine: str, rule: Rule | None = None) -> Judged:
        """Free, unless there is a reason why not."""
        if why is None:
            return judged_as("allow", text, kind, fine, rule=rule)
        if self._closes and not self.folder.leaves and settles(why, text, kind, self.folder.line.written.text):
            return judged_as("allow", text, kind, f"the rule '{CLOSED.text}'", rule=CLOSED)
        is_about_files = kind == "redirection" and self.book.refuses_files
        if self._trusts_blindly or (self._is_kept_in and not is_about_files):
            return judged_as("allow", text, kind, self._why_trusted)
        return self._otherwise(text, why, kind, kind)

    def _doubt(self, doubt: Doubt, line: str) -> Judged:
        text = doubt.text or line
        if doubt.code == FILE_DOUBT and self.book.confines:
            return judged_as("allow", text, "doubt", "which file is read is judged by itself")
        if doubt.code == FUNCTION_DOUBT and self.functions:
            return judged_as("allow", text, "function", "what it runs is judged where it stands")
        if self._trusts_blindly or (self._is_kept_in and doubt.code in SEEN_THROUGH):
            return judged_as("allow", text, "doubt", self._why_trusted)
        if self._closes and settles_doubt(doubt):
            return judged_as("allow", text, "doubt", f"the rule '{CLOSED.text}'", rule=CLOSED)
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


LOOKS_BESIDES = frozenset({"find", "gfind", "fd", "fdfind"})
BUILTINS = CHANGES_THE_SHELL | {
    "pushd",
    "popd",
    "dirs",
    "shift",
    "return",
    "times",
    "caller",
    "disown",
    "fg",
    "bg",
    "logout",
}
SHELLS_OF_LINES = frozenset({"bash", "sh", "dash"})
ONLY_BASH = re.compile(
    r"(?<!\$)\(\(|\[\[|&>|>&\s*[^\s\d-]|\|&|<<<|[<>]\(|\$['\"]|=\(|\+=|\b(?:function|export|readonly|local|declare|typeset|let|select)\b"
    r"|\$\{[^}]*[/^,\[]|\$\{\w+:\d"
)
"""What other shells take for something else than bash does, as whose the line is read."""


def line_for_shell(words: Sequence[Word]) -> tuple[str, Sequence[Word]] | None:
    """The line that a shell is given, and the arguments for it; None for any other call."""
    values = [word.value for word in words[:3]]
    if len(values) < 3 or values[0] not in SHELLS_OF_LINES or values[1] not in LINE_FOLLOWS or values[2] is None:
        return None
    if values[0] != "bash" and ONLY_BASH.search(values[2]):
        return None
    return values[2], words[4:]


def with_reach_of(judged: Judged, parts: Sequence[Judged]) -> Judged:
    """What was allowed for its parts, with the least reach that one of them may have."""
    lowered = [part for part in parts if part.reach is not None and part.decision == "allow"]
    if not lowered:
        return judged
    least = min(lowered, key=lambda part: REACHES.index(part.reach or "work"))
    return replace(judged, rule=least.rule, origin=least.origin, reach=least.reach)


def is_taken(name: str) -> bool:
    """Whether something is called like a function already, so that who reads the line may take it for that."""
    return is_known(name) or name in BUILTINS or name == "command_not_found_handle" or shutil.which(name) is not None


def sampled(words: Sequence[Word]) -> list[Word]:
    """The words, each with one of its numbers; to sed one below zero is an option that it does not know."""
    if words[0].value not in ("sed", "gsed"):
        return [word.sampled for word in words]
    return [
        word.sampled if word.signed_sample is None else literal_word(word.signed_sample, word.start, word.end)
        for word in words
    ]


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

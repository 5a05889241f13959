"""`toolyard permissions`: what may run, why, and what the user granted or forbade."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from toolyard.cli.application import config_path, known_agent, read_config
from toolyard.cli.main import OrderedGroup
from toolyard.cli.render import relative, show_json, show_note, show_problems, show_rows, show_text
from toolyard.cli.running import run_to_end
from toolyard.core.reach import NAMED_REACHES

if TYPE_CHECKING:
    from toolyard.cli.main import GlobalOptions
    from toolyard.config.configuration import Configuration
    from toolyard.core.reach import Reach
    from toolyard.permissions.grants import Grant
    from toolyard.permissions.paths import OwnFolders
    from toolyard.permissions.policy import RulePolicy
    from toolyard.permissions.policy_tests import PolicyCaseOutcome
    from toolyard.permissions.rules import Rule, RuleBook
    from toolyard.permissions.verdict import Verdict


STYLES = {"allow": "good", "ask": "warning", "deny": "error"}
json_option = click.option("--json", "as_json", is_flag=True, help="Print records for programs.")
agent_option = click.option("--agent", metavar="A", help="Whose rules; default 'default', or else the first agent.")
rules_option = click.option(
    "--rules",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Only the rules of this file: an object with the lists allow, ask and deny.",
)


@click.group(cls=OrderedGroup)
def permissions() -> None:
    """Say what may run and why, test rules, and keep or take back what you granted."""


@permissions.command(short_help="Say whether a command may run, and why.")
@click.argument("command")
@rules_option
@agent_option
@click.option("--tool", metavar="T", default="bash", show_default=True, help="The tool that would run it.")
@click.option("--reach", type=click.Choice(NAMED_REACHES), help="How far it wants to reach.")
@json_option
@click.pass_obj
def check(
    options: GlobalOptions,
    command: str,
    rules: Path | None,
    agent: str | None,
    tool: str,
    reach: Reach | None,
    as_json: bool,
) -> int:
    """Say of each part of COMMAND which rule or which doubt decides it. Nothing runs.

    Exit status: 0, whatever the verdict is, or 2 when the rules cannot be read.
    """
    return run_to_end(check_once(options, command, rules, agent, tool, reach, as_json))


@permissions.command(short_help="Test rules with cases.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@rules_option
@agent_option
@json_option
@click.pass_obj
def test(options: GlobalOptions, file: Path, rules: Path | None, agent: str | None, as_json: bool) -> int:
    """Judge the cases of FILE, a JSON object a line: `command`, `rules`, and `must`, which is auto_allow,
    not_auto_allow or deny. A case without rules is judged by those in force.

    Prints the cases that differ, and the lines that are no case. Exit status: 0 none does, 1 some do, 2 a line is no
    case.
    """
    return run_to_end(test_once(options, file, rules, agent, as_json))


@permissions.command("list", short_help="List the rules in force.")
@agent_option
@json_option
@click.pass_obj
def list_rules(options: GlobalOptions, agent: str | None, as_json: bool) -> int:
    """List the rules in force here, your own before a preset's, with where each is written, grants with their ids."""
    from toolyard.runtime.sandbox_policy import how_kept

    policy, agent, configuration = policy_in_force(options, agent)
    book = policy.book(agent, os.getcwd(), kept=how_kept(configuration))
    show_problems([*policy.sections.of(agent).problems, *policy.problems()])
    grants = {f"{policy.grants.file}, grant {grant.id}": grant for grant in policy.grants.load().grants}
    ones_own = sorted(book.rules, key=lambda rule: rule.origin.is_preset)
    rows = [rule_row(rule, grants.get(str(rule.origin))) for rule in ones_own]
    if as_json:
        show_json(rows)
    elif rows:
        show_rows([[str(row["decision"]), rule_shown(row), relative(str(row["where"]))] for row in rows])
    if not policy.sections.of(agent).is_configured:
        show_note(
            "no 'permissions' are configured: whatever no rule denies may run; only the reach outside is asked about",
            "warning",
        )
    return 0


@permissions.command(short_help="Allow something from now on.")
@click.argument("rule")
@click.option("--everywhere", is_flag=True, help="In every workspace, not only in this one.")
@click.pass_obj
def allow(options: GlobalOptions, rule: str, everywhere: bool) -> int:
    """Allow what RULE describes, from now on and in this workspace: a pattern of commands such as 'git status **', or
    a rule as a JSON object."""
    return grant(options, "allow", rule, None if everywhere else workspace_of(options))


@permissions.command(short_help="Forbid something from now on.")
@click.argument("rule")
@click.option("--here", is_flag=True, help="In this workspace only.")
@click.pass_obj
def deny(options: GlobalOptions, rule: str, here: bool) -> int:
    """Forbid what RULE describes, from now on and everywhere: a pattern of commands such as 'rm **', or a rule as a
    JSON object."""
    return grant(options, "deny", rule, workspace_of(options) if here else None)


@permissions.command(short_help="Take back a grant.")
@click.argument("what", metavar="ID|RULE")
@click.pass_obj
def revoke(options: GlobalOptions, what: str) -> int:
    """Take back what was granted or forbidden, by its id or its rule."""
    store = policy_in_force(options)[0].grants
    gone = store.revoke(what)
    for grant in gone:
        show_text(f"{grant.id} {grant.decision} {what if grant.id != what else grant.rule}\n")
    if not gone:
        show_note(f"there is no grant '{what}'", "error", hint="toolyard permissions list")
    return 0 if gone else 2


def rule_row(rule: Rule, grant: Grant | None) -> dict[str, str | None]:
    return {
        "decision": rule.decision,
        "rule": rule.text,
        "folder": None if rule.folder is None else "/".join(rule.folder) or ".",
        "where": str(rule.origin),
        "id": grant.id if grant else None,
        "from": grant.source if grant else None,
    }


def rule_shown(row: dict[str, str | None]) -> str:
    return f"{row['rule']}{', in the top of the workspace' if row['folder'] == '.' else ''}"


def grant(options: GlobalOptions, decision: Literal["allow", "deny"], text: str, workspace: str | None) -> int:
    from toolyard.permissions.rules import Rule, RuleOrigin, parse_rule

    value = rule_value(text)
    rule = parse_rule(value, decision, RuleOrigin(label="typed"))
    if not isinstance(rule, Rule):
        show_note(f"'{text}' is no rule: {rule.message}", "error")
        return 2
    store = policy_in_force(options)[0].grants
    kept = store.add(decision, value, workspace=workspace, source=text, by=f"toolyard permissions {decision}")
    show_text(f"{kept.id} {decision} {rule.text}{f' in {workspace}' if workspace else ''}\n")
    if decision == "allow" and rule.command is not None and not rule.command.words:
        where = f" in {workspace}" if workspace else ", everywhere"
        undo = f"toolyard permissions revoke {kept.id}"
        show_note(f"this allows every command that no rule denies{where}", "warning", hint=undo)
    elif decision == "allow" and (why := without_effect(rule)):
        show_note(f"this rule alone allows nothing: {why}", "warning")
    return 0


def without_effect(rule: Rule) -> str | None:
    """Why an allow rule does not allow what it seems to."""
    from toolyard.bash.syntax.words import literal_word
    from toolyard.permissions.programs.categories import PRIVILEGED
    from toolyard.permissions.programs.guards import why_never_covered

    if rule.command is None or not rule.command.words:
        return None
    words = [literal_word(word) for word in rule.command.words[: rule.command.named] if isinstance(word, str)]
    if words[0].value in PRIVILEGED:
        return f"'{words[0].value}' is refused whatever the rules say"
    if rule.command.is_exact:
        return None
    why = why_never_covered(words, len(words))
    return f"{why}, which '**' and '*' never cover; spell the command out" if why else None


def rule_value(text: str) -> Any:
    """A rule as it was typed: JSON, or a pattern of commands."""
    import json

    if not text.lstrip().startswith("{"):
        return {"command": text}
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"RULE is no JSON object: {error}") from error


def workspace_of(options: GlobalOptions) -> str:
    return os.path.abspath(options.workspace or ".")


async def check_once(
    options: GlobalOptions,
    command: str,
    rules: Path | None,
    agent: str | None,
    tool: str,
    reach: Reach | None,
    as_json: bool,
) -> int:
    from toolyard.permissions.decide import decide_line
    from toolyard.permissions.file_access import CallSite
    from toolyard.permissions.grants import GrantStore, default_grants_file
    from toolyard.permissions.reach import with_reach

    # No rule for a folder lets a command write the files that hold the rules themselves.
    files_of_rules = (config_path(options).absolute(), *GrantStore(default_grants_file()).files)
    found = book_of(options, rules, agent)
    if found is None:
        return 2
    (book, own), here = found, os.getcwd()
    protected = tuple(map(str, files_of_rules))
    where = CallSite(tool=tool, cwd=here, workspace=here, protected=protected, own=own)
    decided = await decide_line(command, book.reaching(reach), where, wanted=reach)
    verdict = with_reach(decided, reach, book.usual_reach)
    if as_json:
        show_json(verdict.as_mapping())
    else:
        show_verdict(verdict)
    return 0


async def test_once(options: GlobalOptions, file: Path, rules: Path | None, agent: str | None, as_json: bool) -> int:
    from toolyard.permissions.paths import NO_OWN_FOLDERS
    from toolyard.permissions.policy_tests import BadCase, read_cases, run_case

    book, own = book_of(options, rules, agent, says_so=False) or (None, NO_OWN_FOLDERS)
    outcomes: list[PolicyCaseOutcome] = []
    bad = 0
    for case in read_cases(file):
        outcome = case.message if isinstance(case, BadCase) else await run_case(case, book, own)
        if isinstance(outcome, str):
            bad += 1
            show_note(f"{relative(str(file))}:{case.line}: {outcome}", "error")
        else:
            outcomes.append(outcome)
    if as_json:
        show_json([outcome.as_mapping() for outcome in outcomes])
    else:
        show_differences(outcomes, bad)
    return 2 if bad else 1 if any(not outcome.passed for outcome in outcomes) else 0


def book_of(
    options: GlobalOptions, rules: Path | None, agent: str | None, *, says_so: bool = True
) -> tuple[RuleBook, OwnFolders] | None:
    """The rules of a file, or those in force, and which temporary files are a call's own; None, after a message, when
    they cannot be read.
    """
    from toolyard.permissions.paths import NO_OWN_FOLDERS

    if rules is None:
        policy, agent, configuration = policy_in_force(options, agent)
        section = policy.sections.of(agent)
        show_problems([*section.problems, *policy.problems()])
        if section.is_configured:
            return book_in_force(policy, agent, configuration)
        if says_so:
            show_note(
                "no 'permissions' are configured, so only the reach outside is asked about; this is what the preset "
                "'workspace' would say"
            )
        section.is_configured = True
        return policy.book(agent, os.getcwd()), NO_OWN_FOLDERS
    from toolyard.config.document import read_document
    from toolyard.core.problems import Problem
    from toolyard.permissions.rules import RuleBook
    from toolyard.permissions.section import LISTS, read_rules

    document = read_document(rules)
    if isinstance(document, Problem):
        show_problems([document])
        return None
    value = document.value if isinstance(document.value, dict) else {}
    read = [read_rules(value[key], key, document, (key,)) for key in LISTS if key in value]
    problems = [problem for _, found in read for problem in found]
    show_problems(problems)
    if problems or not read:
        show_note(f"{rules} holds no rules: an object with the lists allow, ask and deny", "error")
        return None
    return RuleBook([rule for found, _ in read for rule in found]), NO_OWN_FOLDERS


def book_in_force(policy: RulePolicy, agent: str, configuration: Configuration) -> tuple[RuleBook, OwnFolders]:
    """The rules as they hold where calls are kept in, and the temporary files that they would have for themselves."""
    from toolyard.permissions.paths import OwnFolders
    from toolyard.runtime.sandbox_policy import how_kept, temporary_folders

    folders, others = temporary_folders(configuration, os.getcwd())
    of_rules = (str(configuration.document.path.absolute()), *map(str, policy.grants.files))
    book = policy.book(agent, os.getcwd(), kept=how_kept(configuration))
    return book, OwnFolders(folders, (*others, *of_rules))


def policy_in_force(options: GlobalOptions, agent: str | None = None) -> tuple[RulePolicy, str, Configuration]:
    """The rules of the configuration in use and the user's grants, without loading any tool; and the agent meant."""
    from toolyard.permissions.grants import GrantStore, default_grants_file
    from toolyard.permissions.policy import RulePolicy
    from toolyard.permissions.section import Sections

    configuration, _ = read_config(options)
    damage = () if configuration.readable else configuration.problems
    show_problems(damage)
    sections = Sections(configuration.value, configuration.document, damage)
    policy = RulePolicy(sections, GrantStore(default_grants_file()))
    return policy, known_agent(configuration.agents(), agent), configuration


def show_verdict(verdict: Verdict) -> None:
    """A verdict for a person: the decision first, then what decided each part."""
    reach = "" if verdict.decision == "deny" else f" (reach {verdict.reach})"
    show_text(f"{verdict.decision}{reach}: {verdict.reason}\n", STYLES[verdict.decision])
    for part in verdict.parts:
        where = f" ({relative(part.where)})" if part.where and part.where not in part.reason else ""
        show_text(f"  {part.decision:5} {' '.join(part.text.split())}: {part.reason}{where}\n")
    for offer in verdict.offers:
        show_text(f"  always would save: {offer.shown}\n", "faint")


def show_differences(outcomes: list[PolicyCaseOutcome], bad: int) -> None:
    failed = [outcome for outcome in outcomes if not outcome.passed]
    for outcome in failed:
        case = outcome.case
        show_text(
            f"{case.id}: must be {case.must}, is {outcome.verdict.decision}: {outcome.verdict.shown!r}\n", "error"
        )
        show_text(f"  {outcome.verdict.reason}\n")
        if case.why:
            show_text(f"  {case.why}\n", "faint")
    unread = f", {bad} that {'is' if bad == 1 else 'are'} no case" if bad else ""
    style = "error" if failed or bad else "good"
    show_note(f"{len(outcomes) - len(failed)} as they must be, {len(failed)} not{unread}", style)

"""The `permissions` of a configuration: of all, a provider, an agent. Rules add up; the nearest preset holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import msgspec

from toolyard.config.layers import mapping, values_in_layers
from toolyard.config.settings import PermissionRule, PermissionSettings, Preset
from toolyard.core.problems import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolyard.config.document import Document
    from toolyard.core.events import Decision
    from toolyard.core.json_values import Pointer
    from toolyard.core.problems import Problem
    from toolyard.core.tool import Json
    from toolyard.permissions.rules import Rule


LISTS: tuple[Decision, ...] = ("allow", "ask", "deny")
PRESETS: tuple[Preset, ...] = get_args(Preset)


class Section(msgspec.Struct, eq=False):
    """What the configuration says about an agent's calls."""

    is_configured: bool = False
    preset: Preset | None = None
    """None where none is named: what is best then depends on what keeps calls in."""
    allowed_commands: list[str] | None = None
    operators: bool = True
    ask_timeout: float = PermissionSettings().ask_timeout_seconds
    rules: list[Rule] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)

    @property
    def broken(self) -> str:
        """Why the rules cannot be relied on: one that could not be read may have been against something."""
        errors = [problem for problem in self.problems if problem.severity == "error"]
        return f"the permission rules are damaged ({errors[0].where})" if errors else ""


class Sections:
    """The sections of all agents of a configuration, each read once."""

    def __init__(self, value: Json, document: Document, damage: Sequence[Problem] = ()) -> None:
        self._value, self._document = value, document
        self._damage = damage
        """Why there is no configuration to read them from: it may have been against anything."""
        self._known: dict[str, Section] = {}

    def of(self, agent: str) -> Section:
        if agent not in self._known:
            section = self._known[agent] = read_permissions(self._value, self._document, agent)
            section.problems += self._damage
            section.is_configured = section.is_configured or bool(self._damage)
        return self._known[agent]

    def problems(self, agents: Iterable[str]) -> list[Problem]:
        return [each for agent in agents for each in self.of(agent).problems]


def read_permissions(value: Json, document: Document, agent: str) -> Section:
    section = Section()
    for pointer, level in values_in_layers(mapping(value), agent, "permissions"):
        section.is_configured = True
        read_level(level, document, pointer, section)
    return section


def read_level(level: Json, document: Document, pointer: Pointer, section: Section) -> None:
    if not isinstance(level, dict):
        section.problems.append(problem(document, pointer, "'permissions' must be an object"))
        return
    for key, value in level.items():
        here = (*pointer, key)
        if key in LISTS:
            rules, problems = read_rules(value, key, document, here)
            section.rules += rules
            section.problems += problems
        else:
            read_setting(key, value, document, here, section)


def read_setting(key: str, value: Json, document: Document, here: Pointer, section: Section) -> None:
    match key, value:
        case "preset", str() | None if value is None or value in PRESETS:
            section.preset = msgspec.convert(value, Preset | None)
        case "preset", _:
            section.problems.append(problem(document, here, f"'preset' must be one of {', '.join(PRESETS)}"))
        case "allowed_commands", None:
            pass
        case "allowed_commands", list() if all(isinstance(name, str) and name.isprintable() and name for name in value):
            section.allowed_commands = value
        case "allowed_commands", _:
            section.problems.append(problem(document, here, "'allowed_commands' must be a list of names"))
        case "operators", bool():
            section.operators = value
        case "operators", _:
            section.problems.append(problem(document, here, "'operators' must be true or false"))
        case "ask_timeout_seconds", int() | float() if not isinstance(value, bool) and value > 0:
            section.ask_timeout = float(value)
        case "ask_timeout_seconds", _:
            section.problems.append(problem(document, here, "'ask_timeout_seconds' must be a number above 0"))
        case _:
            known = PermissionSettings.__struct_fields__
            hint = did_you_mean(key, known, otherwise=f"it has {', '.join(known)}")
            # A misspelled 'deny' must not be a list of rules that nobody heeds.
            found = problem(document, here, f"'permissions' has no '{key}'", hint)
            section.problems.append(found.at(document.position(here, of_key=True)))


def read_rules(
    value: Json, decision: Decision, document: Document, pointer: Pointer
) -> tuple[list[Rule], list[Problem]]:
    """A list of rules; each that is none is a problem of its own."""
    from toolyard.config.shape import first_fault
    from toolyard.permissions.rules import Rule, RuleOrigin, parse_rule

    if not isinstance(value, list):
        return [], [problem(document, pointer, f"'{decision}' must be a list of rules")]
    rules: list[Rule] = []
    problems: list[Problem] = []
    for index, item in enumerate(value):
        here = (*pointer, index)
        rule = parse_rule(item, decision, RuleOrigin(label=str(document.path), document=document, pointer=here))
        if isinstance(rule, Rule):
            rules.append(rule)
        else:
            where = first_fault(item, PermissionRule, here, document) if isinstance(item, dict) else None
            problems.append(rule.at(where or document.position(here)))
    return rules, problems


def problem(document: Document, pointer: Pointer, message: str, hint: str = "") -> Problem:
    from toolyard.permissions.patterns import bad_rule

    found = bad_rule(message, hint) if hint else bad_rule(message)
    return found.at(document.position(pointer))

"""Presets: what holds before any rule of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from toolyard.permissions.rules import Origin, Rule, parse_rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.settings import Preset
    from toolyard.core.events import Decision

__all__ = ["ALLOWLIST", "PresetRules", "preset_rules"]

LOOKING = """
    ls **; cat **; head **; tail **; wc **; grep **; egrep **; fgrep **; rg **; find **; fd **; stat **; file **; du
    **; df **; pwd **; cd **; tree **; readlink **; realpath **; basename **; dirname **; diff **; cmp **; comm **;
    cut **; tr **; sort **; uniq **; nl **; tac **; rev **; fold **; fmt **; paste **; join **; column **; od **;
    hexdump **; xxd **; strings **; md5sum **; sha1sum **; sha256sum **; sha512sum **; cksum **; base64 **; jq **;
    sed **; awk **; echo **; printf **; true; false; :; test **; [ **; which **; type **; command -v **; read **;
    seq **; expr **; sleep **; date **; id; whoami; uname **; hostname; uptime; nproc; free **; ps; ps aux; ps -ef;
    wait; jobs; exit **; break; continue; git status **; git log **; git diff **; git show **; git blame **; git
    grep **; git ls-files **; git ls-tree **; git rev-parse **; git rev-list **; git describe **; git shortlog **;
    git cat-file **; git show-ref **; git merge-base **; git branch; git branch -a; git branch -v; git branch -vv;
    git branch --list **; git branch --show-current; git tag; git tag --list **; git tag -l **; git remote; git
    remote -v; git stash list; git worktree list; git config --get **; git config --list; git --version; python
    --version; python3 --version; node --version; npm --version; go version; cargo --version; rustc --version; ruby
    --version; java -version; gcc --version; make --version; bash --version; docker --version; uv --version; set -e; set
    -eu; set -euo pipefail; set -o pipefail; set +e
"""
WORKING = "mkdir **; touch **; cp **; tee **; git add **"
TYPING: dict[str, Any] = {"tool": "bash_job", "arguments": {"action": "write"}}
"""What is typed into a running program may be a command of its."""
ALLOWLIST = ("ls", "cat", "echo", "pwd", "grep", "find", "wc", "head", "tail")


class PresetRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a preset stands for."""

    rules: list[Rule] = msgspec.field(default_factory=list)
    trusts: bool = False
    otherwise: Decision = "ask"
    tools_otherwise: Decision = "ask"


def preset_rules(preset: Preset, allowed_commands: Sequence[str] | None = None) -> PresetRules:
    """The rules of a preset, and what holds where none of them speaks."""
    origin = Origin(label=f"preset {preset}")
    match preset:
        case "ask-everything":
            return PresetRules()
        case "trusted":
            return PresetRules(trusts=True, tools_otherwise="allow")
        case "allowlist":
            names = ALLOWLIST if allowed_commands is None else allowed_commands
            rules = made([f"{name} **" for name in names], "allow", origin, confined=False)
            return PresetRules(
                rules=[*rules, *made([TYPING], "deny", origin)], otherwise="deny", tools_otherwise="allow"
            )
        case "read-only":
            return PresetRules(rules=[*made(split(LOOKING), "allow", origin), *made([TYPING], "ask", origin)])
        case "workspace":
            rules = made([*split(LOOKING), *split(WORKING), {"write": "**"}], "allow", origin)
            return PresetRules(rules=[*rules, *made([TYPING], "ask", origin)], tools_otherwise="allow")


def split(text: str) -> list[str]:
    return [pattern.strip() for pattern in text.replace("\n", " ").split(";")]


def made(values: Sequence[Any], decision: Decision, origin: Origin, *, confined: bool = True) -> list[Rule]:
    rules = [parse_rule(value, decision, origin, confined=confined) for value in values]
    return [rule for rule in rules if isinstance(rule, Rule)]

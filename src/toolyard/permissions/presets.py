"""Presets: ready-made sets of rules, and what holds where no rule fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.permissions.rules import PRESET, Rule, RuleBook, RuleOrigin, valid_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.settings import Preset
    from toolyard.core.reach import Kept
    from toolyard.permissions.section import Section


LOOKING = """
    ls **; cat **; head **; tail **; wc **; grep **; egrep **; fgrep **; rg **; find **; fd **; stat **; file **;
    du **; df **; pwd **; cd **; tree **; readlink **; realpath **; basename **; dirname **; diff **; cmp **; comm **;
    cut **; tr **; sort **; uniq **; nl **; tac **; rev **; fold **; fmt **; paste **; join **; column **; od **;
    hexdump **; xxd **; strings **; md5sum **; sha1sum **; sha256sum **; sha512sum **; cksum **; base64 **; jq **;
    b2sum **; sha224sum **; sha384sum **; base32 **; expand **; unexpand **; pr **; tsort **; shuf **; zcat **;
    zgrep **; tar **; unzip **; zipinfo **; gzip -l **; ag **; numfmt **; arch; tty; locale; groups; getconf **;
    id **;
    sed **; awk **; echo **; printf **; true; false; :; test **; [ **; which **; type **; command -v **; read **;
    seq **; expr **; sleep **; date **; id; whoami; uname **; hostname **; uptime;
    nproc; free **; ps **; env; printenv **; help **;
    wait; jobs; exit **; break; continue; git status **; git log **; git diff **; git show **; git blame **;
    git grep **; git ls-files **; git ls-tree **; git rev-parse **; git rev-list **; git describe **; git shortlog **;
    git cat-file **; git show-ref **; git merge-base **; git branch; git branch -a; git branch -v; git branch -vv;
    git branch --list **; git branch --show-current; git tag; git tag --list **; git tag -l **; git remote;
    git remote -v; git remote get-url **; git stash list **; git stash show **; git reflog **; git worktree list **;
    git for-each-ref **; git name-rev **; git count-objects **; git check-ignore **; git whatchanged **;
    git branch -r; git branch -av; git branch -avv; git branch -rv; git branch --all; git branch --remotes;
    git branch --contains **; git branch --merged **; git branch --no-merged **; git tag --contains **; git tag -n **;
    git tag --points-at **; git config **; git --version; git tag --sort=*; git var **;
    git show-branch **; git diff-tree **; git submodule; git submodule status;
    python --version; python -V; python3 --version; python3 -V; pip --version; pip3 --version; node --version; node -v;
    npm --version; npm -v; go version; cargo --version; cargo -V; rustc --version; rustc -V; ruby --version; ruby -v;
    java -version; java --version; gcc --version; g++ --version; clang --version; cmake --version; make --version;
    make -v; bash --version; docker --version; uv --version; perl --version; perl -v; php --version; php -v;
    git version; curl --version; wget --version; jq --version; tar --version; ssh -V;
    set -e; set -eu; set -euo pipefail; set -o pipefail; set +e
"""
"""Commands that look, of the presets `read-only` and `workspace`."""
MAKING = "mkdir **; touch **; cp **; tee **"
"""Commands that make files: of its own temporary ones in `read-only`, of any in the workspace in `workspace`."""
WORKING = f"{MAKING}; git add **"
"""What `workspace` allows besides."""
TYPING: dict[str, Any] = {"tool": "bash_job", "arguments": {"action": "write"}}
"""What is typed into a running program may be a command of its."""
OF_THE_SESSION: list[dict[str, Any]] = [{"tool": "bash_job"}, {"tool": "bash", "arguments": {"restart": "true"}}]
"""Looking after what a session itself has started."""
ALLOWLIST = ("ls", "cat", "echo", "pwd", "grep", "find", "wc", "head", "tail")


TRUSTED = RuleBook([], trusts=True, tools_otherwise="allow")
SANDBOXED = RuleBook([], trusts=True, kept_in=True, tools_otherwise="allow")


def make_book(section: Section, more: Sequence[Rule] = (), *, kept: Kept = "not") -> RuleBook:
    """The rules of a section with those of its preset, and further ones, for calls that are kept in so well."""
    preset = SANDBOXED if kept == "wholly" else TRUSTED
    if section.is_configured:
        preset = preset_rules(preset_in_force(section.preset, kept), section.allowed_commands)
    return preset.extended([*section.rules, *more], broken=section.broken, operators=section.operators)


def preset_in_force(named: Preset | None, kept: Kept) -> Preset:
    """The preset that holds. `sandboxed` rests on a sandbox: where none is, it is `workspace`.

    Where none is named, a sandbox that keeps only a part is not enough: nobody chose to do with it.
    """
    if named is None:
        return "sandboxed" if kept == "wholly" else "workspace"
    return "workspace" if named == "sandboxed" and kept == "not" else named


def preset_rules(preset: Preset, allowed_commands: Sequence[str] | None = None) -> RuleBook:
    """The rules of a preset; those of `read-only` and `workspace` hold only for paths inside the workspace."""
    origin = RuleOrigin(label=f"{PRESET}{preset}")
    match preset:
        case "ask-everything":
            return RuleBook([])
        case "trusted":
            return TRUSTED
        case "sandboxed":
            return SANDBOXED
        case "allowlist":
            names = ALLOWLIST if allowed_commands is None else allowed_commands
            rules = valid_rules([f"{name} **" for name in names], "allow", origin)
            rules += valid_rules([TYPING], "deny", origin)
            return RuleBook(rules, otherwise="deny", tools_otherwise="allow", is_allowlist=True)
        case "read-only":
            patterns = [*split(LOOKING), *split(MAKING), *OF_THE_SESSION]
            rules = valid_rules(patterns, "allow", origin, confined=True)
            return RuleBook([*rules, *valid_rules([TYPING], "ask", origin)], usual_reach="look")
        case "workspace":
            patterns = [*split(LOOKING), *split(WORKING), {"write": "**"}]
            rules = valid_rules(patterns, "allow", origin, confined=True)
            return RuleBook([*rules, *valid_rules([TYPING], "ask", origin)], tools_otherwise="allow")


def split(text: str) -> list[str]:
    return [pattern.strip() for pattern in text.replace("\n", " ").split(";")]

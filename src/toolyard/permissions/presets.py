"""Presets: ready-made sets of rules, and what holds where no rule fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.permissions.programs.categories import SHELLS
from toolyard.permissions.programs.listings.find import COMMANDS
from toolyard.permissions.programs.listings.git import GIT
from toolyard.permissions.programs.listings.packages import FLAT
from toolyard.permissions.programs.listings.shell import SHELL
from toolyard.permissions.programs.listings.system import SYSTEM
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
    zgrep **; tar **; unzip **; zipinfo **; ag **; numfmt **; arch; tty; groups;
    id **;
    sed **; awk **; echo **; printf **; true; false; :; test **; [ **; which **; type **; command -v **; read **;
    seq **; expr **; sleep **; date **; id; whoami; uname **; hostname **; uptime;
    nproc; free **; ps **; env; printenv **; help **;
    wait; exit **; break; continue; git status **; git log **; git diff **; git show **; git blame **;
    git grep **; git ls-files **; git ls-tree **; git rev-parse **; git rev-list **; git describe **; git shortlog **;
    git cat-file **; git show-ref **; git merge-base **; git for-each-ref **; git name-rev **; git count-objects **;
    git check-ignore **; git check-attr **; git whatchanged **; git config **; git var **; bash -n **; sh -n **;
    node --check **; node -c **;
    git diff-tree **; git --version; mount; npm run; docker compose version;
    python --version; python -V; python3 --version; python3 -V; pip --version; pip3 --version; node --version; node -v;
    npm --version; npm -v; go version; ruby --version; ruby -v;
    java -version; java --version; gcc --version; g++ --version; clang --version; cmake --version; make --version;
    make -v; bash --version; docker --version; uv --version; perl --version; perl -v; php --version; php -v;
    git version; curl --version; wget --version; jq --version; tar --version; ssh -V;
    set **
"""
"""Commands that look, of the presets `read-only` and `workspace`."""
LISTING = [
    *(f"{name} **" for name in (*SYSTEM, *SHELL) if name not in (*SHELLS, "node", "nodejs")),
    *(f"git {name} **" for name in GIT),
]
"""Commands that also change something: of these, the calls that only list or print."""
KEPT_LISTING: list[dict[str, Any]] = [{"command": f"{name} **", "reach": "look"} for name in (*COMMANDS, *FLAT, "man")]
"""The same of programs that obey files of the folder, or ask a service: only where a sandbox wholly keeps them in."""
MAKING = "mkdir **; touch **; cp **; tee **"
"""Commands that make files: of its own temporary ones in `read-only`, of any in the workspace in `workspace`."""
OWN_TEMPORARY = "rm **; rmdir **; mktemp"
"""What nothing but temporary files of its own may be given to."""
WORKING = f"{MAKING}; git add **; mv **; sed -i **; chmod **"
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
        preset = preset_rules(preset_in_force(section.preset, kept), section.allowed_commands, is_kept=kept == "wholly")
    return preset.extended([*section.rules, *more], broken=section.broken, operators=section.operators)


def preset_in_force(named: Preset | None, kept: Kept) -> Preset:
    """The preset that holds. `sandboxed` rests on a sandbox: where none is, it is `workspace`.

    Where none is named, a sandbox that keeps only a part is not enough: nobody chose to do with it.
    """
    if named is None:
        return "sandboxed" if kept == "wholly" else "workspace"
    return "workspace" if named == "sandboxed" and kept == "not" else named


def preset_rules(preset: Preset, allowed_commands: Sequence[str] | None = None, *, is_kept: bool = False) -> RuleBook:
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
            patterns = [*looking(is_kept=is_kept), *split(MAKING), *split(OWN_TEMPORARY), *OF_THE_SESSION]
            rules = valid_rules(patterns, "allow", origin, confined=True)
            return RuleBook(
                [*rules, *valid_rules([TYPING], "ask", origin)], usual_reach="look", is_kept=is_kept, closes=is_kept
            )
        case "workspace":
            working = [{"command": pattern, "reach": "work"} for pattern in split(WORKING)]
            patterns = [*looking(is_kept=is_kept), *working, *split(OWN_TEMPORARY), {"write": "**", "reach": "work"}]
            rules = valid_rules(patterns, "allow", origin, confined=True)
            return RuleBook(
                [*rules, *valid_rules([TYPING], "ask", origin)],
                tools_otherwise="allow",
                is_kept=is_kept,
                closes=is_kept,
            )


def looking(*, is_kept: bool) -> list[str | dict[str, Any]]:
    """The patterns of what looks, where a sandbox wholly keeps it in or not."""
    return [*split(LOOKING), *LISTING, *(KEPT_LISTING if is_kept else ())]


def split(text: str) -> list[str]:
    return [pattern.strip() for pattern in text.replace("\n", " ").split(";")]

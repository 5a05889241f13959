"""Rules for "always": as wide as is sensible for a harmless command, and no wider than the text for any other.

What is harmless in a sandbox is not outside of it: `cp **` there overwrites any file, `cat **` reads any key.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.bash.syntax.parse import read_line
from toolyard.bash.syntax.reading import Redirection, SimpleCommand
from toolyard.files.inside import is_inside
from toolyard.permissions.expansion.line import ExpandedLine
from toolyard.permissions.file_access import WorkingFolder
from toolyard.permissions.judge import OBEYS_INPUT, Judge
from toolyard.permissions.patterns import quoted_token
from toolyard.permissions.programs.carriers import carried_by
from toolyard.permissions.programs.categories import (
    DESTRUCTIVE,
    ONLY_LOOKS,
    SPEAKS_ONLY,
    TAKES_WORDS,
    each_name,
    name_lists,
    names,
    program_name,
)
from toolyard.permissions.programs.git import KNOWN as GIT_COMMANDS
from toolyard.permissions.programs.git import NEVER
from toolyard.permissions.programs.guards import GUARDS, why_never_covered
from toolyard.permissions.programs.network import NETWORK_GUARDS
from toolyard.permissions.programs.subcommands import LOOKS, USUAL
from toolyard.permissions.rules import RuleOrigin, valid_rules
from toolyard.permissions.verdict import Offer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.reading import Part
    from toolyard.bash.syntax.words import Word
    from toolyard.core.reach import Reach
    from toolyard.core.tool import Json
    from toolyard.permissions.file_access import CallSite
    from toolyard.permissions.judge import LineVerdict
    from toolyard.permissions.rules import Rule, RuleBook


WORDS_KEPT = {
    **dict.fromkeys(names("gh aws gcloud az doctl fly heroku"), 3),
    **dict.fromkeys(
        names("""
            git npm pnpm yarn cargo go docker podman kubectl uv pip pip3 poetry pdm hatch pipenv bundle gem composer
            dotnet mvn gradle flutter dart rustup conda mamba nix helm terraform tofu pulumi vagrant systemctl
            journalctl launchctl brew apt apt-get dnf yum pacman snap mix deno bun openssl ip svn hg jj
        """),
        2,
    ),
}
"""Programs whose command is in their first words."""
RUNS_TARGETS = names("""
    make gmake bmake remake just task rake tox nox invoke inv fab doit scons ninja bazel buck2 pants please gulp grunt
    turbo nx lerna ant mvn mvnw gradle gradlew sbt mill waf meson cmake ctest earthly dagger act pre-commit foreman
    honcho overmind docker-compose docker podman nerdctl ansible ansible-playbook npx bunx pnpx uvx pipx
""")
"""Programs that run whichever of several targets, images or plans they are given."""
INSTALLERS = names("""
    apt apt-get aptitude dnf yum zypper pacman apk emerge snap flatpak brew port choco scoop winget easy_install cpan
    cpanm opam cabal stack luarocks vcpkg conan rustup sdkman nvm fnm volta pyenv rbenv asdf mise
""")
PUBLISHERS = names("twine vsce ovsx npm-publish semantic-release goreleaser wrangler netlify vercel surge firebase")
KEEPS_ONE_MORE = name_lists(
    {
        "npm": "run run-script exec config",
        "pnpm yarn": "run exec dlx",
        "docker": "compose container image network volume system buildx",
        "uv": "pip run tool python cache",
        "git": "remote stash worktree submodule bisect notes config",
        "kubectl": "config rollout auth",
        "go": "mod work tool",
        "bun": "run x pm",
        "poetry cargo": "run",
        "bundle": "exec",
        "deno": "task",
        "terraform": "state",
    }
)
"""Commands that are again several."""
ONLY_AS_WRITTEN = name_lists(
    {
        "git": """
            push reset clean rebase restore checkout switch rm gc prune branch tag stash filter-branch update-ref
            reflog config merge pull fetch clone submodule subtree bisect am apply cherry-pick revert worktree remote
        """,
        "npm": """
            publish unpublish exec deprecate config token login run run-script start restart install i add ci update
            up upgrade uninstall remove rm un link ln rebuild init create dist-tag owner access audit dedupe prune
        """,
        "pnpm yarn": """
            publish exec dlx run run-script start install i add update up upgrade remove rm uninstall link init
            create config node global rebuild
        """,
        "bun deno": "run x exec install add remove update upgrade link publish create init task compile",
        "cargo": "publish yank install uninstall owner run r add remove rm update login fix",
        "go": "install run get generate tool mod work",
        "pip pip3": "install uninstall download wheel config cache",
        "uv": "publish run tool add remove sync lock build venv python cache init x",
        "poetry pdm hatch pipenv rye": """
            install add remove update run publish build lock sync shell env config init uninstall upgrade self new
        """,
        "gem": "install uninstall update push yank exec fetch build cleanup",
        "bundle": "install update exec add remove config init clean lock",
        "composer": "install update require remove create-project run-script run exec global config",
        "dotnet": "add remove publish run tool nuget restore new msbuild workload",
        "kubectl": "delete exec apply drain replace scale cp",
        "gh": "api repo release secret auth",
        "helm": "install upgrade uninstall rollback push",
        "flutter dart": "pub run build publish install upgrade",
        "mix": "run deps.get phx.server ecto.migrate archive.install hex.publish",
        "svn hg jj": "commit ci push update up checkout co merge revert delete rm",
        "systemctl launchctl": "start stop restart enable disable reload mask kill load unload",
        "openssl": "enc genrsa req s_client s_server",
    }
)
"""Commands that install, publish, lose something or run a target: with other arguments it is another matter."""
EXACT_ONLY = DESTRUCTIVE | RUNS_TARGETS | INSTALLERS | PUBLISHERS
INSTALLS = re.compile(
    r"(?:un|re)?install|publish|deploy|upload|release|push|run|exec|start|upgrade|add|remove|sync|compile"
)
"""Commands of many programs after which an argument decides what comes to the machine, leaves it or runs."""
UNBOUNDED = each_name(NETWORK_GUARDS).keys() | names(
    "gpg gpg2 ssh-add ssh-keygen openssl sysctl dmesg tcpdump tshark dumpcap fzf sk peco fuser"
)
"""Programs that are known, and yet other arguments are another risk: other hosts, keys, settings of the system."""
ANY_ARGUMENTS = (ONLY_LOOKS | SPEAKS_ONLY | TAKES_WORDS | GUARDS.keys()) - UNBOUNDED
"""Programs whose options and operands are known, so that a rule for all arguments is held to what they say."""
USUAL_ELSEWHERE = {
    ("uv", "pip"): USUAL["pip"],
    **{(name, first): LOOKS[name][1] for name in LOOKS for first in LOOKS[name][0]},
}
"""Commands that are again several, of programs whose own are known: those of them that only look."""
MOST_WORDS = 200
"""Words of a rule that nobody but a person would have written."""
NONE: frozenset[str] = frozenset()


def derive_pattern(command: SimpleCommand) -> str | None:
    """The pattern for a command; None when not even its own text is certain."""
    words = command.words
    if command.wrapped or not words or words[0].value is None or is_special(words):
        return exact(command.written)
    kept = words_kept(words)
    if kept is None or len(words) == 1 or not takes_any_arguments(words):
        return exact(words)
    return " ".join([*(quoted_token(word.value or "") for word in words[:kept]), "**"])


def is_special(words: Sequence[Word]) -> bool:
    """Whether a command carries, interprets, installs, publishes, runs a target or destroys: then only its own text."""
    name = program_name(words[0].value)
    first = words[1].value if len(words) > 1 else None
    return (
        why_never_covered(words, 1) is not None
        or carried_by(words) is not None
        or name in EXACT_ONLY
        or first in ONLY_AS_WRITTEN.get(name, NONE)
        or (is_installer(words) and name in WORDS_KEPT)
    )


def takes_any_arguments(words: Sequence[Word]) -> bool:
    """Whether it is known what further arguments can do; of a program that nobody here knows, only that it ran once."""
    name, *rest = (word.value or "" for word in words)
    first, second = (*rest, "", "")[:2]
    if "/" in name:  # a script of the workspace, which its path names
        return not name.startswith(("/", "~")) and ".." not in name.split("/")
    if name == "git":
        return first in GIT_COMMANDS and first not in NEVER
    if (name, first) in USUAL_ELSEWHERE:
        return second in USUAL_ELSEWHERE[name, first]
    if name in USUAL:
        return first in USUAL[name]
    return name in ANY_ARGUMENTS and name not in WORDS_KEPT


def is_installer(words: Sequence[Word]) -> bool:
    """Whether a word before any other operand says that something is installed, published or run."""
    return any(INSTALLS.fullmatch(word.value or "") for word in words[1:3])


def words_kept(words: Sequence[Word]) -> int | None:
    """How many words a pattern keeps; None when those are not all plain words."""
    values = [word.value for word in words]
    kept = WORDS_KEPT.get(values[0] or "", 1)
    if len(values) > 1 and values[1] in KEEPS_ONE_MORE.get(values[0] or "", NONE):
        kept = 3
    leading = values[1:kept]
    if len(words) > 1 and any(value is None or value.startswith("-") for value in leading):
        return None
    return min(kept, len(words))


def exact(words: Sequence[Word]) -> str | None:
    """The command's own text as a pattern for nothing else."""
    values = [word.value for word in words]
    if not values or None in values or len(values) > MOST_WORDS:
        return None
    return " ".join(quoted_token(value) for value in values if value is not None)


def derive_offers(
    verdict: LineVerdict, book: RuleBook, site: CallSite, wanted: Reach | None = None
) -> tuple[Offer, ...]:
    """Rules for all parts of a line that are asked about; none when one of them would be asked about even so.

    `wanted` is the reach that the call asks for, and the rules would be for.
    """
    if verdict.reading.doubts or any(part.doubt == OBEYS_INPUT for part in verdict.parts):
        return ()
    line = ExpandedLine(read_line(verdict.reading.text), site.cwd, site.workspace, site.shell)
    folder = WorkingFolder(line, site)
    offers: dict[str, Offer] = {}
    for part in verdict.reading.parts:
        found = offers_for(part, book, folder, site.tool, wanted)
        if found is None:
            return ()
        offers.update({offer.text: offer for offer in found})
    return tuple(offers.values())


def bound_to_folder(offers: Sequence[Offer], folders: Sequence[str] | None, workspace: str) -> tuple[Offer, ...]:
    """The same for the one folder that the line runs in; none where it runs in several, or the folder has no pattern.

    What a program does outside of the sandbox is said by what lies in its folder as much as by its words.
    """
    folder = kept_folder(folders[0], workspace) if folders and len(folders) == 1 else None
    if folder is None:
        return ()
    where = f"outside, in {'the top of the workspace' if folder == '.' else folder}"
    more = {} if folder == "." else {"folder": folder}
    return tuple(replace(offer, rule={**offer.rule, **more}, where=where) for offer in offers)


def kept_folder(folder: str, workspace: str) -> str | None:
    """A folder as a rule names it, wherever links on its way lead; None where a rule could mean others by that."""
    real, top = os.path.realpath(folder), os.path.realpath(workspace)
    if "*" in real or not real.isprintable():
        return None
    named = os.path.relpath(real, top) if is_inside(real, top) else real
    return None if named.startswith("~") else named


def offers_for(
    part: Part, book: RuleBook, folder: WorkingFolder, tool: str, wanted: Reach | None
) -> list[Offer] | None:
    """The rules that would allow a part, tried out: the usual ones, else those for nothing but its own text."""
    if is_allowed(part, book, folder, tool):
        return []
    for pattern in patterns_for(part, wanted):
        values: list[Json] = [*([pattern] if pattern else []), *file_rules(part, folder)]
        rules = valid_rules(values, "allow", RuleOrigin(label="derived"))
        needed = [
            rule
            for rule in rules
            if not is_allowed(part, book.extended(each for each in rules if each is not rule), folder, tool)
        ]
        if needed and is_allowed(part, book.extended(needed), folder, tool):
            return [Offer(rule=rule_value(rule), text=rule.text, source=part.text) for rule in needed]
    return None


def patterns_for(part: Part, wanted: Reach | None) -> list[str | None]:
    """The widest first. Outside of the sandbox nothing bounds what other arguments do, so only the text itself."""
    if not isinstance(part, SimpleCommand):
        return [None]
    return [exact(part.written)] if wanted == "outside" else [derive_pattern(part), exact(part.written)]


def file_rules(part: Part, folder: WorkingFolder) -> Iterator[dict[str, str]]:
    """Rules for the very files that a part's redirections name."""
    redirections = (
        part.redirections if isinstance(part, SimpleCommand) else [part] if isinstance(part, Redirection) else []
    )
    for redirection in redirections:
        path = redirection.target.value if redirection.target and redirection.body is None else None
        if path is None or "*" in path or redirection.operator == "<<<":
            continue
        absolute = os.path.normpath(os.path.join(folder.cwd, path))
        shown = os.path.relpath(absolute, folder.workspace) if is_inside(absolute, folder.workspace) else absolute
        yield {"read" if redirection.operator == "<" else "write": shown}


def is_allowed(part: Part, book: RuleBook, folder: WorkingFolder, tool: str) -> bool:
    return all(judged.decision == "allow" for judged in Judge(book, tool, folder).part(part))


def rule_value(rule: Rule) -> Json:
    if rule.write is not None:
        return {"write": "/".join(rule.write) or "."}
    if rule.read is not None:
        return {"read": "/".join(rule.read) or "."}
    return {"command": rule.text}

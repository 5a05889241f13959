"""Programs of many commands: which of them a rule for the whole program covers, and which run what they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import each_name, name_lists, names
from toolyard.permissions.programs.options import Concern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word


USUAL = name_lists(
    {
        "npm": """
            test t tst run run-script start stop restart ls list ll la view info show outdated audit ping version
            help ci install i add pack search why explain fund doctor root prefix bin whoami dedupe prune rebuild
        """,
        "pnpm": "test t run run-script start ls list outdated audit why install i add remove rm update up ci",
        "yarn": "test run install add remove list info why outdated audit build lint start check",
        "cargo": """
            build b check c test t bench doc d clippy fmt tree metadata clean update search fetch run r version
            help locate-project pkgid verify-project read-manifest
        """,
        "go": "build test vet list doc version env fmt mod run help",
        "docker podman": "ps images logs inspect info version top stats port diff history search",
        "kubectl": "get describe logs version cluster-info explain api-resources api-versions top",
        "gh": "status search pr issue repo run release workflow label cache project org ruleset",
        "uv": "tree version help lock sync",
        "poetry": "show check version env list",
        "pip pip3": "list show freeze check search index inspect help hash debug",
        "ip": "addr a address link l route r neigh n rule maddr",
        "terraform tofu": "plan validate show output version providers graph fmt get",
        "helm": "list ls status get history show search template lint version env help",
        "brew": "list ls info search outdated deps uses leaves config doctor desc home",
        "apt dnf yum": "list search show info policy depends rdepends repolist provides history check-update showsrc",
        "apt-get": "check",
        "snap": "list info find version",
        "gem": "list search info which environment help outdated contents dependency",
        "bundle": "list show info check outdated platform version help",
        "composer": "show validate outdated why why-not info search diagnose licenses fund",
        "conda": "list info search",
        "bazel": "build test query cquery aquery info version help",
        "vagrant": "status global-status version validate port box",
        "pre-commit": "run sample-config validate-config validate-manifest",
        "svn": "status st info log diff di list ls blame cat help update up",
        "hg": "status st log diff annotate cat files id identify branch branches tags summary help version",
        "rclone": "ls lsd lsf lsl lsjson size version about listremotes check",
        "timedatectl": "status show list-timezones timesync-status",
        "loginctl": "list-sessions list-users list-seats session-status user-status show-session show-user",
        "hostnamectl": "status",
        "localectl": "status list-locales list-keymaps",
        "7z 7za 7zz": "l t i",
        "unrar": "l lt lb t v vt vb p",
    }
)
"""For each program the commands that a rule for the whole program covers; any other needs a rule that names it."""
LOOKS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "gh": (
        names("pr issue repo run release workflow label cache project org ruleset"),
        names("list ls view status diff checks watch check"),
    ),
    "ip": (names("addr a address link l route r neigh n rule maddr"), names("show list ls get sh lst s")),
    "go": (names("mod"), names("tidy download graph verify why vendor")),
    "terraform": (names("state workspace providers"), names("list show")),
    "vagrant": (names("box"), names("list outdated")),
}
"""Commands that are again several, and those of them that a rule for the whole program covers."""
CARRYING = name_lists(
    {
        "npm": "exec x explore init create innit config set edit",
        "pnpm": "exec dlx create node config",
        "yarn": "exec dlx node create config",
        "go": "generate tool",
        "docker": "run exec create compose build buildx cp plugin context container image builder",
        "podman": "run exec create compose build cp play kube container image",
        "kubectl": "exec run debug attach cp edit proxy plugin config",
        "gh": "alias extension ext api codespace auth browse copilot",
        "uv": "run tool x python",
        "poetry pipenv hatch": "run shell",
        "ip": "netns vrf",
        "terraform tofu": "console",
        "helm": "plugin",
        "brew": "sh ruby irb edit exec bundle tap-new create",
        "apt": "edit-sources changelog",
        "apt-get": "changelog source",
        "snap conda bazel volta pdm rye rustup": "run",
        "gem": "exec open install",
        "bundle": "exec open console",
        "composer": "exec run-script run global create-project",
        "vagrant": "ssh rsync provision powershell winrm",
        "pre-commit": "try-repo",
        "aws": "configure ssm",
        "gcloud": "auth config",
        "direnv": "exec edit",
        "aws-vault nodenv fnm": "exec",
        "rbenv pyenv": "exec shell",
        "nvm lerna": "exec run",
        "mise": "exec x run r watch shell en env",
        "asdf": "exec shell env",
        "toolbox": "run enter",
        "pixi": "run exec shell",
        "turbo": "run gen",
        "nx": "exec run generate",
        "fly": "ssh console",
        "heroku": "run ps:exec local",
        "wrangler": "dev",
        "rclone": "mount rcd rc serve",
    }
)
"""Commands that run what their arguments say, and so are covered by no rule with `**`."""
SPELLED_OUT = name_lists(
    {
        "uv poetry pipenv pdm hatch rye": "run",
        "npm pnpm yarn bundle": "exec",
        "turbo nx lerna composer": "run run-script",
        "docker": "compose container image builder",
        "podman": "compose container image",
        "kubectl": "config",
    }
)
"""Those of them that a rule covers which spells out what they run, and leaves open only the arguments of that."""
ELSEWHERE = each_name(
    {
        "docker": r"-[HclD]|--(?:host|context|config|tls.*)",
        "podman": r"-[cr]|--(?:url|connection|remote|identity|root|runroot|config|module)",
        "kubectl": (
            r"-[sfkw]|-o.*(?:template|-file|=custom).*|go-template-file.*|jsonpath-file.*|custom-columns-file.*"
            r"|--(?:server|kubeconfig|token|as.*|context|cluster|user|filename|raw|template.*|watch.*)"
        ),
        "gh": r"-R.*|--(?:hostname|repo)|-w|--web",
        "uv": r"-[pif]|--(?:python|config-file|directory|project|index.*|default-index|find-links)",
        "poetry": r"-[CP]|--(?:directory|project)",
        "ip": r"-[bn].*|-force",
        "terraform tofu": r"--?(?:chdir|out|plugin-dir|state.*|backup|generate-config-out)",
        "helm": r"--(?:post-renderer.*|kube.*|plugin.*|output-dir|repository-.*|registry-.*|repo)",
        "apt apt-get apt-cache": r"-[oct].*|--(?:option|config-file|opt.*|conf.*)",
        "dnf yum": r"-c.*|--(?:config|setopt|installroot|repofrompath|plugin.*)",
        "dpkg": (
            r"-[iraPDRBAC].*|--(?:install|remove|purge|unpack|configure|admindir|root|instdir|pre-.*|post-.*"
            r"|force.*|set-.*|clear-.*|update-.*|merge-.*|add-.*|path-.*|status-.*|record-.*|log|no-.*|root.*)"
        ),
        "rpm": (
            r"-[iUFeEt].*|--(?:eval|pipe|import|install|upgrade|freshen|erase|root|define|rcfile|load|macros|restore"
            r"|rebuilddb|initdb|dbpath|setperms|setugids|reinstall|predefine|undefine|delsign|addsign|resign|test)"
        ),
        "gem": r"--(?:config-file|source|install-dir|bindir|http-proxy)|-[iBs]",
        "bundle": r"--(?:gemfile|path|binstubs)",
        "composer": r"-d.*|--(?:working-dir|plugins)",
        "conda": r"-[pn].*|--(?:prefix|name|file)",
        "bazel": (
            r"--(?:.*bazelrc|run_under|.*jvm_args|output_.*base.*|.*status_command|.*override_.*|.*toolchain.*|credential_helper"
            r"|.*_bin|.*executor.*|.*cache|bes_.*|host_.*|shell_executable|action_env|package_path|.*output_file|profile)"
        ),
        "hg": r"-R.*|--(?:config|repository|cwd|debugger|conf.*|encoding|pager)|-o.*|--output.*",
        "svn": r"--(?:config-.*|.*-cmd|password.*|username|editor.*|extensions)|-x",
        "aws gcloud az": r"--(?:endpoint-url|profile|cli-input.*|impersonate.*|flags-file|ca-bundle)",
        "rclone": r"--(?:config|.*-command|rc.*|log-file|.*-cert|.*-proxy)",
        "vagrant": r"-c|--command",
        "pre-commit": r"-c|--config",
    }
)
"""Options by which a program talks to another server, follows other settings, or does not end by itself."""
CLOUDS = names("aws gcloud az")
HAS_COMMANDS = USUAL.keys() | CARRYING.keys() | ELSEWHERE.keys() | CLOUDS
CLOUD_LOOKS = re.compile(r"describe(?:-.*)?|list(?:-.*)?|get(?:-.*)?|ls|show|help|version|wait|lookup-.*")
"""In a cloud it is the last word of the command that says what is done."""


def subcommand_concerns(words: Sequence[Word], named: int) -> Iterator[Concern]:
    """Whether a rule covers a command of a program that has many; `named` says how many words the rule spells out."""
    name = words[0].value or ""
    for word in words[max(named, 1) :] if name in ELSEWHERE else ():
        if re.fullmatch(ELSEWHERE[name], word.prefix.partition("=")[0]):
            yield Concern(message=f"'{word.text}' is about another place")
    operands = [word for word in words[1:] if not (word.value or "").startswith(("-", "+"))]
    if not operands:
        return
    first = operands[0]
    if first.value is None:
        yield Concern(message=f"what {name} does is not certain")
    elif first.value in CARRYING.get(name, ()):
        is_spelled_out = named >= 3 and first is words[1] and first.value in SPELLED_OUT.get(name, ())
        if not is_spelled_out or words[2].value in CARRYING[name]:
            yield Concern(message=f"'{name} {first.value}' runs what it is given")
    elif named < 2:
        yield from beyond_looking(name, operands)


def beyond_looking(name: str, operands: Sequence[Word]) -> Iterator[Concern]:
    """What a rule for a whole program was not given for."""
    first = operands[0].value or ""
    more = f"is more than a rule for all of {name} is about"
    if name in CLOUDS:
        if not any(CLOUD_LOOKS.fullmatch(word.value or "") for word in operands[1:3]):
            yield Concern(message=f"'{name} {first}' {more}")
    elif name in USUAL and first not in USUAL[name]:
        yield Concern(message=f"'{name} {first}' {more}")
    elif name in LOOKS and first in LOOKS[name][0] and len(operands) > 1 and operands[1].value not in LOOKS[name][1]:
        yield Concern(message=f"'{name} {first} {operands[1].text}' {more}")

"""Programs of many commands: which of them a rule for the whole program covers, and which run what they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import names
from toolyard.permissions.programs.options import Concern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.bash.syntax.words import Word


CONTAINERS = names("ps images logs inspect info version top stats port diff history search")
PACKAGES = names("list show freeze check search index inspect help hash debug")
INFRASTRUCTURE = names("plan validate show output version providers graph fmt get")
SYSTEM_PACKAGES = names("list search show info policy depends rdepends repolist provides history check-update showsrc")
USUAL: dict[str, frozenset[str]] = {
    "npm": names("""
        test t tst run run-script start stop restart ls list ll la view info show outdated audit ping version help ci
        install i add pack search why explain fund doctor root prefix bin whoami dedupe prune rebuild
    """),
    "pnpm": names("test t run run-script start ls list outdated audit why install i add remove rm update up ci"),
    "yarn": names("test run install add remove list info why outdated audit build lint start check"),
    "cargo": names("""
        build b check c test t bench doc d clippy fmt tree metadata clean update search fetch run r version help
        locate-project pkgid verify-project read-manifest
    """),
    "go": names("build test vet list doc version env fmt mod run help"),
    "docker": CONTAINERS,
    "podman": CONTAINERS,
    "kubectl": names("get describe logs version cluster-info explain api-resources api-versions top"),
    "gh": names("status search pr issue repo run release workflow label cache project org ruleset"),
    "uv": names("tree version help lock sync"),
    "poetry": names("show check version env list"),
    "pip": PACKAGES,
    "pip3": PACKAGES,
    "ip": names("addr a address link l route r neigh n rule maddr"),
    "terraform": INFRASTRUCTURE,
    "tofu": INFRASTRUCTURE,
    "helm": names("list ls status get history show search template lint version env help"),
    "brew": names("list ls info search outdated deps uses leaves config doctor desc home"),
    "apt": SYSTEM_PACKAGES,
    "apt-get": names("check"),
    "dnf": SYSTEM_PACKAGES,
    "yum": SYSTEM_PACKAGES,
    "snap": names("list info find version"),
    "gem": names("list search info which environment help outdated contents dependency"),
    "bundle": names("list show info check outdated platform version help"),
    "composer": names("show validate outdated why why-not info search diagnose licenses fund"),
    "conda": names("list info search"),
    "bazel": names("build test query cquery aquery info version help"),
    "vagrant": names("status global-status version validate port box"),
    "pre-commit": names("run sample-config validate-config validate-manifest"),
    "svn": names("status st info log diff di list ls blame cat help update up"),
    "hg": names("status st log diff annotate cat files id identify branch branches tags summary help version"),
    "rclone": names("ls lsd lsf lsl lsjson size version about listremotes check"),
    "timedatectl": names("status show list-timezones timesync-status"),
    "loginctl": names("list-sessions list-users list-seats session-status user-status show-session show-user"),
    "hostnamectl": names("status"),
    "localectl": names("status list-locales list-keymaps"),
    "7z": names("l t i"),
    "7za": names("l t i"),
    "7zz": names("l t i"),
    "unrar": names("l lt lb t v vt vb p"),
}
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
CARRYING: dict[str, frozenset[str]] = {
    "npm": names("exec x explore init create innit config set edit"),
    "pnpm": names("exec dlx create node config"),
    "yarn": names("exec dlx node create config"),
    "go": names("generate tool"),
    "docker": names("run exec create compose build buildx cp plugin context container image builder"),
    "podman": names("run exec create compose build cp play kube container image"),
    "kubectl": names("exec run debug attach cp edit proxy plugin config"),
    "gh": names("alias extension ext api codespace auth browse copilot"),
    "uv": names("run tool x python"),
    "poetry": names("run shell"),
    "ip": names("netns vrf"),
    "terraform": names("console"),
    "tofu": names("console"),
    "helm": names("plugin"),
    "brew": names("sh ruby irb edit exec bundle tap-new create"),
    "apt": names("edit-sources changelog"),
    "apt-get": names("changelog source"),
    "snap": names("run"),
    "gem": names("exec open install"),
    "bundle": names("exec open console"),
    "composer": names("exec run-script run global create-project"),
    "conda": names("run"),
    "bazel": names("run"),
    "vagrant": names("ssh rsync provision powershell winrm"),
    "pre-commit": names("try-repo"),
    "aws": names("configure ssm"),
    "gcloud": names("auth config"),
    "direnv": names("exec edit"),
    "aws-vault": names("exec"),
    "rbenv": names("exec shell"),
    "pyenv": names("exec shell"),
    "nodenv": names("exec"),
    "nvm": names("exec run"),
    "fnm": names("exec"),
    "volta": names("run"),
    "mise": names("exec x run r watch shell en env"),
    "asdf": names("exec shell env"),
    "toolbox": names("run enter"),
    "pipenv": names("run shell"),
    "pdm": names("run"),
    "hatch": names("run shell"),
    "rye": names("run"),
    "pixi": names("run exec shell"),
    "turbo": names("run gen"),
    "nx": names("exec run generate"),
    "lerna": names("exec run"),
    "rustup": names("run"),
    "fly": names("ssh console"),
    "heroku": names("run ps:exec local"),
    "wrangler": names("dev"),
    "rclone": names("mount rcd rc serve"),
}
"""Commands that run what their arguments say, and so are covered by no rule with `**`."""
SPELLED_OUT: dict[str, frozenset[str]] = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye"), names("run")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bundle"), names("exec")),
    **dict.fromkeys(("turbo", "nx", "lerna", "composer"), names("run run-script")),
    "docker": names("compose container image builder"),
    "podman": names("compose container image"),
    "kubectl": names("config"),
}
"""Those of them that a rule covers which spells out what they run, and leaves open only the arguments of that."""
ELSEWHERE: dict[str, re.Pattern[str]] = {
    "docker": re.compile(r"-[HclD]|--(?:host|context|config|tls.*)"),
    "podman": re.compile(r"-[cr]|--(?:url|connection|remote|identity|root|runroot|config|module)"),
    "kubectl": re.compile(
        r"-[sfkw]|-o.*(?:template|-file|=custom).*|go-template-file.*|jsonpath-file.*|custom-columns-file.*"
        r"|--(?:server|kubeconfig|token|as.*|context|cluster|user|filename|raw|template.*|watch.*)"
    ),
    "gh": re.compile(r"-R.*|--(?:hostname|repo)|-w|--web"),
    "uv": re.compile(r"-[pif]|--(?:python|config-file|directory|project|index.*|default-index|find-links)"),
    "poetry": re.compile(r"-[CP]|--(?:directory|project)"),
    "ip": re.compile(r"-[bn].*|-force"),
    **dict.fromkeys(
        ("terraform", "tofu"), re.compile(r"--?(?:chdir|out|plugin-dir|state.*|backup|generate-config-out)")
    ),
    "helm": re.compile(r"--(?:post-renderer.*|kube.*|plugin.*|output-dir|repository-.*|registry-.*|repo)"),
    **dict.fromkeys(("apt", "apt-get", "apt-cache"), re.compile(r"-[oct].*|--(?:option|config-file|opt.*|conf.*)")),
    **dict.fromkeys(("dnf", "yum"), re.compile(r"-c.*|--(?:config|setopt|installroot|repofrompath|plugin.*)")),
    "dpkg": re.compile(
        r"-[iraPDRBAC].*|--(?:install|remove|purge|unpack|configure|admindir|root|instdir|pre-.*|post-.*"
        r"|force.*|set-.*|clear-.*|update-.*|merge-.*|add-.*|path-.*|status-.*|record-.*|log|no-.*|root.*)"
    ),
    "rpm": re.compile(
        r"-[iUFeEt].*|--(?:eval|pipe|import|install|upgrade|freshen|erase|root|define|rcfile|load|macros|restore"
        r"|rebuilddb|initdb|dbpath|setperms|setugids|reinstall|predefine|undefine|delsign|addsign|resign|test)"
    ),
    "gem": re.compile(r"--(?:config-file|source|install-dir|bindir|http-proxy)|-[iBs]"),
    "bundle": re.compile(r"--(?:gemfile|path|binstubs)"),
    "composer": re.compile(r"-d.*|--(?:working-dir|plugins)"),
    "conda": re.compile(r"-[pn].*|--(?:prefix|name|file)"),
    "bazel": re.compile(
        r"--(?:.*bazelrc|run_under|.*jvm_args|output_.*base.*|.*status_command|.*override_.*|.*toolchain.*|credential_helper"
        r"|.*_bin|.*executor.*|.*cache|bes_.*|host_.*|shell_executable|action_env|package_path|.*output_file|profile)"
    ),
    "hg": re.compile(r"-R.*|--(?:config|repository|cwd|debugger|conf.*|encoding|pager)|-o.*|--output.*"),
    "svn": re.compile(r"--(?:config-.*|.*-cmd|password.*|username|editor.*|extensions)|-x"),
    **dict.fromkeys(
        ("aws", "gcloud", "az"),
        re.compile(r"--(?:endpoint-url|profile|cli-input.*|impersonate.*|flags-file|ca-bundle)"),
    ),
    "rclone": re.compile(r"--(?:config|.*-command|rc.*|log-file|.*-cert|.*-proxy)"),
    "vagrant": re.compile(r"-c|--command"),
    "pre-commit": re.compile(r"-c|--config"),
}
"""Options by which a program talks to another server, follows other settings, or does not end by itself."""
HAS_COMMANDS = USUAL.keys() | CARRYING.keys() | ELSEWHERE.keys() | {"aws", "gcloud", "az"}
CLOUDS = names("aws gcloud az")
CLOUD_LOOKS = re.compile(r"describe(?:-.*)?|list(?:-.*)?|get(?:-.*)?|ls|show|help|version|wait|lookup-.*")
"""In a cloud it is the last word of the command that says what is done."""
NOWHERE = re.compile(r"(?!)")


def subcommand_concerns(words: Sequence[Word], spelled: int) -> Iterator[Concern]:
    """Whether a rule covers a command of a program that has many; `spelled` says how many words the rule spells out."""
    name = words[0].value or ""
    for word in words[max(spelled, 1) :]:
        option = word.prefix.partition("=")[0]
        if ELSEWHERE.get(name, NOWHERE).fullmatch(option):
            yield Concern(message=f"'{word.text}' is about another place")
    operands = [word for word in words[1:] if not (word.value or "").startswith(("-", "+"))]
    if not operands:
        return
    first = operands[0]
    if first.value is None:
        yield Concern(message=f"what {name} does is not certain")
    elif first.value in CARRYING.get(name, ()):
        is_spelled_out = spelled >= 3 and first is words[1] and first.value in SPELLED_OUT.get(name, ())
        if not is_spelled_out or words[2].value in CARRYING[name]:
            yield Concern(message=f"'{name} {first.value}' runs what it is given")
    elif spelled < 2:
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

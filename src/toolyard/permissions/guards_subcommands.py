"""Programs of many commands: which of them a rule for the whole program covers, and which run what they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.permissions.options import Concern
from toolyard.permissions.programs import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.shell.words import Word

__all__ = ["USUAL", "subcommand_concerns"]

CONTAINERS = names("ps images logs inspect info version top stats port diff history search")
PACKAGES = names("list show freeze check help")
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
    "gh": names("status browse search pr issue repo run release workflow label cache project org ruleset"),
    "uv": names("tree version help lock sync"),
    "poetry": names("show check version env list"),
    "pip": PACKAGES,
    "pip3": PACKAGES,
    "ip": names("addr a address link l route r neigh n rule maddr"),
}
"""For each program the commands that a rule for the whole program covers; any other needs a rule that names it."""
CARRYING: dict[str, frozenset[str]] = {
    "npm": names("exec x explore init create innit config set edit"),
    "pnpm": names("exec dlx create node config"),
    "yarn": names("exec dlx node create config"),
    "go": names("generate tool"),
    "docker": names("run exec create compose build buildx cp plugin context"),
    "podman": names("run exec create compose build cp play kube"),
    "kubectl": names("exec run debug attach cp edit proxy plugin config"),
    "gh": names("alias extension ext api codespace auth"),
    "uv": names("run tool x python"),
    "poetry": names("run shell"),
    "ip": names("netns vrf"),
}
"""Commands that run what their arguments say, and so are covered by no rule with `**`."""
SPELLED_OUT: dict[str, frozenset[str]] = {
    **dict.fromkeys(("uv", "poetry"), names("run")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), names("exec")),
    "kubectl": names("config"),
}
"""Those of them that a rule covers which spells out what they run, and leaves open only the arguments of that."""
ELSEWHERE: dict[str, re.Pattern[str]] = {
    "docker": re.compile(r"-[HclD]|--(?:host|context|config|tls.*)"),
    "podman": re.compile(r"-[cr]|--(?:url|connection|remote|identity|root|runroot|config|module)"),
    "kubectl": re.compile(
        r"-[sfk]|-o.*(?:template|-file).*|--(?:server|kubeconfig|token|as.*|context|cluster|user|filename|raw|template.*)"
    ),
    "gh": re.compile(r"-R.*|--(?:hostname|repo)"),
    "uv": re.compile(r"-[pif]|--(?:python|config-file|directory|project|index.*|default-index|find-links)"),
    "poetry": re.compile(r"-[CP]|--(?:directory|project)"),
    "ip": re.compile(r"-[bn].*|-force"),
}
"""Options by which a program talks to another server, or follows other settings."""
NOWHERE = re.compile(r"(?!)")


def subcommand_concerns(words: Sequence[Word], spelled: int) -> Iterator[Concern]:
    """Whether a rule covers a command of a program that has many; `spelled` says how many words the rule spells out."""
    name = words[0].value or ""
    for word in words[1:]:
        option = (word.value if word.value is not None else word.prefix).partition("=")[0]
        if ELSEWHERE.get(name, NOWHERE).fullmatch(option):
            yield Concern(message=f"'{word.text}' is about another place")
    first = next((word for word in words[1:] if not (word.value or "").startswith(("-", "+"))), None)
    if first is None:
        return
    if first.value is None:
        yield Concern(message=f"what {name} does is not certain")
    elif first.value in CARRYING.get(name, ()):
        is_spelled_out = spelled >= 3 and first is words[1] and first.value in SPELLED_OUT.get(name, ())
        if not is_spelled_out:
            yield Concern(message=f"'{name} {first.value}' runs what it is given")
    elif spelled < 2 and first.value not in USUAL[name]:
        yield Concern(message=f"'{name} {first.value}' is more than a rule for all of {name} is about")

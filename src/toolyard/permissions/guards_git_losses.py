"""git: what throws work away, in commands that are given for something else most of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolyard.permissions.options import Concern, options
from toolyard.permissions.programs import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.shell.words import Word

__all__ = ["git_losses"]

LOSES = "throws away what cannot be had back"
LOSES_WORK = {
    "push": options(
        values="-o push-option repo receive-pack exec",
        flags="-nuqv tags all set-upstream follow-tags dry-run porcelain force-if-includes",
        harms={"-fd force force-with-lease delete mirror prune": LOSES},
    ),
    "reset": options(flags="-qNp soft mixed keep merge patch quiet", harms={"hard": LOSES}),
    "checkout": options(values="-bB", flags="-tlqmp track detach quiet merge patch", harms={"-f force": LOSES}),
    "switch": options(values="-cC", flags="-tdqm track detach quiet", harms={"-f force discard-changes": LOSES}),
    "branch": options(
        values="-u set-upstream-to contains no-contains points-at format sort",
        flags="-arvlqt all remotes verbose list merged no-merged show-current column color abbrev ignore-case",
        harms={"-dDmMcCf delete move copy force edit-description unset-upstream": LOSES},
    ),
    "tag": options(
        values="-mFu message file local-user contains no-contains points-at sort format cleanup",
        optional="-n",
        flags="-alsv list annotate sign column merged no-merged ignore-case",
        harms={"-df delete force": LOSES},
    ),
    "gc": options(flags="-q aggressive auto quiet keep-largest-pack", harms={"prune": LOSES}),
    "update-ref": options(flags="create-reflog no-deref", values="-m", harms={"-d stdin": LOSES}),
    "rm": options(flags="-nrq cached dry-run ignore-unmatch quiet sparse", harms={"-f force": LOSES}),
}
"""Options by which a command loses work, although it is given for something else most of the time."""
LOSING_VERBS = {
    "stash": names("drop clear"),
    "reflog": names("expire delete"),
    "remote": names("remove rm rename set-url prune"),
    "notes": names("remove prune"),
}
LOSING_WORDS = names("clean prune checkout restore push") | LOSING_VERBS.keys()


def git_losses(words: Sequence[Word], named: int) -> Iterator[Concern]:
    """What a command of git loses that its rule does not spell out; `words` begin with git and the command."""
    name = words[1].value or ""
    if name in LOSES_WORK:
        yield from LOSES_WORK[name].scan(words[max(named, 2) :]).concerns
    if name in LOSING_WORDS:
        yield from losing_words(name, words[2:], named)


def losing_words(name: str, words: Sequence[Word], named: int) -> Iterator[Concern]:
    """What throws work away without an option for it; a rule that spells it out means it."""
    values = [word.value for word in words]
    if name in ("clean", "prune") and named < 2 and not {"-n", "--dry-run"} & set(values):
        yield Concern(message=f"'git {name}' {LOSES}", runs=False)
    if name == "checkout" and named < 3 and (values[-1:] == ["."] or "--" in values[:-1]):
        yield Concern(message=f"'git checkout' of files {LOSES}", runs=False)
    if name == "restore" and named < 3 and "." in values and not {"-S", "--staged"} & set(values):
        yield Concern(message=f"'git restore' of everything {LOSES}", runs=False)
    if name == "push" and any((value or "").startswith(("+", ":")) for value in values[max(named, 2) - 2 :]):
        yield Concern(message=f"pushing with '+' or ':' {LOSES}", runs=False)
    verb = next((value for value in values if value is None or not value.startswith("-")), "")
    if named < 3 and verb in LOSING_VERBS.get(name, ()):
        yield Concern(message=f"'git {name} {verb}' {LOSES}", runs=False)

"""Commits of git inside that could not be handed over at the end: kept in the user's own folder, as repositories.

The folder that git inside had is not kept: git would obey it. What is kept is written anew, with objects that are what
their names say, refs that are such as git writes, and a configuration of ours; git can fetch from it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from typing import NamedTuple

from toolyard.files.plain_text import text_of
from toolyard.files.removal import remove_tree
from toolyard.files.user_folders import user_folder
from toolyard.process.sandbox.git.outgoing.objects import ObjectHandover
from toolyard.process.sandbox.git.refs import is_ref, packed_in
from toolyard.process.sandbox.git.travelling import is_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_KEPT, MOST_FILES, MOST_BYTES = 20, 200_000, 1 << 32
"""Repositories, of which the oldest goes when there is another one; and what one of them may be made of."""
CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{format}"
LONG_IDS = "[extensions]\n\tobjectformat = sha256\n"


class RecoveredWork(NamedTuple):
    """One of these repositories."""

    place: str
    git: str
    """The git folder that it would have been handed over to."""
    refs: dict[str, str]

    @property
    def command(self) -> str:
        """What gets it."""
        words = ["git", f"--git-dir={self.git}", "fetch", self.place, "refs/*:refs/recovered/*"]
        return f"{shlex.join(words)} && rm -r {shlex.quote(self.place)}"


def recovered_folder() -> str:
    return str(user_folder("state") / "recovered")


def recovered_work() -> list[RecoveredWork]:
    """All of them, the oldest first."""
    found = []
    for name in kept_names():
        place = os.path.join(recovered_folder(), name)
        refs = packed_in(text_of(f"{place}/packed-refs").encode("utf-8", "surrogateescape"))
        found.append(RecoveredWork(place, text_of(f"{place}/description").rstrip("\n"), refs))
    return found


def keep_work(git: str, refs: Mapping[str, str], objects: str, program: str) -> RecoveredWork | None:
    """Keep those of some commits that are not there outside; None where there are none, or that cannot be.

    `objects` is the folder that git inside wrote.
    """
    owners = ObjectHandover(objects, git, program)
    named = {name if is_ref(name) else f"refs/from-sandbox/{name}": commit for name, commit in refs.items()}
    kept = {
        name: commit
        for name, commit in named.items()
        if is_ref(name) and is_commit(commit) and not owners.is_reachable(commit, without=name, new=None)
    }
    if not kept or is_too_much(objects):
        return None
    try:
        place = new_place(git)
        make_repository(place, git, kept)
    except OSError:
        return None
    ObjectHandover(objects, place, program).hand_over_all()
    for name in kept_names()[:-MOST_KEPT]:
        remove_tree(os.path.join(recovered_folder(), name))
    return RecoveredWork(place, git, kept)


def new_place(git: str) -> str:
    """A new folder, whose name sorts after all others, and says where it is from."""
    os.makedirs(recovered_folder(), 0o700, exist_ok=True)
    top = os.path.dirname(git) if os.path.basename(git) == ".git" else git
    about = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(top))[:40]
    last = max((int(name.partition("-")[0]) for name in kept_names()), default=0)
    os.mkdir(place := os.path.join(recovered_folder(), f"{last + 1:06}-{about}.git"), 0o700)
    return place


def make_repository(place: str, git: str, refs: Mapping[str, str]) -> None:
    """A bare repository with these refs, which finds all else that is needed in the one that it is about."""
    for name in ("objects/info", "objects/pack", "refs"):
        os.makedirs(os.path.join(place, name))
    has_long_ids = any(len(commit) == 64 for commit in refs.values())
    texts = {
        "HEAD": "ref: refs/heads/main\n",
        "config": CONFIG.format(version=int(has_long_ids), format=LONG_IDS if has_long_ids else ""),
        "description": f"{git}\n",
        "objects/info/alternates": f"{git}/objects\n",
        "packed-refs": "".join(f"{commit} {name}\n" for name, commit in sorted(refs.items())),
    }
    for name, text in texts.items():
        with open(os.path.join(place, name), "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))


def kept_names() -> list[str]:
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(recovered_folder()) if re.fullmatch(r"\d{6,}-.*\.git", name))
    return []


def is_too_much(folder: str) -> bool:
    """Whether there is more in a folder than is kept; links in it are not followed."""
    files = size = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                facts = os.lstat(os.path.join(above, name))
                size += facts.st_size if stat.S_ISREG(facts.st_mode) else 0
        files += len(names)
        if files > MOST_FILES or size > MOST_BYTES:
            return True
    return False

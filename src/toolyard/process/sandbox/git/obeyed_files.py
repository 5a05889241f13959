"""What git outside obeys because its settings name it: further settings, folders of hooks, and programs.

Settings name others in turn, and those of the user count as well as those of the repository.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from toolyard.files.plain_text import text_of
from toolyard.process.sandbox.git.settings import HARMLESS, settings_in
from toolyard.process.sandbox.git.submodules import entries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.process.sandbox.git.settings import GitSetting


MOST_READ = 64
"""Files with settings; whoever has more of them has made a circle, or means harm."""
MOST_WORKTREES = 64
INCLUDES = ("include", "includeif")
FOLDERS = {("core", "hookspath"), ("init", "templatedir")}
TYPED = {"alias", "difftool", "mergetool", "guitool", "man", "browser", "help"}
"""Sections that count only when somebody types their name."""
DATA = {
    *(("core", "excludesfile"), ("core", "attributesfile"), ("commit", "template"), ("blame", "ignorerevsfile")),
    *(("mailmap", "file"), ("gpg", "allowedsignersfile"), ("gpg", "revocationfile"), ("diff", "orderfile")),
}  # fmt: skip
"""Settings that name files in which there is nothing to run."""


class ObeyedFiles(NamedTuple):
    """Where settings are or may be, and what else they name, each once."""

    settings: tuple[str, ...]
    folders: tuple[str, ...]
    programs: tuple[str, ...]

    @property
    def all(self) -> frozenset[str]:
        return frozenset((*self.settings, *self.folders, *self.programs))


def obeyed_files(git: str, read: dict[str, list[GitSetting]] | None = None) -> ObeyedFiles:
    """All that a repository and its user name; paths without a folder of their own count from the working tree.

    `read` keeps what files say, for whoever asks about several repositories: the user's are the same for all.
    """
    read = {} if read is None else read
    top = os.path.dirname(git) if os.path.basename(git) == ".git" else git
    waiting = [*users_settings(), *repository_settings(git)]
    settings, folders, programs = dict[str, None](), dict[str, None](), dict[str, None]()
    while waiting and len(settings) < MOST_READ:
        file = waiting.pop()
        if file in settings:
            continue
        settings[file] = None
        # Also through links, as git outside reads it: nothing of it is shown, and what it names is guarded.
        if file not in read:
            read[file] = list(settings_in(text_of(file)))
        for one in read[file]:
            if one.section in INCLUDES and one.name == "path" and one.value:
                waiting.append(located(one.value, os.path.dirname(file)))
            elif (one.section, one.name) in FOLDERS and one.value:
                folders[located(one.value, top)] = None
            else:
                programs |= dict.fromkeys(programs_in(one, top))
    return ObeyedFiles(tuple(settings), tuple(folders), tuple(programs))


def users_settings() -> list[str]:
    """Where git looks for settings of the user and of the system."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    usual = [os.path.expanduser("~/.gitconfig"), os.path.join(config, "git", "config")]
    return ["/etc/gitconfig", *([named] if (named := os.environ.get("GIT_CONFIG_GLOBAL")) else usual)]


def repository_settings(git: str) -> Iterator[str]:
    yield os.path.join(git, "config")
    yield os.path.join(git, "config.worktree")
    worktrees = os.path.join(git, "worktrees")
    yield from (os.path.join(worktrees, name, "config.worktree") for name in entries_of(worktrees)[:MOST_WORKTREES])


def located(value: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(value)))


def programs_in(one: GitSetting, top: str) -> Iterator[str]:
    """The files among the words of a setting that may name a program."""
    is_data = one.section in TYPED or (one.section, one.name) in DATA or one.name in HARMLESS.get(one.section, ())
    for word in () if is_data else (one.value or "").split():
        path = located(word.strip("!'\""), top)
        if os.path.isfile(path):
            yield os.path.realpath(path)

"""Guards what git obeys when the owner of a workspace next uses it: hooks and configuration, wherever they come from.

The workspace is not trusted: its files may be pipes that nobody writes, devices without an end, links to anywhere, and
more of everything than a sandbox can be built of.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.files.plain_text import text_of
from toolyard.files.user_folders import SYSTEM_FOLDERS
from toolyard.process.sandbox.draft import HELD, ITSELF, NOTHING, nearest
from toolyard.process.sandbox.git.private_common import InsideRepository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.process.sandbox.draft import LayoutDraft


MOST_REPOSITORIES, DEEPEST = 64, 6
"""The most submodules or worktrees that are guarded one by one: each takes some mounts, whose number is limited."""
POINTER = re.compile(r"gitdir: (.+)\n?\Z")
ROOM = {
    *("objects", "refs", "logs", "info", "worktrees", "hooks", "locked", "gitdir", "commondir"),
    *("config", "config.lock", "config.lock.free", "config.worktree", "config.worktree.lock"),
}
"""What stands in a folder that is to become a repository."""
SETTING = re.compile(r"\s*(?:\[([^\]\"\s]+)[^\]]*\]\s*)?(?:(\w+)\s*=\s*\"?([^\"#;\n]*))?")


def guard_repository(draft: LayoutDraft, root: str) -> None:
    """The repository of a workspace, its submodules and its worktrees; where there is none, there is room for one."""
    git = os.path.join(root, ".git")
    if os.path.isfile(git):
        guard_worktree(draft, root, git)
    elif not is_new(git):
        guard_main(draft, git)
    else:
        guard_git_folder(draft, git)
        give_private_part(draft, InsideRepository(git, is_new=True))
        if above := repository_above(root):
            open_above(draft, above)


def is_new(git: str) -> bool:
    """Whether there is no repository, at most the room that another sandbox made for one."""
    return not os.path.islink(git) and set(entries_of(git)) <= ROOM if os.path.isdir(git) else not os.path.lexists(git)


def guard_main(draft: LayoutDraft, git: str) -> None:
    """A repository with all that belongs to it. One that git takes for another kind cannot have a private part."""
    guard_git_folder(draft, git)
    guard_below(draft, git)
    is_plain = os.path.isdir(git) and os.path.realpath(git) == git and f"{git}/commondir" in draft.guards
    if is_plain and text_of(f"{git}/commondir").rstrip("\r\n") in ("", "."):
        give_private_part(draft, InsideRepository(git, pointers=tuple(pointers_to(git))))


def give_private_part(draft: LayoutDraft, repository: InsideRepository) -> None:
    if repository not in draft.repositories:
        draft.repositories.append(repository)
    for path, content in repository.guards().items():
        draft.guard(path, content)


def pointers_to(git: str) -> Iterator[str]:
    """The files of its worktrees that name it."""
    for name in entries_of(f"{git}/worktrees")[:MOST_REPOSITORIES]:
        pointer = f"{git}/worktrees/{name}/commondir"
        named = os.path.realpath(os.path.join(os.path.dirname(pointer), text_of(pointer).rstrip("\r\n")))
        if os.path.isfile(pointer) and named == git:
            yield pointer


def repository_above(root: str) -> str | None:
    """The repository of ours that a folder is part of, without being its top."""
    for folder in Path(root).parents:
        git = str(folder / ".git")
        if str(folder) in SYSTEM_FOLDERS or os.path.isfile(git) or os.path.islink(git):
            return None
        if not is_new(git):
            return git if os.path.isfile(f"{git}/HEAD") and os.stat(git).st_uid == os.geteuid() else None
    return None


def open_above(draft: LayoutDraft, git: str) -> None:
    """Let a repository above be committed to, and its other files be read."""
    top = os.path.dirname(git)
    if nearest(draft.rules, top)[1] in ("hidden", "private") and top not in draft.rules:
        draft.add("read", [top])
    draft.add("write", [git])
    guard_main(draft, git)


def guard_worktree(draft: LayoutDraft, root: str, pointer: str) -> None:
    """A worktree's repository is elsewhere: it can be written if it says itself that this is its worktree."""
    draft.guard(pointer)
    found = POINTER.match(text_of(pointer))
    own = os.path.realpath(os.path.join(root, found[1])) if found else ""
    back, common = (text_of(os.path.join(own, name)).rstrip("\r\n") for name in ("gitdir", "commondir"))
    if not own or not back or not common or os.path.realpath(back) != os.path.realpath(pointer):
        return
    git = os.path.realpath(os.path.join(own, common))
    if os.path.basename(git) == ".git" and own.startswith(git + "/worktrees/"):
        draft.add("write", [git, own])
        guard_main(draft, git)


def guard_git_folder(draft: LayoutDraft, git: str) -> None:
    """A folder like `.git`: nothing in it may say that the rest is elsewhere."""
    settings = list(settings_of(os.path.join(git, "config")))
    draft.guard(os.path.join(git, "hooks"))
    guard_config(draft, os.path.join(git, "config"), b"")
    special = os.path.join(git, "config.worktree")
    if os.path.lexists(special) or ("extensions", "worktreeconfig", "true") in settings:
        guard_config(draft, special, NOTHING)
    common = os.path.join(git, "commondir")
    if os.path.lexists(common) or not is_odd(settings, git):
        draft.guard(common, ITSELF)
    else:
        draft.unwanted.append(common)
    for section, name, value in settings:
        if (section, name) == ("core", "hookspath") and value:
            draft.guard(os.path.normpath(os.path.join(os.path.dirname(git), os.path.expanduser(value))))
        if section in ("include", "includeif") and name == "path":
            guard_included(draft, os.path.normpath(os.path.join(git, os.path.expanduser(value))))


def guard_config(draft: LayoutDraft, path: str, content: bytes | None = None) -> None:
    """A configuration, and the file that git outside would write and then move into its place.

    Somebody inside could write to that file too, and the moment it is moved takes the mount off the one that it
    replaces. So it is held: as long as the sandbox lasts, git outside says that it cannot lock the configuration.
    """
    draft.guard(path, content)
    draft.guard(f"{path}.lock", HELD)


def guard_included(draft: LayoutDraft, path: str) -> None:
    """A file that the configuration includes; a missing one is not made, since it may lie where people would see it."""
    if os.path.lexists(path):
        draft.guard(path)
    elif draft.can_write(path):
        draft.unwanted.append(path)


def is_odd(settings: list[tuple[str, str, str]], git: str) -> bool:
    """Whether a repository has settings that git ignores where there is a `commondir`."""
    is_submodule = f"{os.sep}.git{os.sep}" in git  # it is found by its worktree, whatever it says
    told = [(name, value) for section, name, value in settings if section == "core"]
    return ("bare", "true") in told or (not is_submodule and any(name == "worktree" for name, _ in told))


def guard_below(draft: LayoutDraft, git: str) -> None:
    """Submodules and worktrees; if there are more than the limit, none of them can be written."""
    for folder, found in (("modules", modules_of(git)), ("worktrees", worktrees_of(git))):
        repositories = [path for _, path in zip(range(MOST_REPOSITORIES + 1), found, strict=False)]
        if None in repositories or len(repositories) > MOST_REPOSITORIES:
            draft.guard(os.path.join(git, folder))
            continue
        for path in repositories:
            if folder == "modules" and path:
                guard_git_folder(draft, path)
            elif path:
                guard_pointers(draft, path)


def guard_pointers(draft: LayoutDraft, worktree: str) -> None:
    """What a worktree says about where its repository is, and what else it obeys."""
    if os.path.lexists(path := os.path.join(worktree, "commondir")):
        draft.guard(path)
    if os.path.isdir(worktree):
        guard_config(draft, os.path.join(worktree, "config.worktree"), NOTHING)


def worktrees_of(git: str) -> Iterator[str | None]:
    for name in entries_of(os.path.join(git, "worktrees")):
        yield os.path.join(git, "worktrees", name)


def modules_of(git: str) -> Iterator[str | None]:
    """The repositories of submodules, which may lie in folders of their own; None for what lies too deep."""
    waiting = [(os.path.join(git, "modules"), 0)]
    looked_at = 0
    while waiting:
        folder, depth = waiting.pop()
        names = entries_of(folder)
        looked_at += 1
        if depth > DEEPEST or looked_at > MOST_REPOSITORIES * DEEPEST:
            yield None
            return
        if "HEAD" in names and "config" in names:
            yield folder
            names = ["modules"] if "modules" in names else []
        below = (os.path.join(folder, name) for name in names)
        waiting += [(path, depth + 1) for path in below if os.path.isdir(path) and not os.path.islink(path)]


def settings_of(config: str) -> Iterator[tuple[str, str, str]]:
    """The section, name and value of each setting, as far as they are written plainly."""
    section = ""
    for line in text_of(config).splitlines():
        if found := SETTING.match(line):
            section = (found[1] or section).lower()
            if found[2]:
                yield section, found[2].lower(), found[3].strip()


def entries_of(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []

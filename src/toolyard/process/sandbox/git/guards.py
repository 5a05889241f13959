"""Guards what git obeys when the owner of a workspace next uses it: hooks and configuration, wherever they come from.

The workspace is not trusted: its files may be pipes that nobody writes, devices without an end, links to anywhere, and
more of everything than a sandbox can be built of.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.core.regexes import late_pattern
from toolyard.files.inside import is_inside
from toolyard.files.plain_text import text_itself
from toolyard.files.user_folders import SYSTEM_FOLDERS
from toolyard.process.sandbox.draft import closed_above, nearest
from toolyard.process.sandbox.git.inside_repository import InsideRepository, is_like_git
from toolyard.process.sandbox.git.obeyed_files import obeyed_files
from toolyard.process.sandbox.git.submodules import MOST_REPOSITORIES, entries_of, folders_in, modules_of
from toolyard.process.sandbox.mount_points import is_empty_repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.process.sandbox.draft import LayoutDraft
    from toolyard.process.sandbox.git.repository_walk import RepositoryWalk


POINTER = late_pattern(r"gitdir: (.+)\n?\Z")
MOST_NESTED = 128
"""The most repositories and pointers below that are guarded: each takes mounts, and many cost much more than few."""
NEEDED = ("HEAD", "objects", "refs")
"""What a folder is a repository by."""
SHOWN = ("config", "objects/info", "objects/info/alternates")
"""What else git inside gets of one: a link there would show it what is hidden."""


def guard_repository(draft: LayoutDraft, root: str) -> None:
    """The repository of a workspace with its submodules; where there is none, there is room for one."""
    git = os.path.join(root, ".git")
    if os.path.isfile(git):
        guard_worktree(draft, root, git)
    elif not is_new(git):
        guard_main(draft, git)
    elif above := repository_above(root):
        give_private_part(draft, InsideRepository(git, is_new=True, is_below_another=True))
        open_above(draft, above)
    else:
        is_part = is_like_git(entries_of(root)) or any(
            os.path.lexists(folder / ".git") for folder in Path(root).parents
        )
        give_private_part(draft, InsideRepository(git, is_new=True, is_below_another=is_part))


def is_new(git: str) -> bool:
    """Whether there is no repository, at most the room that another sandbox made for one."""
    if os.path.islink(git) or not os.path.isdir(git):
        return not os.path.lexists(git)
    return is_empty_repository(git) or entries_of(git) in ([], ["objects"])


def guard_nested(draft: LayoutDraft, roots: Sequence[str], walk: RepositoryWalk, named: Sequence[str] = ()) -> None:
    """Repositories in folders below a workspace, which git outside obeys as well: their owner's editor may be there.

    So they are in further folders that are named. A git folder that can be written because it is named itself stays so.

    A pointer can only be read; so can a repository that is made up otherwise than usual, and those beyond a number.
    What was made inside can still be moved and removed there, as long as the same application runs.
    """
    known = {*roots, *(f"{root}/.git" for root in roots), *(one.git for one in draft.repositories)}
    writable = [path for path, access in draft.rules.items() if access == "write"]
    closed = {path for path in draft.guards if not any(is_inside(inner, path) for inner in writable)}
    unguarded: list[str] = []
    for git in walk.repositories([*roots, *named], closed, with_late=False):
        walk.known.add(git)
        if (folder := closed_above(git)) and draft.can_write(folder):
            draft.guard(folder)
            draft.nested[folder] = "it is closed, so that nobody can tell whose repositories are in it"
            continue
        is_room = os.path.basename(git) == ".git" and is_new(git)
        is_made = git in walk.made and os.path.dirname(git) not in draft.submodules
        is_named = draft.rules.get(git) == "write"
        if git in known or is_room or is_made or is_named or not draft.can_write(git):
            continue
        if len(draft.nested) < MOST_NESTED:
            draft.nested[git] = guard_below(draft, git)
        elif not unguarded:
            unguarded = [f"{git} and others of more than {MOST_NESTED} repositories below the workspace"]
    if walk.passed_over:
        unguarded.append(f"{walk.passed_over} and other folders, in which too many are to be looked through")
    draft.unguarded += unguarded


def guard_below(draft: LayoutDraft, git: str) -> str:
    """One of them; tells why it can only be read inside."""
    number = sum(one.is_nested for one in draft.repositories)
    reason = "" if number < MOST_REPOSITORIES else f"there are more than {MOST_REPOSITORIES} repositories below"
    if os.path.islink(git):
        draft.guard(git)
        return "it is a link"
    if os.path.isfile(git):
        draft.guard(git)
        if found := POINTER.match(text_itself(git)):
            guard_missing(draft, os.path.dirname(git), os.path.join(os.path.dirname(git), found[1], "index"))
        return ""
    if not reason and is_usual(git) and os.stat(git).st_uid == os.geteuid():
        guard_main(draft, git, is_nested=True)
        return ""
    guard_named(draft, git)
    draft.guard(git)
    return reason or "it is made up otherwise than usual"


def guard_missing(draft: LayoutDraft, top: str, index: str) -> None:
    """The folders of submodules that are not there yet: git outside would step into what is made there."""
    folders = folders_in(top, index)
    draft.submodules.update(folders)
    missing = [folder for folder in folders if not os.path.lexists(f"{folder}/.git")]
    room = max(0, MOST_NESTED - len(draft.nested))
    for folder in missing[:room]:
        draft.guard(folder)
        draft.nested[folder] = "no submodule is there yet"
    draft.unguarded += [f"{folder}, where no submodule is yet, and others" for folder in missing[room : room + 1]]


def guard_main(draft: LayoutDraft, git: str, *, is_nested: bool = False) -> None:
    """A repository with all that belongs to it. One that is made up otherwise than usual can only be read inside."""
    guard_named(draft, git)
    if os.path.basename(git) == ".git":
        guard_missing(draft, os.path.dirname(git), os.path.join(git, "index"))
    if not is_usual(git):
        draft.guard(git)
        return
    give_private_part(draft, InsideRepository(git, is_nested=is_nested))
    modules = [path for _, path in zip(range(MOST_REPOSITORIES + 1), modules_of(git), strict=False)]
    if len(modules) > MOST_REPOSITORIES or None in modules:
        draft.guard(os.path.join(git, "modules"))
        return
    for path in modules:
        if path and is_usual(path):
            give_private_part(draft, InsideRepository(path, is_nested=is_nested))
            guard_named(draft, path)


def is_usual(git: str) -> bool:
    """Whether a git folder holds all that git needs, in files that can be compared one by one."""
    is_there = all(os.path.lexists(f"{git}/{name}") and not os.path.islink(f"{git}/{name}") for name in NEEDED)
    is_elsewhere = os.path.lexists(f"{git}/commondir") or os.path.lexists(f"{git}/reftable")
    is_elsewhere = is_elsewhere or any(os.path.islink(f"{git}/{name}") for name in SHOWN)
    return is_there and os.path.realpath(git) == git and os.path.isdir(f"{git}/objects") and not is_elsewhere


def give_private_part(draft: LayoutDraft, repository: InsideRepository) -> None:
    if repository not in draft.repositories:
        draft.repositories.append(repository)


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
    found = POINTER.match(text_itself(pointer))
    own = os.path.realpath(os.path.join(root, found[1])) if found else ""
    back, common = (text_itself(os.path.join(own, name)).rstrip("\r\n") for name in ("gitdir", "commondir"))
    if not own or not back or not common or os.path.realpath(back) != os.path.realpath(pointer):
        return
    guard_missing(draft, root, os.path.join(own, "index"))
    git = os.path.realpath(os.path.join(own, common))
    if os.path.basename(git) == ".git" and own.startswith(git + "/worktrees/"):
        draft.add("write", [git])
        guard_main(draft, git)


def guard_named(draft: LayoutDraft, git: str) -> None:
    """What lies elsewhere, and git outside obeys because settings name it: more settings, hooks, programs."""
    for name in ("hooks", "config"):
        if os.path.islink(link := os.path.join(git, name)):
            draft.guard(os.path.realpath(link))
    found = obeyed_files(git, draft.git_settings)
    draft.obeyed[git] = found
    for path in found.settings:
        guard_settings(draft, path, git)
    for path in (*found.folders, *found.programs):
        if not is_inside(path, git):
            draft.guard(path)


def guard_settings(draft: LayoutDraft, path: str, git: str) -> None:
    """A file with settings; in the place of a missing one stands an empty file, which is as good as none to git."""
    is_own = is_inside(path, git) and not os.path.islink(path)
    if not is_own and (os.path.lexists(path) or draft.can_write(path)):
        draft.guard(os.path.realpath(path) if os.path.islink(path) else path, b"")

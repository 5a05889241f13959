"""Repositories below a workspace that tools made or changed: what git outside would run because of them is put aside.

Nothing can keep tools from making a repository in a folder of their own, which is ordinary work. But git obeys the
configuration and the hooks of every repository that its owner steps into. So it is looked for after calls, and at the
end; a job that goes on can make it again in between.

Such a job may also exchange any folder for a link at any moment. So what is judged, read, moved or written here is
reached step by step, by a handle on its folder, and no link is followed: whatever a path leads to by then, nothing
happens beside the workspace.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat

from toolyard.files.inside import is_inside
from toolyard.files.plain_text import data_at, data_itself, printable
from toolyard.process.sandbox.git.inside_repository import REAL_OBJECTS, is_hook
from toolyard.process.sandbox.git.links import GitFolderWalk, TooManyFolders, remove_link
from toolyard.process.sandbox.git.repository_walk import KnownRepositories, RepositoryWalk
from toolyard.process.sandbox.git.settings import lost_addresses, plain_part
from toolyard.process.sandbox.mount_points import NEW_FILE, folder_in, folder_itself, listing_at, move_aside, writable
from toolyard.process.sandbox.watch import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
    from logging import Logger

    from toolyard.process.sandbox.folder_events import FolderEvents
    from toolyard.process.sandbox.git.settings import GitSetting


TICK = 0.02
"""By how much the kernel's time of a change may lag behind."""
CONFIGS = ("config", "config.worktree")
OLD_ADDRESSES = ("remotes", "branches")
"""Folders of files that name addresses of remotes, which git still obeys and has long ceased to write."""
DEEPEST_POINTER = 4
LONGEST_CONFIG = 1 << 14
"""Bytes of a configuration that is looked over; git writes far less by itself."""


class NestedRepositories:
    """Looks through some folders again and again, the second time only where something has changed."""

    def __init__(
        self,
        roots: Sequence[str],
        since: float,
        guarded: Mapping[str, Sequence[int]] | None = None,
        *,
        repositories: Sequence[str] = (),
        sealed: Collection[str] = (),
        walk: RepositoryWalk | None = None,
    ) -> None:
        """`since` is when tools began to be able to write there: what is older is its owner's.

        `repositories` are those that may lie elsewhere and that worktrees may belong to.

        So is what is guarded, as long as it is the same file: the guard of one that was replaced is gone. Where nothing
        is guarded, the workspace's own repository is left alone. What is sealed is guarded with all that is below it,
        and so need not be looked through. `walk` may have been there already.
        """
        self._roots = [os.path.realpath(root) for root in roots]
        self._repositories_of_worktrees = [os.path.realpath(git) for git in repositories]
        self._since = int((since - TICK) * 1e9)
        self._guarded = {path: tuple(which) for path, which in (guarded or {}).items()}
        self._sealed = frozenset(sealed)
        self._spared = () if guarded else tuple(os.path.join(root, ".git") for root in self._roots)
        self._folders = GitFolderWalk(self._is_new)
        self._walk = walk or RepositoryWalk()
        self._known = KnownRepositories(self._walk, self._roots, self._since)
        self._judged: dict[tuple[str, int, int], bool] = {}
        self._plain: dict[str, bytes] = {}
        """The digests of configurations that were looked over. A time says nothing: it stays the same when somebody
        writes by memory into which the file is mapped."""
        self._visited: set[str] = set()
        """The git folders of the repository that is being looked over."""
        self._elsewhere: list[str] = []
        self._looked_elsewhere = 0
        self.passed_over = ""
        """The first folder that some look came not to, because there were too many."""

    def listen(self, events: FolderEvents) -> None:
        """Let these tell where something comes to be, so that not all folders have to be looked at each time."""
        self._known.listen(events)

    def sweep(self, *, at_end: bool = False) -> dict[str, str]:
        """Put aside what git would run; tells where each went. Nothing that was made or changed is passed over."""
        moved: dict[str, str] = {}
        for some in self.sweep_steps(at_end=at_end):
            moved |= some
        return moved

    def sweep_steps(self, *, at_end: bool = False) -> Generator[dict[str, str], None, None]:
        """The same by folders and repositories, each a step of its own: somebody else may have a turn in between.

        Whoever stops before the end has the next sweep look at everything.
        """
        for _ in self._known.look(self._closed, is_whole=at_end):
            yield {}
        self._say_what_is_passed_over()
        for git in self._known.all():
            moved = self._disarm_or_put_aside(git)
            if git not in self._walk.known:
                self._walk.made.add(git)
            yield moved
        if self._looked_elsewhere != self._known.looks:
            self._elsewhere, self._looked_elsewhere = list(self._find_elsewhere()), self._known.looks
        for git in self._elsewhere:
            with contextlib.suppress(TooManyFolders):  # it is the owner's, and stays
                yield {} if self._is_sealed(git) else self._folders.remove_links(git)

    def is_swept(self) -> bool:
        """Whether a sweep would find nothing: no look is due, and nobody inside can write any of the repositories.

        What can be written is looked over each time, since no event tells of what is written by mapped memory.
        """
        known = self._known
        if known.is_look_due() or self._looked_elsewhere != known.looks:
            return False
        return all(map(self._is_closed, known.all())) and all(map(self._is_sealed, self._elsewhere))

    def _say_what_is_passed_over(self) -> None:
        if self._walk.passed_over and not self.passed_over:
            self.passed_over = self._walk.passed_over
            log().warning("too many folders to look for repositories in %s and others", printable(self.passed_over))

    def _disarm_or_put_aside(self, git: str) -> dict[str, str]:
        """One that cannot be looked over, whatever the reason, must neither stay nor keep the others."""
        self._visited.clear()
        try:
            return self._disarm(git)
        except Exception:
            log().exception("a repository cannot be looked over, so it is put aside")
            if not is_repository_of_its_own(git):
                return self._put_aside(os.path.join(git, "HEAD"))
            return self._put_aside(git)

    def _closed(self) -> set[str]:
        return {top for top in self._sealed if self._is_sealed(top)}

    def _find_elsewhere(self) -> Iterator[str]:
        """Of a workspace that is a worktree, its own part of the repository, and that repository."""
        for root in self._roots:
            with contextlib.suppress(OSError):  # of who changes links on the way just now
                yield from elsewhere_of(root)

    def _is_sealed(self, path: str) -> bool:
        """Whether nobody inside can have changed anything below a folder, which may hold thousands of others."""
        while path != os.sep and path not in self._sealed:
            path = os.path.dirname(path)
        return path in self._sealed and identity_of(path) == self._guarded.get(path)

    def _is_closed(self, git: str) -> bool:
        """Whether it is itself what is sealed, and no link to something else."""
        if git not in self._sealed:
            return False
        try:
            facts = os.lstat(git)  # of a link its own identity, which is not that of what was sealed
        except OSError:
            return False
        return (facts.st_dev, facts.st_ino) == self._guarded.get(git)

    def _disarm(self, git: str, depth: int = 0) -> dict[str, str]:
        """Of one repository, whose `.git` may be a pointer to another folder, and that one to a third."""
        if self._is_closed(git):
            return {}  # as of nearly every workspace, at every call: to follow its path would cost far more
        # The last time that links are followed: what is done from here on is done where none leads.
        named, git = git, os.path.realpath(git)
        if self._is_sealed(git):
            return {}
        if not self._is_ours(git):
            return self._cut_off(named) if os.path.islink(named) else {}
        moved = self._folders.remove_links(git) if os.path.isdir(git) else {}
        self._name_real_objects(git)
        if depth > DEEPEST_POINTER or git in self._spared:
            return moved
        if os.path.isfile(git):
            pointer = pointer_in(git).removeprefix("gitdir: ")
            return self._follow(git, os.path.join(os.path.dirname(git), pointer), depth) if pointer else {}
        for folder in (git, *self._folders.repositories(git)):
            moved |= self._disarm_folder(folder, depth)
        return moved

    def _cut_off(self, link: str) -> dict[str, str]:
        """A link to where nobody looks: by another name only git is kept from following it."""
        if is_repository_of_its_own(link):
            return self._put_aside(link)
        return remove_link(link, self._is_new)

    def _disarm_folder(self, git: str, depth: int) -> dict[str, str]:
        """What git would obey in one folder that it takes for a repository."""
        if git in self._visited:
            return {}
        self._visited.add(git)
        try:
            with folder_itself(git) as folder:
                return self._disarm_opened(git, folder, depth)
        except (FileNotFoundError, NotADirectoryError):  # it is gone, or a link by now
            return {}

    def _disarm_opened(self, git: str, folder: int, depth: int) -> dict[str, str]:
        moved: dict[str, str] = {}
        if (target := pointer_at("commondir", folder)) not in ("", "."):
            moved |= self._follow(os.path.join(git, "commondir"), os.path.join(git, target), depth)
        for name in CONFIGS:
            moved |= self._disarm_config(git, name, folder)
        for name in OLD_ADDRESSES:
            if names_in(name, folder):
                moved |= self._put_aside_at(name, folder, git)
        return moved | self._disarm_hooks(git, folder)

    def _name_real_objects(self, git: str) -> None:
        """A clone of a repository that git inside has for itself names its objects as they are called inside."""
        names = {f"{real}/{REAL_OBJECTS}": f"{real}/objects" for real in self._repositories_of_worktrees}
        place = os.path.join(git, "objects", "info")
        if not names or not os.path.lexists(os.path.join(place, "alternates")):
            return
        with contextlib.suppress(OSError), folder_itself(place) as folder:
            lines = os.fsdecode(data_at("alternates", folder)).splitlines()
            if not any(line in names for line in lines):
                return
            text = "".join(f"{line}\n" for line in dict.fromkeys(names.get(line, line) for line in lines))
            with open(os.open("alternates.new", NEW_FILE, 0o644, dir_fd=folder), "wb") as file:
                file.write(os.fsencode(text))
            os.rename("alternates.new", "alternates", src_dir_fd=folder, dst_dir_fd=folder)

    def _follow(self, pointer: str, target: str, depth: int) -> dict[str, str]:
        """Disarm what a pointer leads to; one that leads to where nobody looks is put aside itself."""
        if self._is_ours(real := os.path.realpath(target)):
            return self._disarm(real, depth + 1)
        return self._put_aside(pointer)

    def _put_aside(self, path: str) -> dict[str, str]:
        folder, name = os.path.split(path)
        with contextlib.suppress(OSError), folder_itself(folder) as opened:
            return self._put_aside_at(name, opened, folder)
        return {}

    def _put_aside_at(self, name: str, folder: int, above: str) -> dict[str, str]:
        """Put aside something new in an open folder, whose path is given, too."""
        path = os.path.join(above, name)
        if not self._is_new_at(name, folder, path):
            return {}
        with contextlib.suppress(OSError), writable(folder):
            return {path: os.path.join(above, move_aside(name, folder))}
        return {}

    def _is_ours(self, git: str) -> bool:
        return any(is_inside(git, root) for root in (*self._roots, *self._repositories_of_worktrees))

    def _disarm_config(self, git: str, name: str, folder: int) -> dict[str, str]:
        """Leave of a configuration what names no program, and keep the whole beside it."""
        path, moved = os.path.join(git, name), {}
        if not self._is_new_at(name, folder, path):
            return {}
        text = settings_text(name, folder)
        digest = hashlib.blake2b(os.fsencode(text), digest_size=16).digest()
        if digest == self._plain.get(path):
            return {}
        if (plain := plain_part(text, git, self._roots)) is None:
            self._plain[path] = digest
            return {}
        # One that cannot be moved must not keep the hooks and the other repositories.
        with contextlib.suppress(OSError), writable(folder):
            moved[path] = os.path.join(git, move_aside(name, folder))
            with open(os.open(name, NEW_FILE, 0o644, dir_fd=folder), "wb") as file:
                file.write(os.fsencode(plain))
            if lost := lost_addresses(text, git, self._roots):
                moved[path] = with_word_on_address(moved[path], git, lost[0])
        return moved

    def _disarm_hooks(self, git: str, folder: int) -> dict[str, str]:
        if is_link("hooks", folder):
            return self._put_aside_at("hooks", folder, git)
        moved: dict[str, str] = {}
        with contextlib.suppress(OSError), folder_in("hooks", folder) as hooks:
            facts = os.fstat(hooks)
            if (facts.st_dev, facts.st_ino) in self._guarded.values():
                return {}
            for name in filter(is_hook, listing_at(hooks)):
                moved |= self._put_aside_at(name, hooks, os.path.join(git, "hooks"))
        return moved

    def _is_new_at(self, name: str, folder: int, path: str) -> bool:
        """Whether something in an open folder is new, as that which is at a path."""
        try:
            return self._is_new(path, os.lstat(name, dir_fd=folder))
        except OSError:
            return False

    def _is_new(self, path: str, facts: os.stat_result) -> bool:
        """Whether something was made or changed since tools can write; that time nobody can set."""
        if self._guarded.get(path) == (facts.st_dev, facts.st_ino):
            return False
        return facts.st_ctime_ns >= self._since or self._was_ever_written(path, facts)

    def _was_ever_written(self, path: str, facts: os.stat_result) -> bool:
        """Whether tools of another time may have written it: what is moved into place now may be of then."""
        key = path, facts.st_ino, facts.st_ctime_ns
        if key not in self._judged:
            self._judged[key] = is_from_tools(path, facts)
        return self._judged[key]


def elsewhere_of(root: str) -> list[str]:
    """Where the pointer of a worktree leads, and the repository there.

    Anybody can write a pointer to any folder, so only a repository counts that names this very worktree itself.
    """
    pointer = os.path.join(root, ".git")
    if not os.path.isfile(pointer) or not (target := pointer_in(pointer).removeprefix("gitdir: ")):
        return []
    own = os.path.realpath(os.path.join(root, target))
    if os.path.realpath(os.path.join(own, pointer_in(os.path.join(own, "gitdir")))) != pointer:
        return []
    common = os.path.realpath(os.path.join(own, pointer_in(os.path.join(own, "commondir"))))
    return [own, common] if is_inside(own, os.path.join(common, "worktrees")) else [own]


def with_word_on_address(aside: str, git: str, lost: GitSetting) -> str:
    """What became of a configuration, with a word on the remote that has no address any more."""
    import shlex

    tree = os.path.dirname(git) if is_repository_of_its_own(git) else git
    words = ("git", "-C", tree, "remote", "set-url", lost.subsection or "", lost.value or "")
    return (
        f"moved to {aside}; it is without remote.{lost.subsection}.url = {lost.value} now, which is a folder that is "
        f"not looked over: git outside would run what tools may put there. If it is yours, outside: {shlex.join(words)}"
    )


def is_from_tools(path: str, facts: os.stat_result) -> bool:
    """As far as that is known: whoever cleans up after an application that was killed has only Python's own modules."""
    try:
        from toolyard.files.write_times import may_be_from_tools
    except ImportError:
        return False
    return may_be_from_tools(path, facts)


def pointer_in(path: str) -> str:
    """What a pointer names, as git reads it: line ends are taken off and nothing else, and a NUL ends it."""
    return pointer_of(data_itself(path))


def pointer_at(name: str, folder: int) -> str:
    """The same of a pointer in an open folder."""
    return pointer_of(data_at(name, folder))


def pointer_of(data: bytes) -> str:
    return os.fsdecode(data.rstrip(b"\r\n").split(b"\0")[0])


def is_repository_of_its_own(git: str) -> bool:
    """Whether what was found is the git folder or a pointer to one, and not a folder that also holds other files."""
    return os.path.basename(git) == ".git"


def names_in(name: str, folder: int) -> Iterable[str]:
    """The names in a folder in an open folder; none of what a link leads to."""
    try:
        with folder_in(name, folder) as opened:
            return listing_at(opened)
    except OSError:
        return []


def is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
    except OSError:
        return False


def settings_text(name: str, folder: int) -> str:
    """The text of a configuration in an open folder; of what is none, or too long, something that is no setting."""
    try:
        facts = os.lstat(name, dir_fd=folder)
    except OSError:
        return ""
    data = data_at(name, folder, LONGEST_CONFIG + 1) if stat.S_ISREG(facts.st_mode) else b"\0"
    is_text = b"\0" not in data and len(data) <= LONGEST_CONFIG and bool(data or not facts.st_size)
    return os.fsdecode(data) if is_text else "\0"


def log() -> Logger:
    """Imported when there is something to tell: every start would wait for it."""
    import logging

    return logging.getLogger("toolyard.sandbox")

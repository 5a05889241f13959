"""Which paths of a workspace git ignores: by `.gitignore` in each folder, by `info/exclude` of the repository, and by
what its owner has ignored everywhere.
"""

from __future__ import annotations

import os

from toolyard.files.plain_text import data_of, read_whole
from toolyard.files.workspace.globs import NEVER, NoPattern, compiled, git_regex, glob_regex

MOST_READ = 1 << 20
READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"
LONGEST_PATH = 4096
BOM_UTF8 = b"\xef\xbb\xbf"


class IgnoreRules:
    """The rules of one file; the last that fits decides."""

    def __init__(self, text: str) -> None:
        """Paths and rules are bytes for git, so that each character here stands for a byte."""
        rules = [rule for line in text.split("\n") if (rule := read_rule(line.removesuffix("\r")))]
        self._rules = [(compiled(regex), verdict, folders) for regex, verdict, folders in reversed(rules)]
        self._any = compiled("|".join(f"(?:{regex})" for regex, _, _ in rules) or NEVER)
        """Most paths fit none of them, which one look tells."""

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """Whether a path below the file's folder is ignored; None when no rule is about it."""
        if self._any.fullmatch(path) is None:
            return None
        for pattern, ignored, folders in self._rules:
            if (is_folder or not folders) and pattern.fullmatch(path):
                return ignored
        return None


def read_rule(line: str) -> tuple[str, bool, bool] | None:
    """A line as an expression, whether it ignores, and whether it is about folders only; None for what is no rule."""
    if not (line := without_blanks(line)) or line.startswith("#"):
        return None
    ignored = not line.startswith("!")
    line = line if ignored else line[1:]
    folders = line.endswith("/")
    line = line[:-1] if folders else line
    try:
        if "/" in line:
            return git_regex(line.removeprefix("/")), ignored, folders
        return (f"(?:.*/)?{glob_regex(line, as_git=True)}", ignored, folders) if line else None
    except NoPattern:
        return None


def without_blanks(line: str) -> str:
    """Blanks that end a line are none of its rule, but for one that a backslash is before."""
    bare = line.rstrip(" ")
    is_kept = bare != line and (len(bare) - len(bare.rstrip("\\"))) % 2
    return f"{bare} " if is_kept else bare


class Ignores:
    """All rules that hold in a folder, the nearest first."""

    __slots__ = ("_chain",)

    def __init__(self, chain: tuple[tuple[int, IgnoreRules], ...] = ()) -> None:
        self._chain = chain
        """Each with how many characters a path has before what its rules look at."""

    def below(self, folder: str, rules: IgnoreRules) -> Ignores:
        """The same with the rules of a folder, whose path ends with a slash or is empty."""
        return Ignores(((len(folder), rules), *self._chain))

    def hides(self, path: str, is_folder: bool) -> bool:
        for skipped, rules in self._chain:
            verdict = rules.verdict(in_bytes(path[skipped:]), is_folder)
            if verdict is not None:
                return verdict
        return False


def rules_in(folder: int | str, name: str = IGNORE_FILE) -> IgnoreRules | None:
    """The rules of a file in a folder, by its handle or its path; None when there is none, or, as for git, a link."""
    try:
        if isinstance(folder, int):
            fd = os.open(name, READING, dir_fd=folder)
        else:
            fd = os.open(os.path.join(folder, name), READING)
        try:
            data = read_whole(fd, MOST_READ)
        finally:
            os.close(fd)
    except OSError:
        return None
    return IgnoreRules(data.removeprefix(BOM_UTF8).decode("latin-1"))


def in_bytes(path: str) -> str:
    """A path with a character for each of its bytes."""
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def repository_of(top: str) -> str | None:
    """The folder at or above another that is a repository of git."""
    folder = top
    while not os.path.lexists(os.path.join(folder, REPOSITORY)):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def shared_folder(root: str) -> str:
    """Where a repository keeps what all of its work trees share; of one that is elsewhere a file tells where."""
    folder = os.path.join(root, REPOSITORY)
    if named := first_line(folder).removeprefix("gitdir: "):
        folder = os.path.join(root, named)
        folder = os.path.join(folder, first_line(os.path.join(folder, "commondir")))
    return folder


def first_line(path: str) -> str:
    """Of a small file; nothing where there is none."""
    line = data_of(path, LONGEST_PATH).split(b"\n")[0]
    return "" if b"\0" in line else os.fsdecode(line)


def is_same_below(rules: str, top: str) -> bool:
    """Whether rules mean the same from the top of a workspace on as from that of its repository."""
    return "/" not in rules or repository_of(top) in (top, None)


def ignores_above(top: str, path: str, excludes: str = "") -> tuple[Ignores, str]:
    """What holds in a folder of a workspace by the files above it, and how its path begins for these rules."""
    root = repository_of(top) or top
    ignores = Ignores()
    if excludes:
        ignores = ignores.below("", IgnoreRules(excludes))
    if exclude := rules_in(os.path.join(shared_folder(root), "info"), "exclude"):
        ignores = ignores.below("", exclude)
    begin = os.path.relpath(os.path.join(top, path), root)
    names = [] if begin == "." else begin.split("/")
    for count in range(len(names)):
        prefix = "".join(f"{name}/" for name in names[:count])
        if rules := rules_in(os.path.join(root, prefix)):
            ignores = ignores.below(prefix, rules)
    return ignores, "".join(f"{name}/" for name in names)

"""Patterns of paths, and where a path really leads."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from toolyard.core.regexes import star_pattern
from toolyard.files.inside import is_inside
from toolyard.permissions.patterns import bad_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolyard.core.problems import Problem


DEEP = "**"
OF_PROCESS = re.compile(
    r"/proc/(?:\d+|self|thread-self)(?:/task/\d+)?/(?:environ|auxv|mem|maps|smaps|root|cwd|exe|fd|fdinfo|map_files|stack)(?:/|\Z)"
)
MAY_LEAD_UP = re.compile(r"\.[^*?\[]*[*?\[]")
"""A pattern that may match the folder above."""
MAY_BE_SEVERAL = re.compile(r"[*?\[{\\]")
MOST_LOOKED_AT = 10_000
NOWHERE = "/dev/null/nowhere"
"""A path that no file has."""


def parse_path_pattern(text: str) -> tuple[str, ...] | Problem:
    """The segments of a pattern; a relative one starts at the workspace, `~/` at the home folder."""
    if not text or "\0" in text:
        return bad_rule("a path is needed")
    if any(DEEP in segment and segment != DEEP for segment in text.split("/")):
        return bad_rule("'**' stands for whole folders, so it is a part of the path of its own: 'src/**'")
    expanded = os.path.expanduser(text) if text == "~" or text.startswith("~/") else text
    normal = os.path.normpath(expanded)
    if normal.startswith(".."):
        return bad_rule("a path outside of the workspace has to be absolute, or start with '~/'")
    return tuple(segment for segment in normal.split("/") if segment != ".") if normal != "." else ()


def resolved(path: str, folder: str) -> tuple[str, str]:
    """A path made absolute, as it is written and as symbolic links lead; nowhere if there can be no such path."""
    joined = os.path.join(folder, path)
    try:
        return os.path.normpath(joined), os.path.realpath(joined)
    except ValueError:  # a NUL character, or half a character
        return NOWHERE, NOWHERE


class OwnFolders(msgspec.Struct, frozen=True):
    """Folders for temporary files that nobody else sees: what is in them on the disk has nothing to do with them."""

    folders: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """What is somebody else's in them."""
    places: tuple[str, ...] = ()
    """Where each of them is on the disk that we see."""
    heeds_links: bool = False
    """Whether a path counts only if no link is on it, or below it."""
    held: list[str] = msgspec.field(default_factory=list)
    """The paths that were asked about and are in them."""

    def hold(self, path: str) -> bool:
        """Whether an absolute path, as it is written, surely is in one of them."""
        if not any(is_inside(path, folder) for folder in self.folders):
            return False
        segments = path.split("/")
        if ".." in segments or any(MAY_LEAD_UP.match(segment) for segment in segments):
            return False
        if any(is_inside(os.path.normpath(path), other) for other in self.others):
            return False
        self.held.append(path)
        return not (self.heeds_links and self._may_lead_on(path))

    def _may_lead_on(self, path: str) -> bool:
        """Whether a link is on the way, or in what is meant: lines that nobody vouches for can make some there."""
        places = (
            (folder, at) for folder, at in zip(self.folders, self.places, strict=False) if is_inside(path, folder)
        )
        folder, at = next(places, ("", ""))
        if not at:  # which cannot be looked at
            return True
        for segment in filter(None, path[len(folder) :].split("/")):
            if MAY_BE_SEVERAL.search(segment):
                break
            at = os.path.join(at, segment)
            try:
                mode = os.lstat(at).st_mode
            except FileNotFoundError:
                return False
            except (OSError, ValueError):
                return True
            if not stat.S_ISDIR(mode):
                return stat.S_ISLNK(mode)
        return holds_links(at)


NO_OWN_FOLDERS = OwnFolders()


PUBLIC_FILES = frozenset({
    *("/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/redhat-release", "/etc/alpine-release"),
    *("/etc/fedora-release", "/etc/centos-release", "/etc/arch-release", "/etc/issue", "/etc/timezone"),
    *("/etc/shells", "/etc/services", "/etc/protocols", "/etc/mime.types", "/etc/debian_version", "/etc/nsswitch.conf"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/uptime", "/proc/loadavg", "/proc/filesystems"),
    *("/proc/stat", "/proc/vmstat", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype", "/proc/sys/fs/file-max"),
    *("/proc/sys/vm/swappiness", "/proc/sys/kernel/pid_max", "/proc/swaps", "/proc/cgroups", "/etc/localtime"),
    *("/proc/1/cgroup", "/.dockerenv"),
})  # fmt: skip
"""Files that tell of the system, and of nobody who uses it."""
OF_ITSELF = frozenset(
    f"/proc/self/{name}"
    for name in ("cgroup", "comm", "limits", "loginuid", "oom_score", "sched", "stat", "statm", "status")
)
"""Files in which a process reads how it is run, and that hold no path and no secret."""
PUBLIC_FOLDERS = (
    *("/usr/bin", "/usr/sbin", "/usr/include", "/usr/share", "/usr/lib", "/usr/lib64", "/usr/libexec"),
    *("/bin", "/sbin", "/lib", "/lib64", "/usr/local/bin", "/usr/local/sbin", "/usr/local/include", "/usr/local/share"),
    *("/sys/fs/cgroup", "/sys/devices/system/cpu"),
)
"""Folders of what was installed for everybody."""


def is_public(path: str) -> bool:
    """Whether an absolute path, as it is written and where it leads, belongs to what every such system has."""
    if not path.startswith("/") or path.startswith("//"):
        return False
    if (plain := os.path.normpath(path)) in OF_ITSELF:
        return True  # a link to one's own folder, with another name for each process
    names = (plain, resolved(path, "/")[1])
    return all(name in PUBLIC_FILES or any(is_inside(name, folder) for folder in PUBLIC_FOLDERS) for name in names)


def is_of_process(path: str) -> bool:
    """Whether a path, made absolute, is a file of a process that holds its secrets or leads around other paths."""
    return OF_PROCESS.match(os.path.normpath(path).replace("//", "/", 1)) is not None


Value = TypeVar("Value")


class PathNode(msgspec.Struct, Generic[Value]):
    names: dict[str, PathNode[Value]] = msgspec.field(default_factory=dict)
    globs: list[tuple[re.Pattern[str], PathNode[Value]]] = msgspec.field(default_factory=list)
    deep: PathNode[Value] | None = None
    rules: list[Value] = msgspec.field(default_factory=list)


class PathIndex(Generic[Value]):
    """Finds the patterns that fit a path in the time its folders take."""

    def __init__(self) -> None:
        self._relative: PathNode[Value] = PathNode()
        self._absolute: PathNode[Value] = PathNode()

    def add(self, pattern: Sequence[str], rule: Value) -> None:
        absolute = bool(pattern) and pattern[0] == ""
        node = self._absolute if absolute else self._relative
        for segment in pattern[1:] if absolute else pattern:
            node = child_of(node, segment)
        node.rules.append(rule)

    def find(self, path: str, workspace: str) -> Iterator[Value]:
        """The rules whose pattern fits an absolute path."""
        yield from walk(self._absolute, [segment for segment in path.split("/") if segment], 0)
        if is_inside(path, workspace):
            below = path[len(workspace.rstrip("/")) :]
            yield from walk(self._relative, [segment for segment in below.split("/") if segment], 0)


def child_of(node: PathNode[Value], segment: str) -> PathNode[Value]:
    if segment == DEEP:
        node.deep = node.deep or PathNode()
        return node.deep
    if "*" in segment:
        node.globs.append((star_pattern(segment.split("*"), "[^/]"), PathNode()))
        return node.globs[-1][1]
    return node.names.setdefault(segment, PathNode())


def walk(node: PathNode[Value], segments: Sequence[str], at: int) -> Iterator[Value]:
    if at == len(segments):
        yield from node.rules
    else:
        if (below := node.names.get(segments[at])) is not None:
            yield from walk(below, segments, at + 1)
        for glob, below in node.globs:
            if glob.fullmatch(segments[at]):
                yield from walk(below, segments, at + 1)
    if node.deep is not None:
        for skipped in range(at, len(segments) + 1):
            yield from walk(node.deep, segments, skipped)


def holds_links(folder: str) -> bool:
    """Whether there is a link below a folder, or too much to know that."""
    waiting, seen = [folder], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                found = list(entries)
        except FileNotFoundError:
            continue
        except OSError:
            return True
        seen += len(found)
        if seen > MOST_LOOKED_AT or any(entry.is_symlink() for entry in found):
            return True
        waiting += [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    return False


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, as far as it is one and can be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []

"""Handing over objects that git inside made: each is what its name says, or it stays inside."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import zlib

from toolyard.core.regexes import late_pattern
from toolyard.process.sandbox.git.git_files import FOLDER, READ, stamp_of, write_all
from toolyard.process.sandbox.git.outgoing.git_outside import MOST_SECONDS, GitOutside
from toolyard.process.sandbox.git.outgoing.reachable import ID, Reachable
from toolyard.process.sandbox.mount_points import folder_in, folder_itself

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from toolyard.process.sandbox.git.git_files import Stamp


HALF = late_pattern(r"[0-9a-f]{2}")
REST = late_pattern(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
PACK = late_pattern(r"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.pack")
HEADER = late_pattern(rb"(?:blob|tree|commit|tag) (\d{1,18})\0")
COMMIT_FOLLOWS = late_pattern(rb"([0-9a-f]+) (?:missing|(\w+) (\d+))\n")
"""A line before an object that git shows."""
SECONDS_FOR_MODULES = 20
"""Of the processor, that git may look for submodules in new commits; with more to look at they wait till the end."""
MODULE_CHANGED = re.compile(rb":[0-7]{6} 160000 [0-9a-f.]+ [0-9a-f.]+ [A-Z]\0([^\0]+)")
"""A folder that became another submodule."""
CHUNK = 1 << 18
LONGEST_HEADER, MOST_UNPACKED = 64, 1 << 31
MOST_CHECKS = 200
"""How often git is asked for those that are missing among many; what is left then counts as missing."""
MOST_PACKS, LONGEST_PACK = 100, 1 << 33
"""Packs that are taken at a time, and how long one may be."""
LEAST_SECONDS, BYTES_A_SECOND = 30, 1 << 21
"""Of the processor, that git may take for a pack: one that takes longer unpacks to far more than it is."""


class ObjectHandover:
    """The objects of one repository, each handed over once."""

    def __init__(self, inside: str, git: str, program: str) -> None:
        """`inside` is their folder; `program` is the git that may run outside, empty where there is none."""
        self._inside, self._git = inside, git
        self._outside = GitOutside(program, git)
        self._given: set[str] = set()
        self._refused: dict[str, Stamp] = {}
        """What was not what it says, until it is replaced."""
        self._may_have_modules = False
        """Whether something that was handed over may have a submodule in it."""

    def begin(self) -> None:
        """Another exchange begins, which may take its time."""
        self._outside.begin()

    def hand_over(self, wanted: Iterable[str], ends: Collection[str] = ()) -> None:
        """Copy what some objects are made of, if all of it is there and is what it says; `ends` have no parents.

        Packs are taken only where something is missing else, and whole.
        """
        with contextlib.suppress(OSError), folder_itself(self._inside) as top:
            reachable = Reachable(top, self._is_outside, ends)
            reachable.add({one.partition("^")[0] for one in wanted})
            missing = reachable.elsewhere - self.there(reachable.elsewhere)
            if missing and self._hand_over_packs(top):
                # What is in a pack may lead to what is in a file of its own again.
                reachable.add(loose_at(top))
                missing = reachable.elsewhere - self.there(reachable.elsewhere)
            self._may_have_modules |= reachable.has_modules
            for name in reachable.whole(() if self._is_partial() else missing):
                with contextlib.suppress(OSError):  # one that cannot be copied must not keep the others
                    self._copy_from(top, name)

    def hand_over_all(self) -> None:
        """Copy what is new and is what it says; whoever needs the rest will miss it."""
        with contextlib.suppress(OSError), folder_itself(self._inside) as top:
            for name in loose_at(top):
                if not self._is_outside(name):
                    with contextlib.suppress(OSError):
                        self._copy_from(top, name)
            self._hand_over_packs(top)

    def is_from_inside(self, name: str) -> bool:
        """Whether an object certainly was made inside."""
        return name in self._given

    def missing(self, values: Iterable[str]) -> list[str]:
        """Of some commits those that are not there outside with all that they are made of."""
        waiting, found = [sorted(set(values))], []
        for _ in range(MOST_CHECKS):
            some = waiting.pop() if waiting else []
            if len(some) == 1 and not self._is_whole(some):
                found += some
            elif len(some) > 1 and not self._is_whole(some):
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
            if not waiting:
                break
        return [*found, *(one for some in waiting for one in some)]

    def with_new_modules(self, values: Iterable[str], known: Iterable[bytes]) -> set[str]:
        """Of some commits those that lead to a submodule in a folder that is none so far; all if git cannot tell."""
        asked = sorted(set(values)) if self._may_have_modules else []
        folders = set(known) if asked else set()
        if not asked or not self._has_new_modules(asked, folders):
            return set()
        return {one for at, one in enumerate(asked) if at >= MOST_CHECKS or self._has_new_modules([one], folders)}

    def _has_new_modules(self, values: list[str], known: Collection[bytes]) -> bool:
        """What the owner has set for logs does not count: neither may it hide a change, nor check a signature."""
        words = ["log", "-z", "-m", "--raw", "--no-renames", "--ignore-submodules=none", "--no-show-signature"]
        words += ["--format=", "--stdin", "--not", "--all"]
        said = self._run(words, given=lines_of(values), seconds=SECONDS_FOR_MODULES)
        return said is None or any(name not in known for name in MODULE_CHANGED.findall(said))

    def parents_of(self, commits: Iterable[str]) -> dict[str, list[str]]:
        """Of those that are there outside, their parents as they are written in them."""
        found, data, at = {}, self._answer(["cat-file", "--batch"], commits), 0
        while line := COMMIT_FOLLOWS.match(data, at):
            at = line.end() + int(line[3] or 0) + bool(line[3])
            if line[2] == b"commit":
                header = data[line.end() : at].partition(b"\n\n")[0]
                found[line[1].decode()] = [one.decode() for one in re.findall(rb"(?m)^parent ([0-9a-f]+)$", header)]
        return found

    def there(self, ids: Iterable[str]) -> set[str]:
        """Those of some objects that are there outside; git is asked only for those that are in packs."""
        asked = set(ids)
        loose = {one for one in asked if ID.fullmatch(one) and os.path.lexists(self._loose_place(one))}
        lines = self._answer(["cat-file", "--batch-check=%(objectname) there"], asked - loose).decode().splitlines()
        return loose | {line.removesuffix(" there") for line in lines if line.endswith(" there")}

    def is_behind(self, old: str, new: str) -> bool:
        """Whether a commit contains another one."""
        return self._run(["merge-base", "--is-ancestor", old, new]) is not None

    def is_reachable(self, commit: str, *, without: str, new: str | None) -> bool:
        """Whether something leads to a commit when one ref does not any more, but to something else."""
        words = ["rev-list", "--max-count=1", commit, *([new] if new else ())]
        said = self._run([*words[:3], "--not", *words[3:], f"--exclude={without}", "--all"])
        return said is not None and not said

    def unreachable(self, commits: Iterable[str], *, without: str) -> set[str]:
        """Of some commits those that are there, and that no ref leads to but one."""
        there = self.there(commits)
        words = ["rev-list", "--stdin", "--not", f"--exclude={without}", "--all"]
        return set(self._answer(words, there).decode().split()) & there

    def _answer(self, words: list[str], ids: Iterable[str]) -> bytes:
        given = lines_of(sorted(set(ids)))
        return (self._run(words, given=given) or b"") if given else b""

    def _is_outside(self, name: str) -> bool:
        """Whether an object was handed over, or is outside in a file of its own."""
        return name in self._given or os.path.lexists(self._loose_place(name))

    def _loose_place(self, name: str) -> str:
        return f"{self._git}/objects/{name[:2]}/{name[2:]}"

    def _is_partial(self) -> bool:
        """Whether the owner has only some of the objects, and gets others when they are needed."""
        with contextlib.suppress(OSError):
            return any(name.endswith(".promisor") for name in os.listdir(f"{self._git}/objects/pack"))
        return False

    def _copy_from(self, top: int, name: str) -> None:
        with opened(name[:2], FOLDER, top) as folder:
            self._copy(name[:2], name[2:], folder)

    def _note(self, name: str, source: int, *, is_given: bool) -> None:
        if is_given:
            self._given.add(name)
        else:
            self._refused[name] = stamp_of(os.fstat(source))

    def _copy(self, half: str, rest: str, folder: int) -> None:
        """Copy one object while its name is checked; nobody inside can change the copy."""
        with (
            folder_itself(f"{self._git}/objects") as objects,
            made_in(half, objects) as target,
            opened(rest, READ, folder) as source,
        ):
            if self._refused.get(half + rest) == stamp_of(os.fstat(source)):
                return
            temporary = f"tmp_obj_{os.urandom(6).hex()}"
            new = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444, dir_fd=target)
            try:
                if is_whole := copy_checked(source, new, half + rest):
                    os.rename(temporary, rest, src_dir_fd=target, dst_dir_fd=target)
                self._note(half + rest, source, is_given=is_whole)
            finally:
                os.close(new)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=target)

    def _hand_over_packs(self, top: int) -> int:
        """Packs are read by git itself, which works out and checks each object and makes the list of them anew.

        Tells how many there were.
        """
        taken = 0
        with contextlib.suppress(OSError), opened("pack", FOLDER, top) as folder:
            for name in filter(PACK.fullmatch, names_at(folder)):
                if name in self._given or os.path.lexists(f"{self._git}/objects/pack/{name}"):
                    continue
                with opened(name, READ, folder) as source:
                    facts = os.fstat(source)
                    if not stat.S_ISREG(facts.st_mode) or self._refused.get(name) == stamp_of(facts):
                        continue
                    taken += 1
                    self._may_have_modules = True
                    said = self._index_pack(source, facts.st_size)
                    self._note(name, source, is_given=said is not None)
                if taken == MOST_PACKS:
                    break
        return taken

    def _index_pack(self, source: int, size: int) -> bytes | None:
        words = ["index-pack", "--stdin", "--fix-thin", f"--max-input-size={size}"]
        if size > LONGEST_PACK:
            return None
        return self._outside.run(
            words, stdin=source, seconds=LEAST_SECONDS + size // BYTES_A_SECOND, longest_file=2 * size
        )

    def _is_whole(self, values: list[str]) -> bool:
        """As git asks itself after a fetch."""
        words = ["rev-list", "--objects", "--quiet", "--stdin", "--exclude-promisor-objects", "--not", "--all"]
        return self._run(words, given=lines_of(values)) is not None

    def _run(self, words: list[str], *, given: bytes | None = None, seconds: int = MOST_SECONDS) -> bytes | None:
        return self._outside.run(words, given=given, seconds=seconds)


def lines_of(values: Iterable[str]) -> bytes:
    """As git reads them from its input."""
    return "".join(f"{value}\n" for value in values).encode()


def copy_checked(source: int, target: int, name: str) -> bool:
    """Copy a compressed object; whether it unpacks to what its name is the digest of."""
    if not stat.S_ISREG(os.fstat(source).st_mode):
        return False
    digest, unpacking = (
        hashlib.new("sha1" if len(name) == 40 else "sha256", usedforsecurity=False),
        zlib.decompressobj(),
    )
    begin, length = b"", 0
    while piece := os.read(source, CHUNK):
        write_all(target, piece)
        is_more = True
        while is_more and not unpacking.eof:
            try:
                data = unpacking.decompress(piece, CHUNK)
            except zlib.error:
                return False
            piece = unpacking.unconsumed_tail
            is_more = len(data) == CHUNK or bool(piece)
            begin += data[: LONGEST_HEADER - len(begin)]
            length += len(data)
            digest.update(data)
        if length > MOST_UNPACKED or unpacking.unused_data:
            return False
    header = HEADER.match(begin)
    return (
        unpacking.eof and digest.hexdigest() == name and header is not None and int(header[1]) == length - header.end()
    )


def loose_at(top: int) -> list[str]:
    """The objects in files of their own in an open folder of objects."""
    found = []
    for half in filter(HALF.fullmatch, names_at(top)):
        with contextlib.suppress(OSError), opened(half, FOLDER, top) as folder:
            found += [half + rest for rest in filter(REST.fullmatch, names_at(folder))]
    return found


def names_at(folder: int) -> list[str]:
    """The names in an open folder."""
    with opened(".", FOLDER, folder) as listed:
        return sorted(os.listdir(listed))


def made_in(name: str, folder: int) -> contextlib.AbstractContextManager[int]:
    """A folder in an open folder, which is made where there is none."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return folder_in(name, folder)


@contextlib.contextmanager
def opened(name: str, flags: int, folder: int) -> Iterator[int]:
    fd = os.open(name, flags, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)

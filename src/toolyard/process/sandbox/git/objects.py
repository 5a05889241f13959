"""Handing over objects that git inside made: each is what its name says, or it stays inside."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import subprocess
import zlib

from toolyard.process.sandbox.git.git_files import FOLDER, READ, stamp_of, write_all
from toolyard.process.sandbox.mount_points import folder_itself

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolyard.process.sandbox.git.git_files import Stamp


HALF = re.compile(r"[0-9a-f]{2}")
REST = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
PACK = re.compile(r"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.pack")
HEADER = re.compile(rb"(?:blob|tree|commit|tag) (\d{1,18})\0")
COMMIT_FOLLOWS = re.compile(rb"([0-9a-f]+) (?:missing|(\w+) (\d+))\n")
"""A line before an object that git shows."""
CHUNK = 1 << 18
LONGEST_HEADER, MOST_UNPACKED = 64, 1 << 31
MOST_CHECKS = 200
"""How often git is asked for those that are missing among many; what is left then counts as missing."""
PATIENCE = 600.0
"""Seconds that git may take to check what it is given; a large pack takes minutes."""


class ObjectHandover:
    """The objects of one repository, each handed over once."""

    def __init__(self, inside: str, git: str, program: str) -> None:
        """`inside` is their folder; `program` is the git that may run outside, empty where there is none."""
        self._inside, self._git, self._program = inside, git, program
        self._given: set[str] = set()
        self._refused: dict[str, Stamp] = {}
        """What was not what it says, until it is replaced."""

    def hand_over(self) -> None:
        """Copy what is new and is what it says; whoever needs the rest will miss it."""
        with contextlib.suppress(OSError), folder_itself(self._inside) as top:
            self._hand_over_loose(top)
            self._hand_over_packs(top)

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
        """Those of some objects that are there outside."""
        lines = self._answer(["cat-file", "--batch-check=%(objectname) there"], ids).decode().splitlines()
        return {line.removesuffix(" there") for line in lines if line.endswith(" there")}

    def is_behind(self, old: str, new: str) -> bool:
        """Whether a commit contains another one."""
        return self._run(["merge-base", "--is-ancestor", old, new]) is not None

    def is_reachable(self, commit: str, *, without: str, new: str | None) -> bool:
        """Whether something leads to a commit when one ref does not any more, but to something else."""
        words = ["rev-list", "--max-count=1", commit, *([new] if new else ())]
        said = self._run([*words[:3], "--not", *words[3:], f"--exclude={without}", "--all"])
        return said is not None and not said

    def _answer(self, words: list[str], ids: Iterable[str]) -> bytes:
        given = "".join(f"{one}\n" for one in sorted(set(ids))).encode()
        return (self._run(words, given=given) or b"") if given else b""

    def _hand_over_loose(self, top: int) -> None:
        for half in filter(HALF.fullmatch, names_at(top)):
            with contextlib.suppress(OSError), opened(half, FOLDER, top) as folder:
                for rest in filter(REST.fullmatch, names_at(folder)):
                    name = half + rest
                    if name not in self._given and not os.path.lexists(f"{self._git}/objects/{half}/{rest}"):
                        with contextlib.suppress(OSError):  # one that cannot be copied must not keep the others
                            self._copy(half, rest, folder)

    def _note(self, name: str, source: int, *, is_given: bool) -> None:
        if is_given:
            self._given.add(name)
        else:
            self._refused[name] = stamp_of(os.fstat(source))

    def _copy(self, half: str, rest: str, folder: int) -> None:
        """Copy one object while its name is checked; nobody inside can change the copy."""
        place = f"{self._git}/objects/{half}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(place)
        with folder_itself(place) as target, opened(rest, READ, folder) as source:
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

    def _hand_over_packs(self, top: int) -> None:
        """Packs are read by git itself, which works out and checks each object and makes the list of them anew."""
        with contextlib.suppress(OSError), opened("pack", FOLDER, top) as folder:
            for name in filter(PACK.fullmatch, names_at(folder)):
                if name in self._given or os.path.lexists(f"{self._git}/objects/pack/{name}"):
                    continue
                with opened(name, READ, folder) as source:
                    facts = os.fstat(source)
                    if not stat.S_ISREG(facts.st_mode) or self._refused.get(name) == stamp_of(facts):
                        continue
                    said = self._run(["index-pack", "--stdin", "--fix-thin"], stdin=source)
                    self._note(name, source, is_given=said is not None)

    def _is_whole(self, values: list[str]) -> bool:
        """As git asks itself after a fetch."""
        words = ["rev-list", "--objects", "--quiet", "--stdin", "--exclude-promisor-objects", "--not", "--all"]
        return self._run(words, given="".join(f"{value}\n" for value in values).encode()) is not None

    def _run(self, words: list[str], *, stdin: int | None = None, given: bytes | None = None) -> bytes | None:
        """Run git outside on the repository as its owner has it; what it says, None where it fails."""
        if not self._program:
            return None
        env = {"PATH": os.path.dirname(self._program), "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {"GIT_DIR": self._git, "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
        try:
            ran = subprocess.run(
                [self._program, *words],
                cwd=self._git,
                env=env,
                stdin=stdin if given is None else None,
                input=given,
                capture_output=True,
                timeout=PATIENCE,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return ran.stdout if ran.returncode == 0 else None


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


def names_at(folder: int) -> list[str]:
    """The names in an open folder."""
    with opened(".", FOLDER, folder) as listed:
        return sorted(os.listdir(listed))


@contextlib.contextmanager
def opened(name: str, flags: int, folder: int) -> Iterator[int]:
    fd = os.open(name, flags, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)

"""What is compared of each file of a git folder: worked out when the file was changed, and then remembered."""

from __future__ import annotations

import os

from toolyard.files.inside import is_inside
from toolyard.files.plain_text import path_of
from toolyard.process.sandbox.git.refs import refs_in
from toolyard.process.sandbox.git.travelling import INDEX, value_of
from toolyard.process.sandbox.mount_points import EMPTY_HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolyard.process.sandbox.git.git_files import GitFiles


class ComparedValues:
    """Those of one repository, on both sides."""

    def __init__(self, roots: Sequence[str], *, is_elsewhere: bool) -> None:
        """`roots` is the workspace; `is_elsewhere` tells that the main working tree is not in it."""
        self.id_length = 20
        """Of the names of objects, in bytes."""
        self._roots, self._main_is_elsewhere = roots, is_elsewhere
        self._known: dict[str, dict[str, tuple[bytes, str | None]]] = {}
        self._elsewhere: dict[str, bytes] = {}

    def of(self, side: GitFiles, contents: Mapping[str, bytes]) -> dict[str, str]:
        """The value of each thing that may travel; none where there is only room for a repository."""
        refs = refs_in(contents)
        if contents.get("HEAD") == EMPTY_HEAD and not refs:
            return {}
        before, now = self._known.get(side.root, {}), {}
        for name, data in contents.items():
            if self._is_index_elsewhere(name, contents):
                continue
            seen = before.get(name)  # the very same object as long as the file is the same
            is_same = seen is not None and seen[0] is data
            now[name] = seen if seen and is_same else (data, value_of(name, data, self.id_length, contents.get))
        self._known[side.root] = now
        return {name: value for name, (_, value) in now.items() if value is not None} | refs

    def note_filled(self, side: GitFiles, other: GitFiles, contents: Mapping[str, bytes]) -> None:
        """One side was filled with the very same files as the other."""
        self._known[side.root] = dict(self._known[other.root])
        self._elsewhere = {name: data for name, data in contents.items() if self._is_index_elsewhere(name, contents)}

    def staged_elsewhere(self, contents: Mapping[str, bytes]) -> list[str]:
        """What was staged all the same, in a side that was filled, for working trees that are not in the workspace."""
        found = []
        for name, data in self._elsewhere.items():
            now = contents.get(name, data)
            if now is not data:
                values = [value_of(name, each, self.id_length, contents.get) for each in (data, now)]
                found += [name] if values[0] != values[1] else []
                self._elsewhere[name] = now
        return found

    def _is_index_elsewhere(self, name: str, contents: Mapping[str, bytes]) -> bool:
        """Whether it is the index of a working tree that is not in the workspace: it is not for anybody inside."""
        if name == "index" or not INDEX.fullmatch(name):
            return name == "index" and self._main_is_elsewhere
        pointer = contents.get(f"{name.removesuffix('index')}gitdir")
        if pointer is None:
            return False
        try:
            place = os.path.realpath(path_of(pointer.rstrip(b"\r\n")))
        except OSError:
            return True
        return not any(is_inside(place, root) for root in self._roots)

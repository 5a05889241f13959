"""The folder that a call runs in, as a person has to know it before saying yes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from toolyard.core.visible_text import escaped
from toolyard.files.inside import is_inside
from toolyard.permissions.paths import OwnFolders

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolyard.core.reach import Reach


FolderKind: TypeAlias = Literal["top", "below", "elsewhere", "temporary"]
FOLDER_DESCRIPTIONS: dict[FolderKind, str] = {
    "top": "the top of the workspace",
    "below": "a folder of the workspace",
    "elsewhere": "a folder outside of the workspace",
    "temporary": "a folder for temporary files that is there only inside of the sandbox",
}


class CallFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call runs. Of a question, both paths are safe to show."""

    path: str
    """Where it really is."""
    kind: FolderKind
    by_link: str = ""
    """How it is called, where a link leads to it."""

    def is_told(self, reach: Reach) -> bool:
        """Whether a person has to know it: it is not where calls usually run, or nothing keeps the call in."""
        return self.kind != "top" or bool(self.by_link) or reach == "outside"

    def shown(self, redact: Callable[[str], str]) -> CallFolder:
        """The same as it may be shown."""
        path, link = (escaped(redact(text)).replace("\n", "\\n") for text in (self.path, self.by_link))
        return CallFolder(path=path, kind=self.kind, by_link=link)

    def __str__(self) -> str:
        link = f", by the link {self.by_link}" if self.by_link else ""
        return f"{FOLDER_DESCRIPTIONS[self.kind]}: {self.path}{link}"


def folder_of_call(cwd: str, workspace: str, own: OwnFolders) -> CallFolder:
    """What there is to know of the folder of a call, with the temporary files that would be its own."""
    if cwd == workspace:  # wherever links lead, that is the one that is known
        return CallFolder(path=cwd, kind="top")
    if is_only_inside(cwd, own):
        return CallFolder(path=cwd, kind="temporary")
    real, top = os.path.realpath(cwd), os.path.realpath(workspace)
    kind: FolderKind = "top" if real == top else "below" if is_inside(real, top) else "elsewhere"
    is_as_written = real == cwd or real == os.path.join(top, os.path.relpath(cwd, workspace))
    return CallFolder(path=real, kind=kind, by_link="" if is_as_written else cwd)


def is_only_inside(folder: str, own: OwnFolders) -> bool:
    """Whether what a path names inside of the sandbox is another folder outside, or none."""
    here = [place for name, place in zip(own.folders, own.places, strict=False) if is_inside(folder, name)]
    is_same = any(is_inside(folder, place) for place in here)  # as without mounts
    return not is_same and OwnFolders(own.folders, own.others, own.places).hold(os.path.normpath(folder))

"""The part of a git configuration that names no program, so that git can obey it whoever wrote it."""

from __future__ import annotations

import os
import re

from toolyard.files.inside import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


HEADER = re.compile(r'\[([A-Za-z0-9-]+)(?: "((?:[^"\\]|\\["\\])*)")?\]')
SETTING = re.compile(r'([A-Za-z][A-Za-z0-9-]*)(?:\s*=\s*(?:"([^"\\]*)"|([^"\\#;]*)))?')
COMMENT = re.compile(r"[#;].*")
HARMLESS = {
    "branch": {"remote", "merge", "rebase", "pushremote", "description"},
    "color": {"ui"},
    "core": {
        *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode"),
        *("symlinks", "autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "sparsecheckout", "sparsecheckoutcone"),
        *("untrackedcache", "commitgraph", "worktree"),
    },
    "extensions": {"worktreeconfig", "objectformat", "partialclone", "refstorage"},
    "fetch": {"prune"},
    "init": {"defaultbranch"},
    "lfs": {"repositoryformatversion"},
    "merge": {"ff", "conflictstyle"},
    "pull": {"rebase", "ff"},
    "push": {"default", "autosetupremote", "followtags"},
    "rebase": {"autostash", "autosquash"},
    "receive": {"denycurrentbranch"},
    "remote": {"url", "fetch", "pushurl", "tagopt", "mirror", "prune", "promisor", "partialclonefilter"},
    "submodule": {"url", "active", "branch", "ignore"},
    "user": {"name", "email"},
}  # fmt: skip


def plain_part(text: str, git: str, roots: Sequence[str]) -> str | None:
    """What can stay of a configuration, written anew; None when all of it can."""
    kept: list[str] = []
    is_plain = True
    for header, name, value in settings_in(text):
        if name is not None and is_harmless(header, name, value, git, roots):
            kept.append(f'{header}\n\t{name} = "{value}"\n')
        else:
            is_plain = False
    return None if is_plain else "".join(kept)


def settings_in(text: str) -> Iterator[tuple[str, str | None, str]]:
    """The header, name and value of each setting; no name for a line that is not written plainly."""
    header = ""
    for line in (line.strip() for line in text.split("\n")):
        if not line or COMMENT.fullmatch(line):
            continue
        if HEADER.fullmatch(line):
            header = line
        elif header and (found := SETTING.fullmatch(line)):
            yield header, found[1].lower(), (found[2] if found[2] is not None else found[3] or "true").strip()
        else:
            header = ""
            yield "", None, ""


def is_harmless(header: str, name: str, value: str, git: str, roots: Sequence[str]) -> bool:
    """Whether a setting starts nothing and leads nowhere else. An address with `::` names a program."""
    found = HEADER.fullmatch(header)
    section = found[1].lower() if found else ""
    if name not in HARMLESS.get(section, ()) or "::" in value or any(ord(letter) < 32 for letter in value):
        return False
    if (section, name) != ("core", "worktree"):
        return True
    return any(is_inside(os.path.realpath(os.path.join(git, value)), root) for root in roots)

"""Settings of a git configuration: reading them as git does, and the part of them that names no program."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence


PLAIN = r"""(?x)\s*+(?:
        \[ [A-Za-z0-9-]++ (?: [ ] "(?:[^"\\]|\\["\\])*+" )? \]
        | [A-Za-z][A-Za-z0-9-]*+ (?: \s*+=\s*+ (?: "[^"\\]*+" | [^"\\\#;]*+ ) )?
        | [\#;].*+
    )?\s*+"""
"""A line that everybody reads in the same way; nothing in it is read twice, however long it is. Patterns are compiled
when they are needed, which is rarely.
"""
LEXEME = r"""(?x)(?P<space> \s+ | [\#;][^\n]* )
    | \[ (?P<section>[A-Za-z0-9.-]+) (?: [ \t]+ "(?P<sub>(?:[^"\\\n]|\\[^\n])*)" )? \]
    | (?P<name>[A-Za-z][A-Za-z0-9-]*) [ \t]*
      (?: = (?P<value> (?: "(?:[^"\\\n]|\\[ntb"\\\n])*" | \\[ntb"\\\n] | [^"\\\n\#;] )* ) (?:[\#;][^\n]*)? )? (?=\n|\Z)
    """
PIECE = r'"((?:[^"\\\n]|\\(?:.|\n))*)"|((?:[^"\\]|\\(?:.|\n))+)'
ESCAPE = r"\\(.|\n)"
ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\", "\n": ""}
ADDRESS = r"""(?x)(?: (?:https?|ssh|git)://(?!-)
    | (?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?![-:]|//) )
    [A-Za-z0-9_.~%@:/+-]+"""
ADDRESSES = {("remote", "url"), ("remote", "pushurl"), ("submodule", "url")}
NAMES_OF_REMOTES = {("branch", "remote"), ("branch", "pushremote")}
HARMLESS = {
    "branch": {"remote", "merge", "rebase", "pushremote", "description"},
    "color": {"ui"},
    "core": {
        *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode"),
        *("symlinks", "autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "sparsecheckout", "sparsecheckoutcone"),
        *("untrackedcache", "commitgraph", "worktree"),
    },
    "extensions": {"worktreeconfig", "objectformat", "refstorage"},
    "fetch": {"prune"},
    "init": {"defaultbranch"},
    "lfs": {"repositoryformatversion"},
    "merge": {"ff", "conflictstyle"},
    "pull": {"rebase", "ff"},
    "push": {"default", "autosetupremote", "followtags"},
    "rebase": {"autostash", "autosquash"},
    "receive": {"denycurrentbranch"},
    "remote": {"url", "fetch", "pushurl", "tagopt", "mirror", "prune"},
    "submodule": {"url", "active", "branch", "ignore"},
    "user": {"name", "email"},
}  # fmt: skip


class GitSetting(NamedTuple):
    """One setting; sections and names are in lower case."""

    section: str
    subsection: str | None
    name: str
    value: str | None
    """None where only the name is written, which means yes."""


def plain_part(text: str, git: str, roots: Sequence[str]) -> str | None:
    """What can stay of a configuration, written anew; None when all of it can."""
    kept = [one for one in settings_in(text) if is_harmless(one, git, roots)]
    return None if is_all_kept(text, kept) else written(kept)


def lost_addresses(text: str, git: str, roots: Sequence[str]) -> list[GitSetting]:
    """The addresses of remotes that do not stay because they are folders of this machine, as of a clone of one."""
    remotes = [one for one in settings_in(text) if (one.section, one.name) == ("remote", "url") and one.subsection]
    folders = [one for one in remotes if os.path.isabs(one.value or "") and is_one_line(one)]
    return [one for one in folders if not is_harmless(one, git, roots)]


def is_all_kept(text: str, kept: list[GitSetting]) -> bool:
    """Whether a text says what is kept and nothing else, however one reads it."""
    is_plain = all(re.fullmatch(PLAIN, line) for line in text.split("\n"))
    return is_plain and is_readable(text) and kept == list(settings_in(text))


def is_readable(text: str) -> bool:
    """Whether git can read all of a configuration."""
    text = normal(text)
    return not text or any(end == len(text) for _, _, end in read_settings(text))


def settings_in(text: str) -> Iterator[GitSetting]:
    """The settings of a configuration, up to where nobody could read on."""
    for setting, _, _ in read_settings(normal(text)):
        if setting:
            yield setting


def normal(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def edited(text: str, removed: Collection[GitSetting], added: Iterable[GitSetting]) -> str:
    """A configuration without some settings and with others, and else as its owner wrote it."""
    text, kept, done = normal(text), "", 0
    for setting, start, end in read_settings(text):
        if setting in removed:
            kept += text[done:start].removesuffix("\t")
            done = end + 1 if text[end : end + 1] == "\n" and kept.endswith("\n") else end
    kept += text[done:]
    return kept + ("\n" if kept and not kept.endswith("\n") else "") + written(added)


def read_settings(text: str) -> Iterator[tuple[GitSetting | None, int, int]]:
    """Each setting, or None for what is between them, and where it begins and ends."""
    section, subsection, at, lexeme = "", None, 0, re.compile(LEXEME)
    while at < len(text) and (found := lexeme.match(text, at)) and "\0" not in found[0]:
        start, at = at, found.end()
        if found["section"]:
            section, _, old_style = found["section"].lower().partition(".")
            quoted = found["sub"]
            subsection = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else old_style or None
            yield None, start, at
        elif found["name"] is None:
            yield None, start, at
        elif section:
            value = found["value"]
            yield GitSetting(section, subsection, found["name"].lower(), unquoted(value)), start, at
        else:
            return


def unquoted(value: str | None) -> str | None:
    """A value without quotes and escapes, and without the space around it that is not quoted."""
    if value is None:
        return None
    pieces = [(found[1], found[2]) for found in re.finditer(PIECE, value.strip(" \t"))]
    return "".join(unescaped(plain if quoted is None else quoted) for quoted, plain in pieces)


def unescaped(text: str) -> str:
    return re.sub(ESCAPE, lambda found: ESCAPES.get(found[1], found[0]), text)


def written(settings: Iterable[GitSetting]) -> str:
    """Settings as everybody reads them."""
    return "".join(f"{header_of(one)}\n\t{one.name}{assigned(one.value)}\n" for one in settings)


def header_of(setting: GitSetting) -> str:
    if setting.subsection is None:
        return f"[{setting.section}]"
    return '[{} "{}"]'.format(setting.section, setting.subsection.replace("\\", "\\\\").replace('"', '\\"'))


def assigned(value: str | None) -> str:
    """A value behind a name, quoted."""
    if value is None:
        return ""
    for letter, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\b", "\\b")):
        value = value.replace(letter, escape)
    return f' = "{value}"'


def is_harmless(setting: GitSetting, git: str, roots: Collection[str]) -> bool:
    """Whether a setting starts nothing and leads nowhere else. An address with `::` names a program."""
    value = setting.value or ""
    if setting.name not in HARMLESS.get(setting.section, ()) or "::" in value or not is_one_line(setting):
        return False
    key = setting.section, setting.name
    if key in ADDRESSES:
        return is_address(value) or is_folder_in(value.removeprefix("file://"), roots)
    if key in NAMES_OF_REMOTES:  # git takes what is no name for an address
        return bool(re.fullmatch(r"\.|[A-Za-z0-9_][A-Za-z0-9_.+@-]*", value))
    return key != ("core", "worktree") or is_folder_in(os.path.join(git, value), roots)


def is_address(value: str) -> bool:
    """Whether an address is one of another machine, and names no program.

    In a folder of this one git outside would run the hooks of whoever can write there.
    """
    return "::" not in value and not value.startswith("-") and bool(re.fullmatch(ADDRESS, value))


def is_folder_in(path: str, roots: Collection[str]) -> bool:
    """Whether a folder is one of those whose hooks are looked over; git reads some paths from where it is started."""
    is_certain = os.path.isabs(path) and "%" not in path
    return is_certain and any(is_inside(os.path.realpath(path), root) for root in roots)


def is_one_line(setting: GitSetting) -> bool:
    return not any(
        ord(letter) < 32 or ord(letter) == 127 for letter in (setting.subsection or "") + (setting.value or "")
    )

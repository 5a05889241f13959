"""A repository's configuration: its keys, read as git reads them, and which of them cannot run or open anything."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from toolyard.permissions.programs.categories import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


HEADER = re.compile(r"\[[ \t\r]*([\w.-]+)(?:[ \t\r]+\"((?:[^\"\\]|\\.)*)\")?[ \t\r]*\][ \t\r]*", re.ASCII)
ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t\r]*(?:=[ \t\r]*(.*?)[ \t\r]*|[#;].*)?", re.DOTALL)
REMARK = ("#", ";")
ESCAPES = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}


class NotUnderstood(Exception):
    """A line that may mean something else to git than to us."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a configuration, with its section in small letters."""

    section: str
    part: str
    """What stands in quotes behind the section, such as the name of a remote."""
    key: str
    value: str
    """The value without quotes; of a key without one, what git takes it for."""

    @property
    def name(self) -> str:
        return ".".join(filter(None, (self.section, self.part, self.key)))


def read_settings(data: bytes) -> Iterator[Setting]:
    """The settings in a file; whatever is not plainly one, a heading or a remark is not understood."""
    section = part = ""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    if "\0" in text:
        raise NotUnderstood("it holds a character that ends texts")
    for line in text.split("\n"):
        rest = line.strip(" \t\r")
        while found := HEADER.match(rest):
            section, part = found[1].lower(), found[2] or ""
            if found[2] is None:
                section, _, part = section.partition(".")
            rest = rest[found.end() :]
        if not rest or rest.startswith(REMARK):
            continue
        if rest.endswith("\\") or (entry := ENTRY.fullmatch(rest)) is None:  # a value may go on in the next line
            raise NotUnderstood(f"the line '{rest[:40]}' is not understood")
        value = "true" if entry[2] is None else plain_value(entry[2])
        yield Setting(section=section, part=part, key=entry[1].lower(), value=value)


def plain_value(text: str) -> str:
    """A value without its quotes, its escapes and a remark behind it."""
    found: list[str] = []
    quoted, chars = False, iter(text)
    for char in chars:
        if char == '"':
            quoted = not quoted
        elif char == "\\":
            found.append(ESCAPES.get(next(chars, ""), "\0"))
        elif char in REMARK and not quoted:
            break
        else:
            found.append(char)
    if quoted or "\0" in found:
        raise NotUnderstood(f"the value '{text[:40]}' is not understood")
    return "".join(found).strip()


SWITCH = names("true false yes no on off 0 1")
ANYTHING_BUT = "!"
SECTIONS: Mapping[str, str] = {
    "core": """
        repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol
        safecrlf abbrev quotepath checkstat trustctime preloadindex untrackedcache compression loosecompression
        bigfilethreshold packedgitlimit packedgitwindowsize deltabasecachelimit fscache longpaths protecthfs
        protectntfs hidedotfiles sharedrepository whitespace commentchar commentstring multipackindex commitgraph
        sparsecheckout sparsecheckoutcone fsync fsyncobjectfiles fsyncmethod checkroundtripencoding warnambiguousrefs
        maxtreedepth usereplacerefs restrictinheritedhandles filesreflocktimeout packedrefstimeout createobject
        unsetenvvars
    """,
    "extensions": "objectformat worktreeconfig refstorage preciousobjects noop compatobjectformat relativeworktrees",
    "remote": """
        url fetch push pushurl pushdefault tagopt mirror prune prunetags skipdefaultupdate skipfetchall followremotehead
        fetchurl gh-resolved lfsurl glab-resolved
    """,
    "remotes": "!",
    "branch": "!",
    "submodule": "url path active branch ignore fetchrecursesubmodules shallow recurse fetchjobs alternatelocation",
    "diff": """
        algorithm renames renamelimit mnemonicprefix noprefix context interhunkcontext submodule ignoresubmodules
        statgraphwidth statnamewidth suppressblankempty colormoved colormovedws wserrorhighlight indentheuristic
        relative autorefreshindex dirstat wordregex xfuncname funcname binary srcprefix dstprefix
    """,
    "log": """
        abbrevcommit date decorate initialdecorationset excludedecoration diffmerges follow graphcolors showroot mailmap
    """,
    "blame": "blankboundary coloring date showemail showroot markunblamablelines markignoredlines",
    "merge": """
        ff conflictstyle renames renamelimit directoryrenames log stat verbosity renormalize autostash branchdesc
        suppressdest verifysignatures
    """,
    "status": "!submodulesummary",
    "index": "version threads recordendofindexentries recordoffsettable skiphash sparse",
    "protocol": "version",
    "gc": "!recentobjectshook",
    "help": "autocorrect",
    "commit": "gpgsign verbose status cleanup",
    "tag": "gpgsign sort forcesignannotated",
    "fetch": "!",
    "grep": "!",
    **dict.fromkeys(
        names("""
            user author committer init pull push color column advice pack rebase rerere stash feature maintenance
            checkout clean clone commitgraph fsck versionsort worktree transfer receive am apply http lfs gui github
            gitlab hub gitflow magit forge cola gk gitbutler svn-remote svn git-p4 safe showbranch notes cvsserver
        """),
        "!",
    ),
}
"""For each section the keys by which git neither runs a program nor opens a file of somebody else's; `!` is for all but
those that follow. What is not here is asked about."""
PATHS = names("blame.ignorerevsfile mailmap.file commit.template core.hookspath")
"""Keys that name a file or a folder, relative to the working tree."""
LARGE_FILES = re.compile(r"git-lfs (?:clean|smudge|filter-process)(?: --skip)?(?: -- %f| %f)?", re.ASCII)
ELSEWHERE = re.compile(r"(?:https?|ssh|git)://(?!-)[\w.@:-]+(?:/.*)?|[\w.-]+@[\w.-]+:(?!:).*", re.ASCII)
"""Addresses of other machines, by which git starts no program but its own."""


def why_obeyed(settings: list[Setting], is_own: Callable[[str], bool]) -> str | None:
    """The first setting by which git may run something or look elsewhere; `is_own` knows the workspace's paths."""
    is_remote = all(ELSEWHERE.fullmatch(each.value) for each in settings if is_address(each))
    for each in settings:
        if not is_harmless_setting(each, is_own, fetches=is_remote):
            return f"'{each.name}' in the repository's configuration may run a program, or lead elsewhere"
    return None


def is_address(setting: Setting) -> bool:
    """Whether a setting says where a remote repository is."""
    return setting.section == "remote" and setting.key in ("url", "fetchurl")


def is_harmless_setting(setting: Setting, is_own: Callable[[str], bool], *, fetches: bool) -> bool:
    """Whether git, while it looks, does nothing by a setting but look."""
    section, key = setting.section, setting.key
    match section, key:
        case "core", "worktree":
            return True  # who knows where the repository is has seen to it
        case "core", "fsmonitor":
            return setting.value.lower() in SWITCH
        case "pager", _:
            return setting.value.lower() in SWITCH
        case "filter", "required":
            return True
        case "filter", "clean" | "smudge" | "process":
            return LARGE_FILES.fullmatch(setting.value) is not None
        case ("remote", "promisor" | "partialclonefilter") | ("extensions", "partialclone"):
            return fetches  # what is missing is fetched from there, while git looks
        case "url", "insteadof" | "pushinsteadof":
            return ELSEWHERE.fullmatch(setting.part) is not None
        case "submodule", "update":
            return setting.value in ("checkout", "rebase", "merge", "none")
    if f"{section}.{key}" in PATHS and not setting.part:
        return is_own(setting.value)
    known = SECTIONS.get(section)
    if known is None:
        return False
    listed = key in names(known.removeprefix(ANYTHING_BUT))
    return not listed if known.startswith(ANYTHING_BUT) else listed

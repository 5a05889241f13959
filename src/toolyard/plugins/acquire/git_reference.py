"""What a git reference names, whether it is safe to hand to git, and whether policy allows to go there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from toolyard.core.problems import Problem
from toolyard.core.regexes import late_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.config.document import Place
    from toolyard.core.tool import Json


Protocol = Literal["file", "https", "http", "ssh", "git"]
REMOTE: dict[str, Protocol] = {"https": "https", "http": "http", "ssh": "ssh", "git": "git", "git+ssh": "ssh"}
SCHEME = late_pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://")
HELPER = late_pattern(r"[A-Za-z0-9+.-]*::")
"""`ext::`, `fd::` and their like name a program that git would run."""
SCP_LIKE = late_pattern(r"(?:([^@/:]+)@)?(\[[0-9A-Fa-f:.]+\]|[^/:]+):(.*)")
HOST = late_pattern(r"(?!-)[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]+\]")
USER = late_pattern(r"(?!-)[A-Za-z0-9._~!$&'()*+,;=:%-]*")
COMMIT = late_pattern(r"[0-9a-f]{7,64}")
WHOLE_COMMIT = late_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
BAD_IN_REF = late_pattern(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|$)|(?:^|/)\.|[./]$")


class GitReference(msgspec.Struct, frozen=True, kw_only=True):
    """A repository and what to take of it, checked: nothing of it can be an option or a program to git."""

    url: str
    """What git is given: an absolute path, or an address of a known scheme."""
    shown: str
    """The same less credentials, for people."""
    protocol: Protocol
    host: str | None = None
    port: int | None = None
    ref: str | None = None

    @property
    def name(self) -> str:
        """What people call the repository."""
        return os.path.basename(self.shown.rstrip("/")).removesuffix(".git")

    @property
    def is_commit(self) -> bool:
        """Whether it names a commit, by a part of its number or all of it."""
        return self.ref is not None and COMMIT.fullmatch(self.ref) is not None

    @property
    def is_whole_commit(self) -> bool:
        """Whether it names a commit by all of its number, so that it never means another: no branch is called so."""
        return self.ref is not None and WHOLE_COMMIT.fullmatch(self.ref) is not None

    def at_commit(self, commit: str | None) -> GitReference:
        """The same repository at a commit, if that is known by its whole number."""
        return replace(self, ref=commit) if commit and WHOLE_COMMIT.fullmatch(commit) else self

    @property
    def is_remote(self) -> bool:
        """Whether it may be on another machine; a server on this one counts as that too."""
        return self.protocol != "file"


def split_reference(text: str) -> tuple[str, str | None]:
    """`URL#REF`: the reference is what comes after the last `#`."""
    url, mark, ref = text.rpartition("#")
    return (url, ref or None) if mark else (text, None)


def git_entry(given: dict[str, Json], at: Place, *, keys: Sequence[str]) -> GitReference | Problem:
    """The repository of an entry that names one under `git`; every key must be known, and text."""
    if wrong := wrong_keys(given, at, keys):
        return wrong
    reference = read_git_reference(given["git"], given.get("ref") or None, at.document.folder)
    return reference.at(at.position()) if isinstance(reference, Problem) else reference


def wrong_keys(given: dict[str, Json], at: Place, keys: Sequence[str]) -> Problem | None:
    """The first key of an entry that nobody knows, or that is no text."""
    hint = f"it takes {', '.join(keys)}, each a string"
    for key, value in given.items():
        if key not in keys:
            return at.problem("plugin_spec", f"a plugin has no '{key}'", hint, key)
        if (value is None and key in ("path", "git")) or not isinstance(value, str | None) or "\0" in (value or ""):
            return at.problem("plugin_spec", f"'{key}' must be a string", hint, key)
    return None


def read_git_reference(url: str, ref: str | None, folder: str) -> GitReference | Problem:
    """Read a repository's address; local paths that are relative start at the folder."""
    if refusal := bad_ref(ref):
        return refusal
    if not url or re.search(r"[\x00-\x1f\x7f]", url) or url.startswith("-"):
        return bad_url(url, "it is not an address or a path")
    if HELPER.match(url):
        return bad_url(url, "it names a program that git would run")
    if match := SCHEME.match(url):
        return read_url(url, match[1].lower(), ref)
    if match := SCP_LIKE.fullmatch(url):
        return read_scp_like(url, match, ref)
    path = os.path.abspath(os.path.join(folder, os.path.expanduser(url)))
    return GitReference(url=path, shown=path, protocol="file", ref=ref)


def read_url(url: str, scheme: str, ref: str | None) -> GitReference | Problem:
    from urllib.parse import unquote, urlsplit

    if re.search(r"[\\\s]", url):
        return bad_url(url, "it has blanks or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return bad_url(url, str(error))
    if parts.fragment:
        return bad_url(url, "a reference goes into 'ref'")
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            return bad_url(url, "a file is on this machine")
        path = unquote(parts.path)
        if not path.startswith("/") or "\0" in path:
            return bad_url(url, "a file's path is absolute")
        return GitReference(url=os.path.abspath(path), shown=url, protocol="file", ref=ref)
    if scheme not in REMOTE:
        return bad_url(url, f"'{scheme}' is not one of https, ssh, git, http and file")
    user, _, address = parts.netloc.rpartition("@")
    name = re.sub(r":\d*$", "", address)
    if "@" in user or not HOST.fullmatch(name) or not USER.fullmatch(user) or parts.path.startswith("/-"):
        return bad_url(url, "its host, user or path is not plain")
    protocol = REMOTE[scheme]
    plain = f"{protocol}://{address}{parts.path}"
    return GitReference(
        url=f"{protocol}://{parts.netloc}{parts.path}" + (f"?{parts.query}" if parts.query else ""),
        shown=plain,
        protocol=protocol,
        host=name.lower().rstrip(".").strip("[]"),
        port=port,
        ref=ref,
    )


def read_scp_like(url: str, match: re.Match[str], ref: str | None) -> GitReference | Problem:
    """`user@host:path`, which git reaches by ssh."""
    user, host, path = match[1] or "", match[2], match[3]
    if not HOST.fullmatch(host) or not USER.fullmatch(user) or path.startswith("-") or not path:
        return bad_url(url, "its host, user or path is not plain")
    return GitReference(
        url=url, shown=f"{host}:{path}", protocol="ssh", host=host.lower().rstrip(".").strip("[]"), ref=ref
    )


def remote_refusal(reference: GitReference, *, allow_remote: bool, hosts: Sequence[str]) -> Problem | None:
    """Why policy does not let us go there; a local repository is always allowed."""
    if not reference.is_remote:
        return None
    if not allow_remote:
        return Problem(
            code="plugin_remote_not_allowed",
            message=f"remote repositories are not allowed by this configuration: {reference.shown}",
            hint='set "plugin_policy": {"allow_remote": true}, and narrow it by "allowed_git_hosts"',
        )
    allowed = {host.lower().rstrip(".") for host in hosts}
    if allowed and not allowed & {reference.host, f"{reference.host}:{reference.port}"}:
        return Problem(
            code="plugin_host_not_allowed",
            message=f"the host '{reference.host}' is not one of plugin_policy.allowed_git_hosts",
            hint=f'add it: "allowed_git_hosts": ["{reference.host}"]',
        )
    return None


def bad_ref(ref: str | None) -> Problem | None:
    if ref is None or not (ref.startswith("-") or ref == "@" or BAD_IN_REF.search(ref)):
        return None
    return Problem(
        code="plugin_git_ref",
        message=f"{ref!r} is not the name of a tag, a branch or a commit",
        hint="a name has no blanks, no '..', none of ~^:?*[\\ and does not begin with '-'",
    )


def bad_url(url: str, reason: str) -> Problem:
    return Problem(
        code="plugin_git_url",
        message=f"{without_credentials(url)!r} is not a repository that can be fetched: {reason}",
        hint="use a path, file:///…, https://HOST/PATH, ssh://HOST/PATH or user@HOST:PATH",
    )


def without_credentials(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)

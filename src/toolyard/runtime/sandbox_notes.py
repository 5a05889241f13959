"""A line on a failed call that says that the sandbox stopped it, what it keeps, and what to do.

A program only sees an error of the system, and a model that sees nothing else tries again in other ways. It is looked
for only in what failed, so that a call that went well costs nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from toolyard.files.inside import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolyard.core.reach import Reach
    from toolyard.core.tool import ToolResult
    from toolyard.process.sandbox.network.proxy import ConnectionAttempt
    from toolyard.process.sandbox.policy import SandboxPolicy


LOOKED_AT = 1 << 14
"""How much of the end of a text is looked at, in characters."""
MOST_HOSTS = 3
READ_ONLY = re.compile(r"Read-only file system|\bEROFS\b")
NOT_MADE = re.compile(r"ENOENT: no such file or directory, mkdir '(/[^'\n]+)'")
"""What Node says where a folder cannot be made because nothing can be written there."""
NO_ACCESS = re.compile(r"(?i)^.*(?:permission denied|EACCES).*$", re.MULTILINE)
PATH = re.compile(r"""(?:^|[\s'"`(])(/[^\s'"`:,)]+)""")
"""What programs say of a path that Landlock keeps them from."""
NO_NAME = re.compile(
    r"(?i)could not resolve|temporary failure in name resolution|name or service not known|nodename nor servname"
    r"|EAI_AGAIN|ENOTFOUND|failed to lookup address|no address associated"
)
NO_WAY = re.compile(r"(?i)network is unreachable|ENETUNREACH")
NO_SOCKET = re.compile(
    r"(?is)\bAF_UNIX\b.*permission denied|socket\.__init__.{0,200}permission denied|listen EACCES"
    r"|(?:unix|domain) socket.{0,80}(?:permission denied|not permitted)|cannot bind to socket"
)
HELD = re.compile(r"Device or resource busy|\bEBUSY\b|[Ii]nvalid cross-device link|\bEXDEV\b")
"""What programs say where a folder is a mount of its own."""
NO_SIGNAL = re.compile(r"kill: (?:\(\d+\) - |sending signal to \d+ failed: |\d+: )?.{0,20}Operation not permitted")


class CallSurroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What kept a call in."""

    reach: Reach
    policy: SandboxPolicy
    refused: Sequence[ConnectionAttempt] = ()
    """The hosts that were refused while it ran."""
    refused_sockets: Sequence[str] = ()
    """The sockets of others that were."""
    writable: Sequence[str] = ()
    """The folders that can be written."""
    own_environment: str = ""
    """The environment of Python that runs the application, if it has one of its own."""
    nested: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Repositories in folders below the workspace, and pointers to some; of those that can only be read, why."""
    has_mounts: bool = True
    """Whether what cannot be written is on a disk that cannot; without, nobody may write there."""
    asks_reach: str = ""
    """How a call of this tool asks for more reach, with `{reach}` for which; empty where it cannot."""

    def ask(self, reach: Reach, between: str = "; ") -> str:
        """What to do to reach further, after what stands between; nothing where a call cannot say so."""
        return f"{between}{self.asks_reach.replace('{reach}', reach)}" if self.asks_reach else ""

    def keeps_from(self, path: str) -> bool:
        return not any(is_inside(path, folder) for folder in self.writable)


def notes_on(result: ToolResult, around: CallSurroundings) -> list[str]:
    """What the sandbox stopped, as far as a failed call shows it."""
    return list(dict.fromkeys(found_in(result.text[-LOOKED_AT:], around)))


def found_in(text: str, around: CallSurroundings) -> Iterator[str]:
    if closed := closed_in(text, around):
        yield about_closed_repository(closed, around)
    elif around.nested and HELD.search(text):
        yield about_held_folders(around)
    elif READ_ONLY.search(text) or any(map(around.keeps_from, paths_not_written(text, around))):
        yield about_environment() if is_own(around, text) else about_writing(around)
    if around.refused:
        yield about_hosts(around.refused)
    elif not around.policy.network and (NO_NAME.search(text) or NO_WAY.search(text)):
        yield about_network(around)
    if around.refused_sockets:
        yield (
            f"[sandbox: {around.refused_sockets[-1]} belongs to a process outside, which cannot be reached; "
            f"set sandbox.unix_sockets{around.ask('outside', ', or ')}]"
        )
    elif not around.policy.unix_sockets and NO_SOCKET.search(text):
        yield f"[sandbox: this kind of socket is off; set sandbox.unix_sockets{around.ask('outside', ', or ')}]"
    if NO_SIGNAL.search(text):
        yield f"[sandbox: only its own processes can be signalled{around.ask('outside')}]"


def closed_in(text: str, around: CallSurroundings) -> str | None:
    """The repository that something could not be written to, by its path or the end of it."""
    closed = (git for git, why in around.nested.items() if why and READ_ONLY.search(text))
    return next((git for git in closed if "/".join(git.split("/")[-2:]) in text), None)


def about_closed_repository(git: str, around: CallSurroundings) -> str:
    return (
        f"[sandbox: {git} can only be read inside, since git outside obeys it, and {around.nested[git]}; make its "
        f"folder the workspace{around.ask('outside', ', or ')}]"
    )


def about_held_folders(around: CallSurroundings) -> str:
    shown = ", ".join([*around.nested][:MOST_HOSTS])
    return (
        "[sandbox: folders with a repository of their own can be worked in, but neither moved nor removed from inside, "
        f"and what is moved into or out of them has to be copied ({shown}){around.ask('outside')}]"
    )


def paths_not_written(text: str, around: CallSurroundings) -> Iterator[str]:
    """The paths that a program says it could not write, without the reason why."""
    yield from NOT_MADE.findall(text)
    if not around.has_mounts:
        yield from (path for line in NO_ACCESS.findall(text) for path in PATH.findall(line))


def is_own(around: CallSurroundings, text: str) -> bool:
    """Whether it is about the environment that runs us, where most who install something do not expect that."""
    return bool(around.own_environment) and f"{around.own_environment}/" in text


def about_environment() -> str:
    return (
        "[sandbox: this is the environment that Toolyard itself runs in, so it cannot be changed from inside; make "
        "another one with python3 -m venv, or install Toolyard apart with uv tool install or pipx]"
    )


def about_writing(around: CallSurroundings) -> str:
    if around.reach in ("closed", "look"):
        return f"[sandbox: with the reach look nothing can be changed but temporary files{around.ask('work')}]"
    return (
        "[sandbox: only the workspace and temporary files can be written, and there not what is obeyed outside; "
        f"name a path in sandbox.writable{around.ask('outside', ', or ')}]"
    )


def about_hosts(refused: Sequence[ConnectionAttempt]) -> str:
    shown = list(dict.fromkeys(f"{one.host}:{one.port} was refused ({one.reason})" for one in refused))
    more = f" and {len(shown) - MOST_HOSTS} more" if len(shown) > MOST_HOSTS else ""
    return f"[sandbox: {'; '.join(shown[:MOST_HOSTS])}{more}]"


def about_network(around: CallSurroundings) -> str:
    if around.reach in ("closed", "look"):
        return (
            f"[sandbox: with the reach look no host can be reached{around.ask('work')}{around.ask('outside', ', or ')}]"
        )
    return (
        "[sandbox: hosts are reached only through the proxy that http_proxy and https_proxy name, which this program "
        f"did not use{around.ask('outside')}]"
    )

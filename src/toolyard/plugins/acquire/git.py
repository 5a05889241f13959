"""Fetching a repository's files with git: no hooks, no prompts, no programs but git's own."""

from __future__ import annotations

import difflib
import shutil
from signal import SIGXFSZ
from typing import TYPE_CHECKING

import msgspec

from toolyard.core.problems import Problem
from toolyard.plugins.acquire.git_reference import WHOLE_COMMIT
from toolyard.process.child import ChildRequest
from toolyard.process.environment import ParentEnvironment
from toolyard.process.interpreter import find_program, safe_path, why_missing
from toolyard.process.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

    from toolyard.files.door import Door
    from toolyard.plugins.acquire.git_reference import GitReference
    from toolyard.process.child import ChildOutcome, Children


EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
MOST_LISTING = 64 << 20
SUBMODULE, BLOB = "160000", "blob"
SETTINGS = """[safe]
\tdirectory = *
[core]
\thooksPath = /dev/null
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tfsmonitor = false
\tautocrlf = false
\tsymlinks = true
\tprotectHFS = true
\tprotectNTFS = true
[credential]
\thelper =
[http]
\tfollowRedirects = false
[protocol]
\tallow = never
[submodule]
\trecurse = false
[fetch]
\trecurseSubmodules = false
\tfsckObjects = false
[transfer]
\tbundleURI = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tdetachedHead = false
"""
"""Our own settings instead of the user's and the system's: what is fetched must not depend on whose machine it is.

Every folder is safe, since the configuration names it and what is in it will be run anyway."""


class GitTree(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a commit."""

    folder: Path
    commit: str
    has_submodules: bool


async def fetch_tree(
    reference: GitReference, work: Path, children: Children, door: Door, *, timeout: float, most_bytes: int
) -> GitTree | Problem:
    """Fetch one commit and lay its files out in `work/tree`; nothing else of the repository stays."""
    git = Git.open(reference, work, children, door, timeout=timeout, most_bytes=most_bytes)
    if isinstance(git, Problem):
        return git
    made = await git.run("init", "--quiet", "--bare", "--template=", str(git.repository), inside=False)
    if made.exit_code:
        return git.failure("prepare a repository", made)
    commit = await git.fetch()
    if isinstance(commit, Problem):
        return commit
    listing = await git.listing(commit)
    if isinstance(listing, Problem):
        return listing
    return await git.lay_out(commit, has_submodules=listing)


async def resolve(reference: GitReference, work: Path, children: Children, door: Door, *, timeout: float) -> str | None:
    """The commit that a reference means now; its own text when that is a commit, None when it cannot be told."""
    if reference.is_commit:
        return reference.ref
    git = Git.open(reference, work, children, door, timeout=timeout, most_bytes=1 << 20)
    if isinstance(git, Problem):
        return None
    names = [f"refs/tags/{reference.ref}", f"refs/heads/{reference.ref}"] if reference.ref else ["HEAD"]
    answer = await git.run("ls-remote", "--quiet", "--", reference.url, *names, inside=False)
    if answer.exit_code:
        return None
    found = {name: commit for commit, _, name in (line.partition("\t") for line in answer.stdout.text.splitlines())}
    return next((found[name] for name in names if name in found), None)


class Git:
    """Runs git for one reference."""

    def __init__(
        self,
        program: str,
        path: str,
        reference: GitReference,
        work: Path,
        children: Children,
        timeout: float,
        most_bytes: int,
    ) -> None:
        self._program = program
        self._path = path
        self._reference = reference
        self._work = work
        self._children = children
        self._timeout = timeout
        self._most_bytes = most_bytes
        self.repository = work / "repository.git"
        self.tree = work / "tree"

    @classmethod
    def open(
        cls, reference: GitReference, work: Path, children: Children, door: Door, *, timeout: float, most_bytes: int
    ) -> Git | Problem:
        """Find git and write its settings."""
        program = find_program("git", door)
        if program is None:
            return Problem(code="plugin_git_missing", message=why_missing("git"), hint="install git")
        (work / "gitconfig").write_text(SETTINGS, encoding="utf-8")
        return cls(program, safe_path(door), reference, work, children, timeout, most_bytes)

    async def fetch(self) -> str | Problem:
        """The commit that the reference means; alone when the other side can give that, else with all branches."""
        ref = self._reference.ref
        alone = await self.run(
            *("fetch", "--quiet", "--no-tags", "--depth=1", "--no-recurse-submodules", "--no-auto-maintenance", "--"),
            *(self._reference.url, ref or "HEAD"),
        )
        if alone.exit_code == 0 and (commit := await self._commit("FETCH_HEAD")):
            return commit if await self._is_as_named("FETCH_HEAD") else await self._no_such_ref(ref or "HEAD")
        names = EVERYTHING if ref else ("HEAD",)
        whole = await self.run(
            *("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--"),
            *(self._reference.url, *names),
        )
        if whole.exit_code:
            return self.failure("fetch from", whole)
        commit = await self._commit(name := ref or "FETCH_HEAD")
        return commit if commit and await self._is_as_named(name) else await self._no_such_ref(ref or "HEAD")

    async def listing(self, commit: str) -> bool | Problem:
        """Look at the sizes of all files before any of them is written; tell whether there are submodules."""
        listed = await self.run("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
        if listed.exit_code or listed.stdout.truncated:
            return self.failure("list the files of", listed)
        total, submodules = 0, False
        for line in listed.stdout.text.split("\0")[:-1]:
            mode, kind, _, size = line.split("\t", 1)[0].split()
            submodules = submodules or mode == SUBMODULE
            total += int(size) if kind == BLOB else 0
        if total > self._most_bytes:
            message = f"{self._reference.shown} holds {total} bytes, more than {self._most_bytes}"
            hint = "keep data elsewhere, or raise plugin_policy.install_max_bytes"
            return Problem(code="plugin_too_large", message=message, hint=hint)
        return submodules

    async def lay_out(self, commit: str, *, has_submodules: bool) -> GitTree | Problem:
        """Write the files, and forget the rest."""
        self.tree.mkdir()
        written = await self.run("--work-tree", str(self.tree), "checkout", "--quiet", "--force", "--detach", commit)
        if written.exit_code:
            return self.failure("lay out the files of", written)
        shutil.rmtree(self.repository)
        (self._work / "gitconfig").unlink()
        return GitTree(folder=self.tree, commit=commit, has_submodules=has_submodules)

    async def run(self, *words: str, inside: bool = True) -> ChildOutcome:
        place = ("--git-dir", str(self.repository)) if inside else ()
        return await self._children.run(
            ChildRequest(
                argv=[self._program, *place, *words],
                cwd=self._work,
                env=git_environment(),
                extra_env=self._variables(),
                timeout=self._timeout,
                limits=Limits(file_bytes=self._most_bytes),
                output_limit=MOST_LISTING,
            )
        )

    def failure(self, what: str, outcome: ChildOutcome) -> Problem:
        """What git said, in its own words."""
        if outcome.timed_out:
            message = f"git could not {what} {self._reference.shown} within {self._timeout:g} seconds"
            return Problem(code="plugin_fetch_failed", message=message, hint=RAISE_TIME)
        said = outcome.stderr.text.replace(self._reference.url, self._reference.shown)
        lines = [line for line in said.splitlines() if line.strip()]
        if outcome.signal == SIGXFSZ or f"signal {int(SIGXFSZ)}" in said or "File too large" in said:
            message = f"{self._reference.shown} is larger than {self._most_bytes} bytes"
            return Problem(code="plugin_too_large", message=message, hint="raise plugin_policy.install_max_bytes")
        reason = " ".join(lines[:3])[:500] or f"git ended with {outcome.exit_code}"
        message = f"git could not {what} {self._reference.shown}: {reason}"
        return Problem(code="plugin_fetch_failed", message=message, hint=hint_for(said))

    async def _commit(self, name: str) -> str | None:
        return await self._object(f"{name}^{{commit}}")

    async def _is_as_named(self, name: str) -> bool:
        """Whether what was fetched is the very object that is named by its whole number: a branch can be called so."""
        return not self._reference.is_whole_commit or await self._object(name) == self._reference.ref

    async def _object(self, name: str) -> str | None:
        found = await self.run("rev-parse", "--verify", "--quiet", name)
        number = found.stdout.text.strip()
        return number if found.exit_code == 0 and WHOLE_COMMIT.fullmatch(number) else None

    async def _no_such_ref(self, ref: str) -> Problem:
        listed = await self.run("for-each-ref", "--format=%(refname:strip=2)")
        names = listed.stdout.text.split()
        near = difflib.get_close_matches(ref, names, n=3) or names[:5]
        hint = f"there are {', '.join(near)}" if near else "the repository has neither branches nor tags"
        message = f"{self._reference.shown} has no tag, branch or commit '{ref}'"
        return Problem(code="plugin_ref_missing", message=message, hint=hint)

    def _variables(self) -> dict[str, str]:
        return {
            "GIT_ALLOW_PROTOCOL": self._reference.protocol,
            "GIT_ASKPASS": "false",
            "GIT_CONFIG_GLOBAL": str(self._work / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
            "GIT_TEMPLATE_DIR": "",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "PATH": self._path,
            "SSH_ASKPASS": "false",
        }


RAISE_TIME = "raise plugin_policy.install_timeout_seconds"


def git_environment() -> dict[bytes, bytes]:
    """The variables of a child, with the way to the user's ssh keys, and none that changes what git does."""
    variables = ParentEnvironment(passed=("SSH_AUTH_SOCK",)).current()
    return {name: value for name, value in variables.items() if not name.startswith(b"GIT_")}


def hint_for(said: str) -> str:
    if "redirect" in said:
        return "the server sends us elsewhere; write the final address"
    if "Host key verification failed" in said or "Permission denied" in said:
        return "try it by hand: ssh -oBatchMode=yes HOST"
    if "could not read Username" in said or "Authentication failed" in said:
        return "the repository wants a login: use ssh, or a token in the address from ${env:…}"
    return "try it by hand: git ls-remote URL"

"""What the user granted or forbade for good: a file of the user's own, outside of every workspace."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolyard.core.lossless_json import decode_json
from toolyard.core.problems import Position, Problem
from toolyard.files.door import LARGEST_CONFIGURATION, Door
from toolyard.files.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolyard.core.reach import Reach
    from toolyard.core.tool import Json
    from toolyard.permissions.rules import Rule


VERSION = 1
WITHOUT_REACH: Reach = "work"
"""What a grant means that names no reach."""
ANSWERED = "answered with always"
"""How a grant was given that an answer left."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One rule that the user gave, and where it comes from."""

    id: str
    decision: Literal["allow", "deny"]
    rule: dict[str, Any]
    workspace: str | None = None
    """The folder it holds for; None for all."""
    source: str = ""
    """The command or call that it was given for."""
    by: str = ""
    """How it was given."""
    at: str = ""


class GrantFile(msgspec.Struct, frozen=True, kw_only=True):
    version: Literal[1]
    grants: list[Grant]


class SavedGrants(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What the file says, or what is left of it."""

    grants: tuple[Grant, ...] = ()
    problem: Problem | None = None

    def rules(self, workspace: str, file: Path) -> list[Rule]:
        from toolyard.permissions.rules import RuleOrigin, kept_rules, valid_rules

        found: list[Rule] = []
        for grant in self.grants:
            if grant.workspace in (None, workspace):
                rule = {"reach": WITHOUT_REACH, **grant.rule}
                is_answer = grant.by == ANSWERED
                read = kept_rules if is_answer else valid_rules
                origin = RuleOrigin(label=f"{file}, grant {grant.id}", is_answer=is_answer)
                found += read([rule], grant.decision, origin)
        return found


NO_FILE = ()
"""The stamp of a file that is not there."""


class GrantStore:
    """Reads and writes the file; every change is on disk before it is reported."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._last_good = file.with_suffix(".last-good.json")
        self.files = (file, self._last_good)
        """Whoever writes these makes rules."""
        self._stamp: object = None
        self._loaded = SavedGrants()

    def load(self) -> SavedGrants:
        """What holds now; read again only when the file was written since."""
        if self._stamp == NO_FILE and not os.access(self.file, os.F_OK):
            return self._loaded  # as at nearly every call of most people
        stamp = stamp_of(self.file)
        if stamp != self._stamp:
            self._loaded, self._stamp = self._read(), stamp
        return self._loaded

    def add(
        self, decision: Literal["allow", "deny"], rule: Json, *, workspace: str | None, source: str, by: str
    ) -> Grant:
        """Keep a rule; one that is there already is not kept twice."""
        import secrets
        from datetime import UTC, datetime

        grant = Grant(
            id=secrets.token_hex(4),
            decision=decision,
            rule=rule,
            workspace=workspace,
            source=source,
            by=by,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

        with self._changing() as grants:
            for known in grants:
                if (known.decision, known.rule, known.workspace) == (decision, rule, workspace):
                    return known
            grants.append(grant)
        return grant

    def revoke(self, what: str) -> list[Grant]:
        """Take back a grant by its id, or every one of a rule; those that were taken back."""
        with self._changing() as grants:
            gone = [grant for grant in grants if grant.id == what or text_of(grant) == what]
            grants[:] = [grant for grant in grants if grant not in gone]
        return gone

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Grant]]:
        """Read, change and write as one step, whoever else does so; what was damaged stays beside the new file."""
        import fcntl

        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.open(self.file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            loaded = self._read()
            if loaded.problem and self.file.exists():
                os.replace(self.file, self.file.with_suffix(".damaged.json"))
            grants = list(loaded.grants)
            yield grants
            if tuple(grants) != loaded.grants or loaded.problem:
                self._write(self.file, grants)
                self._write(self._last_good, grants)
        finally:
            os.close(lock)
        self._stamp = None

    def _read(self) -> SavedGrants:
        if not self.file.exists():
            return SavedGrants()
        try:
            grants = decode(self.file)
        except (OSError, ValueError) as error:
            return self._damaged(str(error).partition("\n")[0])
        return SavedGrants(grants=tuple(grants))

    def _damaged(self, why: str) -> SavedGrants:
        """The file says nothing any more: what it forbade stays forbidden, what it allowed does not stay allowed."""
        try:
            denies = [grant for grant in decode(self._last_good) if grant.decision == "deny"]
        except (OSError, ValueError):
            denies = []
        problem = Problem(
            code="grants_damaged",
            message=f"the saved permissions cannot be used: {why}; nothing that they allowed is allowed now",
            hint="mend the file, or give a grant anew: toolyard permissions allow|deny …",
            where=Position(file=self.file),
        )
        return SavedGrants(grants=tuple(denies), problem=problem)

    def _write(self, file: Path, grants: list[Grant]) -> None:
        import json

        from toolyard.files.atomic import replace_file

        text = json.dumps({"version": VERSION, "grants": [msgspec.to_builtins(grant) for grant in grants]}, indent=2)
        replace_file(file, f"{text}\n".encode(), durable=True)


def decode(file: Path) -> list[Grant]:
    """The grants of a file; raises ValueError or OSError when it is not what we write, or others may write it."""
    read = Door.here().read(file, largest=LARGEST_CONFIGURATION)
    if read.facts.st_uid != os.getuid() or read.facts.st_mode & 0o022:
        raise ValueError("others may write the file")
    content = decode_json(read.data, GrantFile)
    for grant in content.grants:
        if not text_of(grant):
            raise ValueError(f"grant {grant.id} is no rule")
    return content.grants


def text_of(grant: Grant) -> str:
    """Its rule as it would be written; empty when it is none."""
    from toolyard.permissions.rules import Rule, RuleOrigin, parse_rule

    rule = parse_rule(grant.rule, grant.decision, RuleOrigin(label=""))
    return rule.text if isinstance(rule, Rule) else ""


def stamp_of(file: Path) -> object:
    """What changes when the file is written, or when others get the right to write it."""
    try:
        state = os.stat(file)
    except OSError:
        return NO_FILE
    return (state.st_mtime_ns, state.st_size, state.st_ino, state.st_mode)


def default_grants_file() -> Path:
    return user_folder("state") / "permissions.json"

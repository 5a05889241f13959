"""Handing over what git inside wrote into its own configuration: the keys that can do no harm, after each call.

Everything else stays inside.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolyard.process.sandbox.git.git_files import PACKED, GitFiles
from toolyard.process.sandbox.git.refs import packed_in
from toolyard.process.sandbox.git.settings import GitSetting, edited, is_address, is_one_line, settings_in
from toolyard.process.sandbox.watch import stamp

if TYPE_CHECKING:
    from collections.abc import Collection


NAME = r"[A-Za-z0-9_][A-Za-z0-9_./+@-]*"
"""Of a remote or a branch."""
BRANCH = rf"refs/heads/{NAME}"
REFSPEC = r"\+?refs/(?:heads|tags)/[A-Za-z0-9_./*-]+:refs/(?:remotes|tags)/[A-Za-z0-9_./*-]+"
OF_A_NEW_REPOSITORY = {
    ("core", "repositoryformatversion"): ("0", "1"),
    ("core", "filemode"): ("true", "false"),
    ("core", "bare"): ("false",),
    ("core", "logallrefupdates"): ("true",),
    ("core", "ignorecase"): ("true", "false"),
    ("core", "precomposeunicode"): ("true", "false"),
    ("core", "symlinks"): ("true", "false"),
    ("extensions", "objectformat"): ("sha1", "sha256"),
}
MOST_HANDED_OVER = 200


CONFIG = "config"
PATIENCE = 0.2
"""Seconds that somebody else may hold the lock."""


class ConfigHandover:
    """The configurations of one repository: the owner's, and the one that git inside has for itself."""

    def __init__(self, git: str, place: str, *, is_new: bool) -> None:
        """`place` is the folder that git inside has; `is_new` tells whether the repository was made there."""
        self._git = git
        self._is_new = is_new
        self._outside, self._inside = GitFiles(git), GitFiles(place)
        self._owners = text_in(self._outside)
        # One that was made inside has something to hand over from the beginning.
        self._seen: object = None if is_new else self._stamps()
        self._told: set[GitSetting] = set()
        self._made: set[tuple[str, str | None]] = set()
        """The remotes and submodules that came from inside; all others are the owner's, and stay as they are."""

    def is_due(self) -> bool:
        """Whether one of them was changed since the last time."""
        return self._stamps() != self._seen

    def has_long_ids(self) -> bool:
        """Whether objects are named by SHA-256; few repositories say anything of that, and only those are read."""
        text = text_in(self._outside) or text_in(self._inside)
        return "objectformat" in text.lower() and any(
            (one.section, one.name, one.value) == ("extensions", "objectformat", "sha256") for one in settings_in(text)
        )

    def exchange(self) -> list[str]:
        """Give each side what it may have of the other; tells what stays inside, each once."""
        if not self.is_due():
            return []
        self._take_in()
        notes = self._hand_over()
        self._seen = self._stamps()
        return notes

    def _take_in(self) -> None:
        """Give git inside what the owner changed meanwhile, and keep what it has of its own."""
        now = text_in(self._outside)
        if now == self._owners:
            return
        before, inside = list(settings_in(self._owners)), list(settings_in(text_in(self._inside)))
        own = [setting for setting in inside if setting not in before]
        with self._inside.locked(CONFIG, 0) as file:
            file.replace(data_of(edited(now, (), own)))
        self._owners = now

    def _hand_over(self) -> list[str]:
        """Write what is harmless into the owner's configuration."""
        inside = list(settings_in(text_in(self._inside)))
        owners = list(settings_in(self._owners))
        added = [one for one in dict.fromkeys(inside) if one not in owners]
        taken = [one for one in added if self._may_travel(one, owners, inside)][:MOST_HANDED_OVER]
        stay = [one[:3] for one in added if one not in taken]
        removed = [one for one in owners if one not in inside and one[:3] not in stay and self._may_go(one, inside)]
        if taken or removed:
            with self._outside.locked(CONFIG, PATIENCE) as file:
                text = decoded(file.content())
                there = list(settings_in(text))
                new = edited(text, removed, [one for one in taken if one not in there])
                file.replace(data_of(new))
            self._owners = new
            known = {one[:2] for one in owners}
            self._made |= {one[:2] for one in taken if one[:2] not in known}
        kept = [one for one in added if one not in taken and one not in self._told]
        self._told |= set(kept)
        return [told(one) for one in kept if not self._is_of_no_use_outside(one)]

    def _stamps(self) -> tuple[object, object]:
        return stamp(f"{self._git}/{CONFIG}"), stamp(f"{self._inside.root}/{CONFIG}")

    def _may_travel(self, one: GitSetting, owners: Collection[GitSetting], inside: Collection[GitSetting]) -> bool:
        value = one.value or ""
        if not is_one_line(one) or one.value is None or not value.isprintable():
            return False
        match (one.section, one.subsection, one.name):
            case ("user", None, "name" | "email"):
                return len(value) < 200
            case ("remote", str(remote), "url"):
                is_known = any((each.section, each.subsection) == ("remote", remote) for each in owners)
                return bool(re.fullmatch(NAME, remote)) and not is_known and is_address(value)
            case ("remote", str(remote), "fetch"):
                has_address = any(self._is_address_of(each, remote, owners) for each in inside)
                is_free = not self._is_owners("remote", remote, owners)
                return bool(re.fullmatch(NAME, remote) and re.fullmatch(REFSPEC, value)) and has_address and is_free
            case ("submodule", str(name), "url"):
                is_free = not self._is_owners("submodule", name, owners)
                return bool(re.fullmatch(NAME, name)) and is_free and is_address(value)
            case ("submodule", str(name), "active"):
                return bool(re.fullmatch(NAME, name)) and value in ("true", "false")
            case ("branch", str(branch), _) if self._is_owners("branch", branch, owners):
                return False  # else the owner's next push would go elsewhere
            case ("branch", str(branch), "remote"):
                is_remote = any(self._is_address_of(each, value, owners) for each in (*owners, *inside))
                has_others = any(self._is_owners("remote", each.subsection, owners) for each in owners)
                if has_others and value != "." and not self._is_owners("remote", value, owners):
                    return False  # else the owner's next push would go to an address of the model's
                return bool(re.fullmatch(NAME, branch)) and (
                    value == "." or (bool(re.fullmatch(NAME, value)) and is_remote)
                )
            case ("branch", str(branch), "merge"):
                return bool(re.fullmatch(NAME, branch) and re.fullmatch(BRANCH, value))
            case ("branch", str(branch), "rebase"):
                return bool(re.fullmatch(NAME, branch)) and value in ("true", "false", "merges")
        is_first = not any((each.section, each.name) == (one.section, one.name) for each in owners)
        known = OF_A_NEW_REPOSITORY.get((one.section, one.name), ()) if one.subsection is None else ()
        return self._is_new and is_first and value in known

    def _is_owners(self, section: str, name: str | None, owners: Collection[GitSetting]) -> bool:
        """Whether a remote or a submodule was there before anything came from inside."""
        part = section, name
        return part not in self._made and any(each[:2] == part for each in owners)

    def _may_go(self, one: GitSetting, inside: Collection[GitSetting]) -> bool:
        """Whether a setting of the owner's goes because git inside removed or replaced it."""
        is_replaced = any(each[:3] == one[:3] for each in inside)
        if one.section == "branch" and one.subsection is not None and one.name in ("remote", "merge", "rebase"):
            return one[:2] in self._made or not self._has_branch(one.subsection)
        return one.section == "user" and one.name in ("name", "email") and is_replaced

    def _has_branch(self, name: str) -> bool:
        """Whether a branch is there inside."""
        ref = f"refs/heads/{name}"
        return self._inside.content(ref) is not None or ref in packed_in(self._inside.content(PACKED) or b"")

    def _is_address_of(self, one: GitSetting, remote: str, owners: Collection[GitSetting]) -> bool:
        """Whether a setting is the address of a remote that the owner has, or will have."""
        if (one.section, one.subsection, one.name) != ("remote", remote, "url"):
            return False
        return one in owners or is_address(one.value or "")

    def _is_of_no_use_outside(self, one: GitSetting) -> bool:
        """Whether git writes a setting by itself, so that nobody misses it."""
        is_place = (one.section, one.name) == ("core", "worktree")  # of a submodule, which is found without
        return (one.section, one.name) in OF_A_NEW_REPOSITORY or (self._is_new and is_place)


def told(one: GitSetting) -> str:
    name = ".".join(part for part in (one.section, one.subsection, one.name) if part is not None)
    return (
        f"[sandbox: git's setting {name!r} counts inside only, since git outside would obey it; to set it there, too, "
        'ask for "reach": "outside" with a reason]'
    )


def text_in(tree: GitFiles) -> str:
    """What a configuration says; nothing where there is none, or a link, which may lead anywhere."""
    return decoded(tree.content(CONFIG))


def decoded(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def data_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")

"""What the owner of the machine has git ignore everywhere: the file that `core.excludesFile` names, or the usual one.

Only the owner's own configuration is asked. The repository's may have been written inside the sandbox, and could name a
file that is not to be seen there: what is hidden then would tell its lines.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolyard.files.door import stamp_of
from toolyard.process.sandbox.git.settings import settings_in

if TYPE_CHECKING:
    from toolyard.files.door import Door, Stamp

LARGEST = 1 << 20
SYSTEM_SETTINGS = "/etc/gitconfig"
BOM_UTF8 = b"\xef\xbb\xbf"


class GitExcludes:
    """Read again when one of the files is another."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._stamps: dict[str, Stamp | None] | None = None
        self._rules = ""

    def rules(self) -> str:
        """The lines of the file, a character for each byte; nothing where there is none."""
        if self._stamps is None or self._stamps != stamps(self._stamps.keys() | set(settings_files())):
            named = self._named_file()
            self._stamps = stamps({*settings_files(), named})
            self._rules = self._read(named).removeprefix(BOM_UTF8).decode("latin-1")
        return self._rules

    def _named_file(self) -> str:
        """The last of the settings counts; one that tools can write does not."""
        found = os.path.join(config_home(), "git", "ignore")
        for file in settings_files():
            if self._door.is_writable(file):
                continue
            for setting in settings_in(os.fsdecode(self._read(file))):
                if (setting.section, setting.subsection, setting.name) == ("core", None, "excludesfile"):
                    found = os.path.expanduser(setting.value or "")
        return found

    def _read(self, path: str) -> bytes:
        try:
            return self._door.read(path, largest=LARGEST).data if os.path.isabs(path) else b""
        except (OSError, ValueError):
            return b""


def settings_files() -> list[str]:
    """Where git looks for settings that hold in every repository, the weakest first."""
    system = [] if os.environ.get("GIT_CONFIG_NOSYSTEM") else [os.environ.get("GIT_CONFIG_SYSTEM", SYSTEM_SETTINGS)]
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [*system, named]
    return [*system, os.path.join(config_home(), "git", "config"), os.path.expanduser("~/.gitconfig")]


def config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def stamps(paths: set[str]) -> dict[str, Stamp | None]:
    return {path: stamp_of(path) for path in paths}

"""The folder that the process works in, also when it was removed, or when a plugin has gone elsewhere."""

from __future__ import annotations

import contextlib
import os
import threading


class ProcessFolder:
    """Knows where the program is that uses us. There is one in a process, as there is one such folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = ""
        self._kept: list[str] = []
        """Where the program was when each piece of code began that may go elsewhere, and has not ended."""

    def current(self) -> str:
        """The folder that relative paths start at; the last known one when it is gone, the root when none is known."""
        return self._kept[0] if self._kept else self._now()

    def kept(self) -> KeptFolder:
        """While code runs that is not the program's own: wherever that goes, the program stays where it was."""
        return KeptFolder(self)

    def keep(self) -> str:
        """Some such code begins: where the program is, to which it has to come back."""
        with self._lock:
            before = self.current()
            self._kept.append(before)
        return before

    def come_back(self, before: str) -> None:
        with self._lock:
            self._kept.remove(before)
            if self._now() != before:
                with contextlib.suppress(OSError):  # which was removed
                    os.chdir(before)

    def _now(self) -> str:
        try:
            self._last = os.getcwd()
        except OSError:
            self._last = self._last or os.environ.get("PWD") or os.sep
        return self._last


class KeptFolder:
    """The time in which code runs that may go elsewhere; a class, since every call of such code makes one."""

    def __init__(self, folder: ProcessFolder) -> None:
        self._folder = folder
        self._before = ""

    def __enter__(self) -> None:
        self._before = self._folder.keep()

    def __exit__(self, *_: object) -> None:
        self._folder.come_back(self._before)


PROCESS_FOLDER = ProcessFolder()


working_folder = PROCESS_FOLDER.current


def absolute_path(path: str | os.PathLike[str]) -> str:
    """A path from the root, without detours, also where there is no working folder any more."""
    return os.path.normpath(os.path.join(working_folder(), path))

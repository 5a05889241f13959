"""The folder that the sandboxes of all reaches of a workspace have in common."""

from __future__ import annotations

import os

from toolyard.files.inside import is_inside
from toolyard.files.removal import remove_tree
from toolyard.files.user_folders import temporary_folder
from toolyard.process.keeper.inside_work import InsideWork
from toolyard.process.private_folders import base_folders, claim_folder, remove_abandoned

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - the names that they have inside, where they are nobody else's


class CommonFolder:
    """Temporary files and what we hand out, the same for every reach; made when it is first needed.

    Temporary files can be many, so they are where the system has room for them, and not in memory.
    """

    def __init__(self) -> None:
        self._claimed: list[tuple[str, int]] = []
        self._temporary: dict[str, str] = {}
        self._handouts = ""
        self.made_repositories: set[str] = set()
        """Those in folders below the workspace that came to be since."""
        self.inside = InsideWork()
        """What runs in them."""
        self.notes: list[str] = []
        """What is to be said with the next result, also when the sandbox that it is about is gone by then."""

    @property
    def temporary(self) -> dict[str, str]:
        """Where the folders for temporary files of the inside really are, by their names inside."""
        if not self._temporary:
            folder = self._claim([temporary_folder(), *base_folders()])
            for name in TEMPORARY:
                place = self._temporary[name] = os.path.join(folder, name.strip("/").replace("/", "-"))
                os.mkdir(place)
                os.chmod(place, 0o1777)  # noqa: S103 - as programs expect; nobody else can enter the folder around it
        return self._temporary

    @property
    def objects(self) -> str:
        """Where git inside keeps new objects, beside the temporary files, since there can be many."""
        return os.path.dirname(next(iter(self.temporary.values())))

    @property
    def handouts(self) -> str:
        """What only we write and everybody inside can read."""
        if not self._handouts:
            self._handouts = os.path.join(self._claim(base_folders()), "handouts")
            os.mkdir(self._handouts, 0o700)
        return self._handouts

    @property
    def empty_file(self) -> str:
        """A file that nothing can be written to, for what is to be empty inside."""
        path = os.path.join(self.handouts, "empty")
        os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o444))
        return path

    def base(self) -> str | None:
        """Where a sandbox must put what it shares with us alone; None where it may choose.

        Among temporary files another sandbox could move it, except below what that one has mounted itself.
        """
        usual = [os.path.realpath(place) for place in base_folders()[:1]]
        shared = any(is_inside(place, name) for place in usual for name in TEMPORARY)
        return os.path.dirname(self.handouts) if shared else None

    def places(self) -> list[str]:
        """What has to be removed if we are killed."""
        return [path for path, _ in self._claimed]

    def remove(self) -> None:
        claimed, self._claimed, self._temporary = self._claimed, [], {}
        self._handouts = ""
        for path, claim in claimed:
            os.close(claim)
            remove_tree(path)

    def _claim(self, bases: list[str]) -> str:
        """A new folder, locked as long as we live."""
        path, claim = claim_folder(bases)
        self._claimed.append((path, claim))
        remove_abandoned(os.path.dirname(path))
        return path

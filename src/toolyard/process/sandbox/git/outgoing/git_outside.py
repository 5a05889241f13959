"""Git as it is run outside, on data from inside as well: within limits that no data can stretch."""

from __future__ import annotations

import os
import resource
import subprocess
import time

MOST_SECONDS = 600
"""That all runs of one exchange may take together; a large pack takes minutes."""
LEAST_MEMORY, MOST_MEMORY = 1 << 30, 1 << 33
LEAST_FILE = 1 << 30


class GitOutside:
    """The runs on one repository."""

    def __init__(self, program: str, git: str) -> None:
        """`program` is the git that may run outside, empty where there is none."""
        self._program, self._git = program, git
        self._until = time.monotonic() + MOST_SECONDS

    def begin(self) -> None:
        """Another exchange begins."""
        self._until = time.monotonic() + MOST_SECONDS

    def run(
        self,
        words: list[str],
        *,
        stdin: int | None = None,
        given: bytes | None = None,
        seconds: int = MOST_SECONDS,
        longest_file: int = 0,
    ) -> bytes | None:
        """What git says, None where it fails or needs more than it may; `seconds` are those of the processor."""
        left = self._until - time.monotonic()
        if not self._program or left <= 0:
            return None
        env = {"PATH": os.path.dirname(self._program), "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {"GIT_DIR": self._git, "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
        try:
            with subprocess.Popen(
                [self._program, *words],
                cwd=self._git,
                env=env,
                stdin=subprocess.PIPE if given is not None else subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            ) as process:
                try:
                    limit(process.pid, seconds, max(longest_file, LEAST_FILE))
                    said = process.communicate(given, timeout=left)[0]
                except BaseException:
                    process.kill()
                    raise
        except (OSError, subprocess.SubprocessError):
            return None
        return said if process.returncode == 0 else None


def limit(pid: int, seconds: int, longest_file: int) -> None:
    """Bound what a process may use. Memory that maps files does not count, since git maps packs of any size."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_DATA: min(max(memory, LEAST_MEMORY), MOST_MEMORY),
        resource.RLIMIT_FSIZE: longest_file,
        resource.RLIMIT_CORE: 0,
    }
    for which, most in limits.items():
        hard = resource.prlimit(pid, which)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, which, (bound, bound))

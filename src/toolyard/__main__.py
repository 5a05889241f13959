"""`toolyard`, by its name and by `python -m`.

Before anything is imported, the folders are left out where tools may have put something: Python looks there first, with
`-m` or by PYTHONPATH, even for its own library. So this file, and the one above it, import nothing that Python has not
loaded already or has built in, not even `__future__`.
"""

import gc
import os
import sys

WORKSPACE = "--workspace"
OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""How many are made before Python looks for garbage. All that a start imports is less, and none of it is garbage."""


def run() -> None:
    """The console script."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        os.getcwd()
    except OSError:
        os.write(2, b"toolyard: the current folder was removed; go to another one\n")
        sys.exit(2)
    import_nothing_from(os.curdir, *workspaces(sys.argv))
    from toolyard.cli.main import run

    run()


def import_nothing_from(*folders: str) -> None:
    """Look for no module in folders that tools work in, whatever PYTHONPATH says."""
    real = [os.path.realpath(folder) for folder in folders]
    sys.path[:] = [place for place in sys.path if place and os.path.realpath(place) not in real]


def workspaces(words: list[str]) -> list[str]:
    """The folders that a command line names as the workspace."""
    after = [words[at + 1] for at, word in enumerate(words[:-1]) if word == WORKSPACE]
    return [*after, *(word.partition("=")[2] for word in words if word.startswith(f"{WORKSPACE}="))]


if __name__ == "__main__":
    run()

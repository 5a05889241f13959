"""Cleaning up after a sandbox whose application was killed: run outside, by the shell that started the sandbox."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys

CLEANUP_SCRIPT = """trap '' HUP INT TERM
cleanup_file=$1 python=$2 package=$3
shift 3
"$@"
status=$?
if [ -e "$cleanup_file" ]; then
  "$python" -I -S -c 'import sys; sys.path.append(sys.argv[1])
from toolyard.process.sandbox.cleanup import main; main()' "$package" "$cleanup_file"
fi
exit $status
"""
"""Starts a sandbox, waits for its end, and cleans up if the file that names what to remove is still there. The
application removes that file when it cleans up itself."""


def main() -> None:
    """Remove what a sandbox needed and must not leave, unless somebody still claims it."""
    cleanup_file = sys.argv[-1]
    folder = os.path.dirname(cleanup_file)
    claim = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # the application lives: only its keeper was lost
    with open(cleanup_file, encoding="utf-8") as file:
        left = json.load(file)
    from toolyard.files.removal import remove_tree
    from toolyard.process.cgroups import remove_group
    from toolyard.process.sandbox.mount_points import move_unwanted, remove_unused
    from toolyard.process.sandbox.nested_git import NestedRepositories

    for group in left["groups"]:
        remove_group(group)
    move_unwanted(left["unwanted"])
    NestedRepositories(left["workspace"], left["since"], left["guarded"]).sweep(at_end=True)
    remove_unused([(path, None if content is None else content.encode()) for path, content in left["mount_points"]])
    if span := left["span"]:
        with contextlib.suppress(OSError):
            os.rename(span, f"{span}.ended")
            os.utime(f"{span}.ended")
    remove_tree(folder)

"""Cleaning up after a sandbox whose application was killed: run outside, by the shell that started the sandbox."""

from __future__ import annotations

import fcntl
import json
import os
import sys

LASTING = "lasting"
"""A file in the shared folder that names what to remove; gone when the application says that it does so itself."""
CLEANS_UP = """trap '' HUP INT TERM
lasting=$1 python=$2 package=$3
shift 3
"$@"
status=$?
if [ -e "$lasting" ]; then
  "$python" -I -S -c 'import sys; sys.path.append(sys.argv[1])
from toolyard.process.sandbox.cleanup import main; main()' "$package" "$lasting"
fi
exit $status
"""


def main() -> None:
    """Remove what a sandbox needed and must not leave, unless somebody still claims it."""
    lasting = sys.argv[-1]
    folder = os.path.dirname(lasting)
    claim = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return  # the application lives: only its keeper was lost
    with open(lasting, encoding="utf-8") as file:
        left = json.load(file)
    from toolyard.files.removal import remove_tree
    from toolyard.process.keeper.groups import remove_group
    from toolyard.process.sandbox.mount_points import move_unwanted, remove_unclaimed

    for group in left["groups"]:
        remove_group(os.fsencode(group))
    move_unwanted(left["unwanted"])
    remove_unclaimed([(path, None if content is None else content.encode()) for path, content in left["placeholders"]])
    remove_tree(folder)

"""`python -m benchmarks.edit_alone FOLDER`: what an edit's own work takes, and reading and writing the same file.

Both are done in turn in one process that is started as the workers of the file tools are, so that nothing of a call is
in it: no verdict, no record, no way to another process.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

from toolyard.files.workspace.changing import edit
from toolyard.files.workspace.contents import version_of
from toolyard.files.workspace.places import Workspace

ROUNDS = 200


def main(folder: Path, line: str) -> None:
    """Prints the two medians in seconds; the folder has the file twice, as large.txt and as bare.txt."""
    workspace, seen = Workspace(str(folder)), version_of((folder / "large.txt").stat())
    ours, floor = [], []
    for number in range(ROUNDS):
        started = time.perf_counter()
        change = {"old_string": line.format(number), "new_string": line.format(number + 1)}
        seen = edit(workspace, "large.txt", [change], seen, dry=False)["version"]
        between = time.perf_counter()
        (folder / "spare").write_bytes((folder / "bare.txt").read_bytes())
        (folder / "spare").rename(folder / "bare.txt")
        ours.append(between - started)
        floor.append(time.perf_counter() - between)
    print(json.dumps([statistics.median(ours), statistics.median(floor)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

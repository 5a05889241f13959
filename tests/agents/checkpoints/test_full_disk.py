"""A disk that is full in the middle of keeping or restoring: nothing is lost, and all goes on when there is room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from users import ROOT

# In mounts of its own, on a file system of a few megabytes that is full where it hurts.
SCRIPT = """
import ctypes, errno, os, random, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1] + "/tests")
from file_trees import change_by_chance, facts_of
from toolyard.agents.checkpoints.store import CheckpointStore

disk, room, during = Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b"none", os.fsencode(disk), b"tmpfs", 0, b"size=64m") == 0, os.strerror(ctypes.get_errno())
work, chance = disk / "work", random.Random(room)
work.mkdir()
store = CheckpointStore(disk / "kept", work, home=Path("/nonexistent-home"))

def some_changes():
    change_by_chance(work, chance, 40)
    for number in range(6):
        (work / f"large-{number}").write_bytes(chance.randbytes(100_000))

some_changes()
first, facts = store.keep(), facts_of(work)
some_changes()
second, other_facts = store.keep(), facts_of(work)
if during == "keeping":
    some_changes()
now = facts_of(work)
with open(disk / "filler", "wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError as error:
        assert error.errno == errno.ENOSPC
    filler.truncate(max(0, filler.tell() - room))
try:
    store.restore(first)
    print("there was room")
except OSError as error:
    assert error.errno == errno.ENOSPC, error
    print("full")
    if store.unfinished() is None:
        assert facts_of(work) == now, "files changed before their state was kept"
(disk / "filler").unlink()
again = CheckpointStore(disk / "kept", work, home=Path("/nonexistent-home"))
if again.finish():
    assert facts_of(work) == facts
kept = [one.id for one in again.checkpoints()]
assert first.id in kept and second.id in kept
for state, wanted in ((second, other_facts), (first, facts), (second, other_facts)):
    again.restore(state)
    assert facts_of(work) == wanted
assert not list(work.rglob(".toolyard-*"))
"""


@pytest.mark.parametrize("during", ["keeping", "restoring"])
def test_nothing_is_lost_by_a_disk_that_is_full(tmp_path: Path, during: str) -> None:
    ends = []
    for room in (0, 4096, 12_288, 50_000, 200_000, 500_000):
        disk = tmp_path / str(room)
        disk.mkdir()
        words = [sys.executable, "-c", SCRIPT, str(ROOT), str(disk), str(room), during]
        ran = subprocess.run(["unshare", "-rm", *words], capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, f"with {room} bytes: {ran.stderr}"
        ends.append(ran.stdout.strip())
    assert "full" in ends

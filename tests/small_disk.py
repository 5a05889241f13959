"""A disk of a few megabytes, in mounts of a process of its own, so that it can be full where it hurts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from users import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PREPARE = """
import ctypes, errno, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1] + "/tests")
disk = Path(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mount(b"none", os.fsencode(disk), b"tmpfs", 0, sys.argv[3].encode()) == 0, os.strerror(ctypes.get_errno())

def fill():
    '''Until there is room for nothing.'''
    with open(disk / "filler", "ab", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC

def use_up_names():
    '''Until no file can be made, however small.'''
    (disk / "names").mkdir()
    try:
        for number in range(100_000):
            (disk / "names" / str(number)).touch()
    except OSError as error:
        assert error.errno == errno.ENOSPC

"""


def run_on_small_disk(folder: Path, script: str, *, options: str = "size=8m") -> str:
    """What a script prints that has a new `disk` for itself, which it can `fill`."""
    (disk := folder / "disk").mkdir()
    words = [sys.executable, "-c", PREPARE + script, str(ROOT), str(disk), options]
    unshare = ["unshare", "-m" if os.geteuid() == 0 else "-rm"]
    ran = subprocess.run([*unshare, *words], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout

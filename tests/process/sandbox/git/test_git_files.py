"""The small files of a git folder: what cannot be read is there all the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from toolyard.process.sandbox.git.git_files import GitFiles

NOBODY = 65534


@pytest.fixture
def folder():
    """Which others can reach, too."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    (made / "refs" / "heads").mkdir(parents=True)
    (made / "refs" / "heads" / "main").write_text("x")
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("closed", ["refs/heads", "refs/heads/main"])
def test_what_cannot_be_read_is_a_fault_and_not_taken_for_removed(folder, closed):
    (folder / closed).chmod(0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setuid(NOBODY)
            GitFiles(str(folder)).contents()
        except PermissionError:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    (folder / closed).chmod(0o755)

"""Holds on files that can only be read inside: nobody outside waits for whoever runs there."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio
TAKE = """
import errno, fcntl, sys
for command in (fcntl.F_SETLEASE, 1040):
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        try:
            with open(sys.argv[1]) as file:
                fcntl.fcntl(file, command, kind)
            print("taken")
        except OSError as error:
            print(errno.errorcode[error.errno])
"""


@pytest.mark.parametrize("backend", ["bubblewrap", "bubblewrap-pids", "landlock"])
@pytest.mark.parametrize("looking", [False, True], ids=["work", "look"])
async def test_nobody_inside_can_take_a_lease(box, backend, looking):
    (file := box.workspace / "file").write_text("")
    outcome = await box.python(box.children(backend, looking=looking), TAKE, str(file))
    assert outcome.stdout.text.split() == ["EPERM"] * 4, outcome.stderr.text

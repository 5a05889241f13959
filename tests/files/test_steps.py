"""Opening a folder so that no link on the way makes us work elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolyard.files.steps import open_itself


@pytest.mark.parametrize("can_tell", [True, False], ids=["by the kernel's word", "step by step"])
def test_a_folder_itself_is_opened_and_none_that_a_link_leads_to(tmp_path: Path, monkeypatch, can_tell):
    (inner := tmp_path / "folder/inner").mkdir(parents=True)
    (tmp_path / "way").symlink_to("folder")
    (tmp_path / "folder/end").symlink_to("inner")
    if not can_tell:
        monkeypatch.setattr(os, "readlink", lambda path: "elsewhere")
    before = len(os.listdir("/proc/self/fd"))
    os.close(fd := open_itself(str(inner)))
    assert fd > 2
    for name in ("way/inner", "folder/end", "nothing", "way"):
        with pytest.raises(OSError, match=r"Not a directory|No such file"):
            open_itself(str(tmp_path / name))
    assert len(os.listdir("/proc/self/fd")) == before

"""A guarded file that is replaced on a full disk: what was there cannot be put back, what was found does not stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from small_disk import run_on_small_disk

SCRIPT = """
from toolyard.process.keeper.file_guards import FileGuards
from toolyard.process.keeper.guard_lists import list_of
from toolyard.process.sandbox.replaced_files import ReplacedFiles, notes_on

(state := disk.parent / "state").mkdir()
files = [disk / ".npmrc", disk / ".yarnrc.yml"]
for file in files:
    file.write_text("audit=false\\n")
(listed := state / "guards").write_bytes(list_of([str(file) for file in files], []))
guards, told = FileGuards(str(listed), [], os.getpid()), ReplacedFiles(str(listed))
for file in files:
    (disk / f"new{{file.name}}").write_text("script-shell=/evil\\n")
fill()
for file in files:
    (disk / f"new{{file.name}}").rename(file)
ended = []
{look}
assert not any(file.exists() for file in files), [file.read_text() for file in files]
assert sorted(os.listdir(disk)) == [".npmrc.from-sandbox", ".yarnrc.yml.from-sandbox", "filler"]
print(*notes_on(told.new()), ended)
"""
LOOKS = {"while it runs": "guards.restore(lambda: ended.append('ended'))", "at the end": "guards.look_once_more()"}


@pytest.mark.parametrize("when", LOOKS)
def test_what_was_found_does_not_stay_where_what_was_there_cannot_be_put_back(tmp_path: Path, when: str) -> None:
    said = run_on_small_disk(tmp_path, SCRIPT.format(look=LOOKS[when]))
    assert said.count("could not be put back, since the disk is full") == 2
    assert ".npmrc.from-sandbox" in said
    assert ("'ended'" in said) == (when == "while it runs")

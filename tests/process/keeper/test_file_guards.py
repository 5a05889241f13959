"""Files that their owner replaces while something runs inside: guarded again, with nothing that the inside wrote."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
from pathlib import Path

import pytest

from support import need, until
from toolyard.process.keeper import file_guards
from toolyard.process.keeper.file_guards import FileGuards
from toolyard.process.keeper.guard_lists import list_of
from toolyard.process.sandbox.backends.kernel import Kernel
from toolyard.process.sandbox.backends.system_calls import numbers_on
from toolyard.process.sandbox.replaced_files import ReplacedFiles, notes_on

pytestmark = pytest.mark.anyio
WAYS = {
    "by rename": "cp .npmrc new && echo fund=false >> new && mv new .npmrc",
    "by moving the old one away": "mv .npmrc old && (cat old; echo fund=false) > .npmrc && rm old",
    "by removing it": "cp .npmrc saved && rm .npmrc && sleep 0.05 && (cat saved; echo fund=false) > .npmrc && rm saved",
}


@pytest.fixture
def workspace(box):
    """With a file that npm obeys."""
    (box.workspace / "package.json").write_text("{}")
    (box.workspace / ".npmrc").write_text("audit=false\n")
    return box.workspace


@pytest.mark.parametrize("way", WAYS)
async def test_what_its_owner_saves_while_a_job_waits_for_it_is_guarded_again(box, workspace, way):
    children = box.mounts()
    wait = 'touch began; until [ -e go ]; do :; done; echo x >> .npmrc; echo "$?"; cat .npmrc*'
    job = asyncio.ensure_future(box.bash(children, wait))
    await until((workspace / "began").exists)
    listed = Path(children.sandbox.folder().path, "guards")
    told = ReplacedFiles(str(listed))
    subprocess.run(["bash", "-ec", WAYS[way]], cwd=workspace, check=True)
    await until(lambda: [one.path for one in told.new()] == [str(workspace / ".npmrc")])
    (workspace / "go").touch()
    outcome = await job
    status, *now = outcome.stdout.text.split()
    assert status == "1"
    assert "fund=false" in now, "in its place, or beside it where it was not there for a moment"
    if way == "by rename":
        assert now == ["audit=false", "fund=false"]
    assert "Read-only" in outcome.stderr.text
    assert children.is_stale(), "since nobody can tell what was written meanwhile"


async def test_git_s_configuration_can_be_changed_by_its_owner_at_any_time(box):
    """It is not there inside, so nothing has to be guarded while it is replaced."""
    need("git")
    subprocess.run(["git", "init", "-q", box.workspace], check=True)
    children = box.mounts()
    job = asyncio.ensure_future(
        box.bash(children, "touch began; until [ -e go ]; do echo '[core] fsmonitor = x' > .git/config; done")
    )
    await until((box.workspace / "began").exists)
    for name in ("one", "two"):
        subprocess.run(["git", "config", "user.name", name], cwd=box.workspace, check=True)
        text = (box.workspace / ".git/config").read_text()
        assert f"name = {name}" in text
        assert "fsmonitor" not in text
    (box.workspace / "go").touch()
    assert (await job).exit_code == 0, "the job went on all the time"
    assert not children.is_stale()
    said = await box.bash(children, "git config user.name")
    assert said.stdout.text == "two\n"


def test_what_cannot_be_stopped_is_ended(tmp_path):
    """As where there is no control group."""
    (file := tmp_path / ".npmrc").write_text("audit=false\n")
    (listed := tmp_path / "guards").write_bytes(os.fsencode(file) + b"\0")
    guards, ended = FileGuards(str(listed), [], os.getpid()), []
    (tmp_path / "new").write_text("audit=true\n")
    (tmp_path / "new").rename(file)
    guards.restore(lambda: ended.append(file.read_text()))
    assert len(ended) == 1
    assert file.read_text() == "audit=true\n"
    assert [one.path for one in ReplacedFiles(str(listed)).new()] == [str(file)]


async def test_a_folder_that_its_owner_replaces_ends_what_runs(box):
    """Somebody inside may already have opened the new one."""
    need("git")
    repository = box.workspace
    subprocess.run(["git", "init", "-q", repository], check=True)
    children = box.mounts()
    job = asyncio.ensure_future(box.bash(children, "touch began; until [ -e go ]; do sleep 0.01; done"))
    await until((repository / "began").exists)
    os.rename(repository / ".git", repository / "git.old")
    with pytest.raises(Exception, match="keeper"):
        await job


PLANT = "echo script-shell=/evil > .npmrc"


def guards_of(tmp_path: Path, *, above: str = "") -> tuple[FileGuards, Path, ReplacedFiles]:
    """Guards of one file, which nobody inside can be stopped at."""
    file = tmp_path / above / ".npmrc"
    file.parent.mkdir(exist_ok=True)
    file.write_text("audit=false\n")
    ways = [str(tmp_path / above)] if above else []
    (tmp_path / "state").mkdir()
    (listed := tmp_path / "state" / "guards").write_bytes(list_of([str(file)], ways))
    return FileGuards(str(listed), [], os.getpid()), file, ReplacedFiles(str(listed))


def followed() -> list[str]:
    """All that the kernel tells this process of."""
    told = [info.read_text().splitlines() for info in Path("/proc/self/fdinfo").iterdir() if info.exists()]
    return [line for lines in told for line in lines if line.startswith("inotify")]


def test_guards_that_let_go_are_told_of_nothing_any_more(tmp_path):
    before = followed()
    guards, *_ = guards_of(tmp_path)
    assert len(followed()) > len(before)
    guards.let_go()
    assert followed() == before


def refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let the kernel refuse one call, as when a user has used up all there is."""
    call = Kernel.call
    number = numbers_on(os.uname().machine)[name]
    monkeypatch.setattr(Kernel, "call", lambda self, what, *words: -1 if what == number else call(self, what, *words))


@pytest.mark.parametrize("call", ["inotify_init1", "inotify_add_watch"])
def test_where_the_kernel_cannot_tell_the_guard_looks_by_itself_and_soon(tmp_path, monkeypatch, call):
    refuse(monkeypatch, call)
    guards, file, told = guards_of(tmp_path)
    assert guards.look_after is not None
    assert guards.look_after < 0.1
    (tmp_path / "new").write_text("script-shell=/evil\n")
    (tmp_path / "new").rename(file)
    ended: list[str] = []
    guards.restore(lambda: ended.append("all"))
    assert ended
    assert file.read_text() == "audit=false\n", "nobody can tell who put it there"
    assert Path(told.new()[0].moved_to).read_text() == "script-shell=/evil\n"


def test_when_more_happens_than_the_kernel_keeps_the_guard_looks_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(file_guards, "ASK_AGAIN_AFTER", 3600.0)
    guards, file, _ = guards_of(tmp_path)
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(most + 10):  # two different ones in turn, which the kernel does not make one
        os.utime(file) if number % 2 else file.open("a").close()
    guards.restore(lambda: None)
    assert guards.look_after is not None
    assert guards.look_after < 0.25
    assert file.read_text() == "audit=false\n"


def test_when_the_kernel_can_tell_again_it_is_asked_again(tmp_path, monkeypatch):
    with monkeypatch.context() as refused:
        refuse(refused, "inotify_init1")
        guards, _, _ = guards_of(tmp_path)
    monkeypatch.setattr(file_guards, "ASK_AGAIN_AFTER", -1.0)
    assert guards.events < 0
    guards.restore(lambda: None)
    assert guards.events >= 0
    assert guards.look_after == file_guards.LOOK_ANYWAY_AFTER


@pytest.mark.parametrize("how", ["by another", "by the same again"])
def test_a_folder_further_up_that_is_replaced_ends_what_runs_and_nothing_new_stays_in_it(tmp_path, how):
    guards, file, told = guards_of(tmp_path, above="tools")
    ended: list[str] = []
    file.parent.rename(tmp_path / "tools.old")
    file.parent.mkdir()
    if how == "by another":
        file.write_text("script-shell=/evil\n")
    else:
        (tmp_path / "tools.old" / ".npmrc").rename(file)
    assert select.select([guards.events], [], [], 0)[0], "the kernel told of it"
    guards.restore(lambda: ended.append("all"))
    assert ended
    assert file.read_text() == "audit=false\n"
    assert str(file.parent) in [one.path for one in told.new() if one.what == "ended"]


def test_of_a_replaced_folder_stays_what_is_as_it_was(tmp_path):
    hooks = tmp_path / "tools" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("kept", "changed", "run"):
        (hooks / name).write_text("as it was\n")
    (tmp_path / "state").mkdir()
    (listed := tmp_path / "state" / "guards").write_bytes(list_of([str(hooks)], [str(hooks.parent)]))
    guards = FileGuards(str(listed), [], os.getpid())
    subprocess.run("mv tools tools.old && cp -a tools.old tools", shell=True, cwd=tmp_path, check=True)
    (hooks / "changed").write_text("evil\n")
    (hooks / "added").write_text("evil\n")
    (hooks / "run").chmod(0o755)
    guards.restore(lambda: None)
    assert sorted(path.name for path in hooks.iterdir()) == [
        *("added.from-sandbox", "changed.from-sandbox", "kept", "run.from-sandbox")
    ]
    said = "\n".join(notes_on(ReplacedFiles(str(listed)).new()))
    assert f"mv {hooks}/changed.from-sandbox {hooks}/changed" in said


@pytest.mark.parametrize(
    "way", ["rm .npmrc; {plant}", "mv .npmrc x; {plant}", "{plant} 2>&- & rm .npmrc; wait; {plant}"]
)
def test_what_is_made_where_a_guarded_file_was_removed_is_put_aside_and_said(tmp_path, way):
    guards, file, told = guards_of(tmp_path)
    (tmp_path / "new").touch()
    subprocess.run(["bash", "-c", way.format(plant=PLANT)], cwd=tmp_path, check=True)
    guards.restore(lambda: None)
    assert file.read_text() == "audit=false\n"
    (note,) = notes_on(told.new())
    assert f"mv {file}.from-sandbox {file}" in note
    assert Path(f"{file}.from-sandbox").read_text() == "script-shell=/evil\n"


def test_what_its_owner_brings_back_as_the_note_says_stays(tmp_path):
    guards, file, told = guards_of(tmp_path)
    file.unlink()
    file.write_text("fund=false\n")
    guards.restore(lambda: None)
    (note,) = notes_on(told.new())
    subprocess.run(note.rpartition("if it is yours: ")[2].removesuffix("]"), shell=True, check=True)
    guards.restore(lambda: None)
    assert file.read_text() == "fund=false\n"


def test_what_is_replaced_just_before_all_ends_is_looked_at_once_more(tmp_path):
    guards, file, _ = guards_of(tmp_path)
    file.unlink()
    file.write_text("script-shell=/evil\n")
    guards.look_once_more()
    assert file.read_text() == "audit=false\n"


def test_what_is_removed_after_all_has_ended_is_not_made_again(tmp_path):
    guards, file, _ = guards_of(tmp_path)
    file.unlink()
    guards.look_once_more()
    assert not file.exists()


def test_two_guards_of_one_file_come_to_rest_with_what_its_owner_saved(tmp_path):
    """As two applications in one workspace have them."""
    (file := tmp_path / ".npmrc").write_text("audit=false\n")
    both = []
    for name in ("one", "two"):
        (tmp_path / "state" / name).mkdir(parents=True)
        (listed := tmp_path / "state" / name / "guards").write_bytes(list_of([str(file)], []))
        both.append(FileGuards(str(listed), [], os.getpid()))
    (tmp_path / "new").write_text("audit=true\n")
    (tmp_path / "new").rename(file)
    ended: list[str] = []
    for guards in both * 3:
        guards.restore(lambda: ended.append("once"))
    assert len(ended) <= 3, "each once, and the first once more for what the other did"
    assert file.read_text() == "audit=true\n"
    assert not list(tmp_path.glob("*.from-sandbox*"))

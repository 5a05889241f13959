"""States of a workspace come back byte for byte."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from file_trees import change_by_chance, facts_of
from toolyard.agents.checkpoints.coverage import Coverage
from toolyard.agents.checkpoints.packs import Damaged
from toolyard.agents.checkpoints.store import CheckpointError, CheckpointStore

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path, workspace: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "kept", workspace, home=tmp_path / "home")


@pytest.mark.parametrize("seed", range(12))
def test_any_change_of_any_tree_can_be_taken_back_and_done_again(
    store: CheckpointStore, workspace: Path, seed: int
) -> None:
    chance = random.Random(seed)
    change_by_chance(workspace, chance, 60)
    states = []
    for _ in range(4):
        states.append((store.keep(), facts_of(workspace)))
        change_by_chance(workspace, chance, 25)
    last = facts_of(workspace)
    redo = None
    for kept, facts in chance.sample(states, len(states)):
        outcome = store.restore(kept)
        redo = redo or outcome.safety
        assert facts_of(workspace) == facts
        assert outcome.restored.left_alone == []
    assert redo is not None
    store.restore(redo)
    assert facts_of(workspace) == last


def test_a_file_that_changes_twice_within_a_moment_is_seen_twice(store: CheckpointStore, workspace: Path) -> None:
    file = workspace / "a"
    roots = set()
    for number in range(50):
        file.write_text(f"{number % 10}")
        roots.add(store.keep().root)
    assert len(roots) == 10


def test_single_paths_come_back_alone(store: CheckpointStore, workspace: Path) -> None:
    (workspace / "src").mkdir()
    (workspace / "src" / "a").write_text("one")
    (workspace / "b").write_text("one")
    kept = store.keep()
    (workspace / "src" / "a").write_text("two")
    (workspace / "src" / "new").write_text("two")
    (workspace / "b").write_text("two")
    store.restore(kept, ["src"])
    assert sorted(os.listdir(workspace / "src")) == ["a"]
    assert (workspace / "src" / "a").read_text() == "one"
    assert (workspace / "b").read_text() == "two"


def test_a_single_file_comes_back_with_the_folders_that_it_was_in(store: CheckpointStore, workspace: Path) -> None:
    (workspace / "src" / "deep").mkdir(parents=True, mode=0o750)
    (workspace / "src" / "deep" / "a").write_text("one")
    (workspace / "src" / "b").write_text("one")
    kept = store.keep()
    shutil.rmtree(workspace / "src")
    assert [change.path for change in store.preview(kept, ["src/deep/a"])] == ["src", "src/deep", "src/deep/a"]
    assert store.restore(kept, ["src/deep/a"]).restored.left_alone == []
    assert [path for path in sorted(workspace.rglob("*")) if path.is_file()] == [workspace / "src" / "deep" / "a"]
    assert (workspace / "src" / "deep").stat().st_mode & 0o777 == 0o750
    shutil.rmtree(workspace / "src")
    assert store.preview(kept, ["src/none"]) == []


def test_a_repository_is_never_touched(store: CheckpointStore, workspace: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e@example.com"]
        return subprocess.run(["git", *who, *words], cwd=workspace, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    (workspace / "a").write_text("one\n")
    git("add", ".")
    git("commit", "-qm", "one")
    (workspace / "sub").mkdir()
    subprocess.run(["git", "init", "-q", "sub"], cwd=workspace, check=True)
    (workspace / "a").write_text("uncommitted\n")
    kept = store.keep()
    (workspace / "a").write_text("by an agent\n")
    (workspace / "new").write_text("by an agent\n")
    git("stash", "-u")
    git("checkout", "-qb", "other")
    before = facts_of(workspace / ".git"), facts_of(workspace / "sub")
    outcome = store.restore(kept)
    assert (workspace / "a").read_text() == "uncommitted\n"
    assert (facts_of(workspace / ".git"), facts_of(workspace / "sub")) == before
    assert {one.path for one in outcome.safety.left_out} == {".git", "sub/.git"}


def test_what_no_state_has_is_named_and_not_lost(tmp_path: Path, workspace: Path) -> None:
    store = CheckpointStore(tmp_path / "kept", workspace, home=tmp_path / "home", coverage=Coverage(largest_file=1000))
    (workspace / "grows").write_bytes(b"small")
    (workspace / "folder").mkdir()
    kept = store.keep()
    (workspace / "grows").write_bytes(b"x" * 5000)
    os.mkfifo(workspace / "pipe")
    (workspace / "made").mkdir()
    (workspace / "made" / "node_modules").mkdir()
    (workspace / "made" / "a").write_text("a")
    outcome = store.restore(kept)
    assert {one.path for one in outcome.safety.left_out} == {"grows", "pipe", "made/node_modules"}
    assert (workspace / "grows").stat().st_size == 5000
    assert (workspace / "made" / "node_modules").is_dir()
    assert not (workspace / "made" / "a").exists()
    assert {one.path for one in outcome.restored.left_alone} == {"grows", "made"}


def test_a_link_in_the_way_leads_nowhere(store: CheckpointStore, workspace: Path, tmp_path: Path) -> None:
    (workspace / "folder").mkdir()
    (workspace / "folder" / "a").write_text("kept")
    kept = store.keep()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a").write_text("precious")
    (workspace / "folder" / "a").unlink()
    (workspace / "folder").rmdir()
    (workspace / "folder").symlink_to(elsewhere)
    store.restore(kept)
    assert (elsewhere / "a").read_text() == "precious"
    assert (workspace / "folder" / "a").read_text() == "kept"
    assert not (workspace / "folder").is_symlink()


def test_folders_that_are_closed_are_opened_and_closed_again(store: CheckpointStore, workspace: Path) -> None:
    folder = workspace / "closed"
    folder.mkdir()
    (folder / "a").write_text("one")
    folder.chmod(0o555)
    kept = store.keep()
    folder.chmod(0o755)
    (folder / "a").write_text("two")
    folder.chmod(0o500)
    store.restore(kept)
    assert (folder / "a").read_text() == "one"
    assert folder.stat().st_mode & 0o777 == 0o555


def test_the_folder_of_states_is_not_part_of_a_state(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    store = CheckpointStore(workspace / "sessions" / "kept", workspace, home=tmp_path / "home")
    first = store.keep()
    second = store.keep()
    assert first.root == second.root


@pytest.mark.parametrize("which", ["home", "above", "root"])
def test_no_state_is_kept_of_a_home_or_of_everything(tmp_path: Path, which: str) -> None:
    home = tmp_path / "users" / "me"
    home.mkdir(parents=True)
    workspace = {"home": home, "above": tmp_path / "users", "root": tmp_path.root}[which]
    with pytest.raises(CheckpointError, match="no state of"):
        CheckpointStore(tmp_path / "kept", type(tmp_path)(workspace), home=home)


def test_collecting_drops_what_nobody_names_and_nothing_else(store: CheckpointStore, workspace: Path) -> None:
    chance = random.Random(1)
    states = []
    for _ in range(6):
        change_by_chance(workspace, chance, 40)
        states.append((store.keep(), facts_of(workspace)))
    (workspace / "huge").write_bytes(chance.randbytes(2_000_000))
    unneeded = store.keep()
    (workspace / "huge").unlink()
    wanted = states[1], states[4]
    freed = store.collect(lambda _: {kept.id for kept, _ in wanted})
    assert freed > 1_900_000
    assert {one.id for one in store.checkpoints()} == {kept.id for kept, _ in wanted}
    with pytest.raises(CheckpointError, match="not kept any more"):
        store.find(unneeded.id)
    for kept, facts in wanted:
        store.restore(kept)
        assert facts_of(workspace) == facts


def test_beyond_the_bound_the_oldest_states_go(tmp_path: Path, workspace: Path) -> None:
    store = CheckpointStore(tmp_path / "kept", workspace, home=tmp_path / "home", coverage=Coverage(total=5_000_000))
    chance = random.Random(2)
    kept = []
    for _ in range(10):
        (workspace / "a").write_bytes(chance.randbytes(1_000_000))
        kept.append(store.keep())
    store.collect(lambda all: {one.id for one in all})
    left = [one.id for one in store.checkpoints()]
    assert left == [one.id for one in kept][-len(left) :]
    assert 2 <= len(left) <= 5
    assert store.size() <= 5_000_000


def test_keeping_states_never_takes_more_room_than_is_allowed(tmp_path: Path, workspace: Path) -> None:
    store = CheckpointStore(tmp_path / "kept", workspace, home=tmp_path / "home", coverage=Coverage(total=3_000_000))
    chance = random.Random(5)
    for _ in range(12):
        (workspace / "a").write_bytes(chance.randbytes(1_000_000))
        kept, facts = store.keep(), facts_of(workspace)
        assert store.size() <= 3_000_000
    (workspace / "a").unlink()
    store.restore(kept)
    assert facts_of(workspace) == facts


def test_damage_is_noticed_before_a_file_is_replaced(store: CheckpointStore, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a").write_bytes(random.Random(3).randbytes(5000))
    kept = store.keep()
    (workspace / "a").write_text("now")
    pack = next((tmp_path / "kept").rglob("*.pack"))
    data = bytearray(pack.read_bytes())
    data[2500] ^= 0xFF
    pack.write_bytes(data)
    with pytest.raises(Damaged):
        store.restore(kept)
    assert (workspace / "a").read_text() == "now"


KILLED = """
import os, random, sys, threading, time
from pathlib import Path
from toolyard.agents.checkpoints.store import CheckpointStore
kept, work, seed, target = sys.argv[1:]
store = CheckpointStore(Path(kept), Path(work), home=Path("/nonexistent-home"))
pause = random.Random(int(seed)).random() * 0.1
threading.Thread(target=lambda: (time.sleep(pause), os._exit(9)), daemon=True).start()
while True:
    if target == "keep":
        store.keep()
        (Path(work) / "grown").write_bytes(os.urandom(300_000))
    elif target == "collect":
        (Path(work) / "grown").write_bytes(os.urandom(300_000))
        store.keep()
        store.collect(lambda kept: {one.id for one in kept[:2]})
    else:
        store.restore(store.find(target))
        store.restore(store.checkpoints()[1])
"""


@pytest.mark.parametrize("during", ["keep", "collect", "restore"])
def test_nothing_is_lost_by_a_stop_at_any_moment(store: CheckpointStore, workspace: Path, tmp_path: Path, during: str):
    chance = random.Random(4)
    change_by_chance(workspace, chance, 80)
    first, facts = store.keep(), facts_of(workspace)
    change_by_chance(workspace, chance, 80)
    second, other_facts = store.keep(), facts_of(workspace)
    for seed in range(8):
        target = first.id if during == "restore" else during
        command = [sys.executable, "-c", KILLED, str(tmp_path / "kept"), str(workspace), str(seed), target]
        assert subprocess.run(command, timeout=60, check=False).returncode == 9
    if finished := store.finish():
        assert facts_of(workspace) in (facts, other_facts)
        assert finished.restored.left_alone == []
    for kept, wanted in ((first, facts), (second, other_facts)):
        store.restore(kept)
        assert facts_of(workspace) == wanted
    assert not list(workspace.rglob(".toolyard-*"))

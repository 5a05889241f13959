"""What is obeyed outside: neither made nor changed from inside, nor in the moment in which its owner replaces it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import need, need_backend
from toolyard.files.accepted import accept
from toolyard.files.write_times import OpenSpan
from toolyard.process.sandbox.cleanup import CleanupRecord
from yard import inhabit

pytestmark = pytest.mark.anyio
PLACES = {
    "configuration": "{project}/toolyard.json",
    "rules where there are none": "{work}/toolyard.json",
    "grants": "{state}/toolyard/permissions.json",
    "what was accepted": "{state}/toolyard/accepted.json",
    "plugin code": "{project}/plugin.py",
    "what a plugin imports": "{project}/helper.py",
    "compiled code of a plugin": "{project}/__pycache__/plugin.cpython-311.pyc",
    "a folder on PATH": "{work}/bin/git",
    "a folder on PATH that is not there yet": "{work}/tools/bin/git",
    "git's hooks": "{work}/.git/hooks/pre-commit",
    "git's configuration": "{work}/.git/config",
    "what git moves into the place of its configuration": "{work}/.git/config.lock",
    "where git's configuration is": "{work}/.git/commondir",
    "npm": "{work}/.npmrc",
    "yarn": "{work}/.yarnrc.yml",
    "cargo": "{work}/.cargo/config.toml",
}
WRITE = """set +e
for file in {files}; do
  echo evil >> $file; mkdir -p $(dirname $file); echo evil > $file; rm -rf $file; echo evil > mine; mv -T mine $file
  mv -T $(dirname $file) moved; rm -f mine
done 2>/dev/null
echo tried"""


@pytest.fixture
def places(tmp_path, monkeypatch, yard):
    need_backend("bubblewrap", "bubblewrap-pids")
    need("git")
    folder = inhabit(tmp_path / "there", monkeypatch)
    (folder / "work" / "bin").mkdir()
    subprocess.run(["git", "init", "-q", folder / "work"], check=True)
    monkeypatch.setenv("PATH", f"{folder}/work/bin:{folder}/work/tools/bin:{os.environ['PATH']}")
    for name, text in (("plugin.py", "import helper\n"), ("helper.py", "")):
        yard.file(name, text)
    named = {"project": yard.folder, "work": folder / "work", "state": os.environ["XDG_STATE_HOME"]}
    return {what: Path(place.format(**named)) for what, place in PLACES.items()}


def planted(places) -> list[str]:
    return [what for what, path in places.items() if path.is_file() and b"evil" in path.read_bytes()]


async def test_E05_nothing_that_is_obeyed_outside_can_be_made_or_changed_from_inside(yard, places):
    yard.config("shell:command", "path:plugin.py")
    script = WRITE.format(files=" ".join(f"'{path}'" for path in places.values()))
    async with yard.open(yard.folder / "toolyard.json") as app:
        result = await app.call_tool("shell", {"command": script})
        assert "tried" in result.text
        assert planted(places) == []
    assert planted(places) == []
    assert [path.exists() for path in (Path(".git/HEAD"), Path("bin"), places["plugin code"])] == [True] * 3


async def test_E05_nor_in_the_moment_in_which_its_owner_replaces_it(yard, places):
    """Git's is not there inside, so its owner may change it; what an editor saves has to be accepted."""
    config = yard.config("shell:session")
    targets = [config, places["git's configuration"], places["what git moves into the place of its configuration"]]
    loop = "while :; do for file in {files}; do echo >> $file && touch written-$(basename $file); done; done"
    async with yard.open(config) as app:
        job = loop.format(files=" ".join(map(str, targets)))
        await app.call_tool("bash", {"command": f"({job}) >/dev/null 2>&1 &"})
        for number in range(20):
            subprocess.run(["git", "config", "some.number", str(number)], check=True)
            subprocess.run(["git", "status"], check=True, capture_output=True)
        beside = config.with_name("beside")
        beside.write_text(config.read_text().replace("shell:session", "shell:command"))
        beside.rename(config)
        await app.call_tool("bash", {"command": "kill %1; wait"})
        assert targets[1].read_text().endswith("[some]\n\tnumber = 19\n")
        assert [one["type"] for one in app.get_config_errors()] == ["config_not_accepted"]
        accept(str(config))
        async with asyncio.timeout(60):
            assert "accepted" in (await app.call_tool("shell", {"command": "echo accepted"})).text


@pytest.mark.usefixtures("places")
async def test_E05_the_application_s_own_environment_is_guarded_or_else_no_tool_runs(yard, monkeypatch):
    (environment := Path.cwd() / "environment" / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(environment.parent))
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        await app.call_tool("shell", {"command": "echo evil > environment/evil.pth; mv environment moved"})
    assert [path.name for path in environment.parent.iterdir()] == ["bin"]
    yard.config("shell:command", sandbox={"writable": [str(environment.parent)]})
    async with yard.open(yard.folder / "toolyard.json") as app:
        assert [one["type"] for one in app.get_config_errors()] == ["sandbox_root_in_reach"]
        assert (await app.call_tool("shell", {"command": "touch made"})).failure == "denied"
    assert not Path("made").exists()


LAUNDER = {
    "nothing": "true",
    "its own clean-up": "ln sub/toolyard.json .yarnrc; git init -q m; ln sub/toolyard.json m/.git/hooks/post-commit",
    "its owner": "ln sub/toolyard.json junk",
}


@pytest.mark.parametrize("trick", LAUNDER.values(), ids=LAUNDER)
@pytest.mark.usefixtures("places")
async def test_E05_a_configuration_that_was_planted_is_not_obeyed_whoever_changes_its_names_and_rights(yard, trick):
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        planted = """mkdir sub; echo '{"sandbox": {"mode": "off"}}' > sub/toolyard.json"""
        assert (await app.call_tool("shell", {"command": f"{planted}; {trick}"})).ok
    Path("junk").unlink(missing_ok=True)
    for changed in (False, True):
        if changed:
            subprocess.run(["chmod", "-R", "go-w", "."], check=True)
        async with yard.open(Path("sub/toolyard.json").absolute()) as app:
            assert [one["type"] for one in app.get_config_errors()] == ["config_not_accepted"]


@pytest.mark.usefixtures("places")
async def test_E05_nor_is_one_in_the_cache_of_packages_or_in_a_folder_that_may_be_written(yard, tmp_path):
    (beside := tmp_path / "beside").mkdir()
    yard.config("shell:command", sandbox={"writable": [str(beside)]})
    async with yard.open(yard.folder / "toolyard.json") as app:
        planted = """mkdir $to/sub; echo '{"sandbox": {"mode": "off"}}' > $to/sub/toolyard.json; echo $to"""
        for to in ('"$(dirname "$PIP_CACHE_DIR")"', f"'{beside}'"):
            result = await app.call_tool("shell", {"command": f"to={to}; {planted}"})
            assert result.ok
    caches = Path(os.environ["XDG_CACHE_HOME"]) if "XDG_CACHE_HOME" in os.environ else Path.home() / ".cache"
    (cached,) = (caches / "toolyard/sandboxes").glob("*/sub/toolyard.json")
    for file in (cached, beside / "sub/toolyard.json"):
        async with yard.open(file) as app:
            assert [one["type"] for one in app.get_config_errors()] == ["config_not_accepted"]


async def test_E05_whatever_a_killed_application_left_is_ended_before_anything_is_obeyed(yard):
    span = OpenSpan([str(yard.folder)], {})
    record = CleanupRecord(str(yard.folder / "gone"))
    record.write({"span": str(span.live), "own_pids": True})
    os.close(span._lock)  # as the kernel does
    config = yard.config(sandbox={"mode": "off"})
    async with yard.open(config) as app:
        assert [one["type"] for one in app.get_config_errors()] == ["config_not_accepted"]
    assert not Path(record.file).exists()
    assert Path(f"{span.live}.ended").exists()

"""Where the program is, whatever others do with the process's folder."""

from __future__ import annotations

import os
import shutil

import pytest

from support import watched_channels
from toolyard import AgentApplication, tool
from toolyard.files.working_folder import ProcessFolder, absolute_path, working_folder
from yard import Yard

pytestmark = pytest.mark.anyio


@tool
def greet(name: str = "Ada") -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders, in the first of which the process is; afterwards it is where it was."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    return here, there


def test_code_that_goes_elsewhere_takes_nobody_along(folders):
    here, there = folders
    folder = ProcessFolder()
    with folder.kept():
        os.chdir(there)
        with folder.kept():
            os.chdir("/")
            assert folder.current() == str(here)
        assert folder.current() == str(here)
    assert os.getcwd() == str(here)
    os.chdir(there)  # the program itself may go where it likes
    assert folder.current() == str(there)


def test_a_folder_that_was_removed_is_still_known(folders):
    here, there = folders
    assert working_folder() == str(here)
    shutil.rmtree(here)
    assert working_folder() == str(here)
    assert absolute_path("a/../b") == str(here / "b")
    os.chdir(there)
    assert working_folder() == str(there)


MOVES = """
import os
from toolyard import tool

os.chdir("/")


@tool
def move(to: str) -> str:
    "Go elsewhere."
    os.chdir(to)
    return os.getcwd()


@tool
async def move_async(to: str) -> str:
    "Go elsewhere."
    os.chdir(to)
    return os.getcwd()
"""


async def test_a_plugin_that_changes_the_working_directory_moves_no_later_call(folders):
    here, there = folders
    yard = Yard(there)
    yard.file("moves.py", MOVES)
    yard.tool("where", run="pwd")
    async with yard.app("path:moves.py", "bash:where.bash") as app:
        for name in ("move", "move_async"):
            assert (await app.call_tool(name, {"to": str(there)})).text == str(there)
            assert (await app.call_tool("where", {})).text == f"{here}\n"
            assert os.getcwd() == str(here)


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_a_working_directory_that_was_removed_raises_nothing(folders, sandbox):
    here, there = folders
    before = watched_channels()
    config = {"plugins": ["shell:command", "shell:session"], "sandbox": {"mode": sandbox}}
    async with AgentApplication(config, there / "sessions", tools=[greet]) as app:
        shutil.rmtree(here)
        assert (await app.call_tool("greet", {})).text == "Hello, Ada!"
        for call in (("shell", {"command": "echo x"}), ("bash", {"command": "echo x"})):
            assert isinstance((await app.call_tool(*call)).text, str)
        app.get_config_errors()
        await app.reload()
    assert watched_channels() == before, "the kernel is asked nothing any more"
    shutil.rmtree(here, ignore_errors=True)
    async with AgentApplication(config, there / "sessions", tools=[greet]) as app:
        assert (await app.call_tool("greet", {})).text == "Hello, Ada!"

"""Python plugins that lie where tools can write: what runs is what was read, and nothing that a tool put beside it."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import sys
import sysconfig
from pathlib import Path

import pytest

from repositories import descriptor, greeting, write
from toolyard.files.door import Door
from toolyard.kinds.python_function import locate as locating
from toolyard.plugins.author_code.import_space import ImportSpace
from yard import Yard

pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """A project in which tools work, with things beside it that are not theirs."""
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return Yard(folder)


async def text(app, name: str = "greet") -> str:
    return (await app.call_tool(name, {})).text


def caches(folder: Path) -> list[Path]:
    return [*folder.rglob("__pycache__"), *folder.rglob("*.pyc")]


def plant_bytecode(source: Path, text: str) -> None:
    """Bytecode of another source, which Python would take for that of this one."""
    planted = source.with_name("planted.py")
    planted.write_text(text)
    cache = Path(importlib.util.cache_from_source(str(source)))
    py_compile.compile(str(planted), str(cache), doraise=True)
    stat, data = source.stat(), bytearray(cache.read_bytes())
    data[8:16] = int(stat.st_mtime).to_bytes(4, "little") + (stat.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    cache.write_bytes(data)
    planted.unlink()


HELPED = "import helper\n" + greeting("greet", "x").replace("'x'", "helper.WORD")


@pytest.mark.parametrize("entry", ["path:hello.py", "hello.greet"])
async def test_code_in_the_workspace_leaves_no_bytecode_and_runs_none(yard, entry):
    hello, helper = yard.file("hello.py", HELPED), yard.file("helper.py", "WORD = 'own'\n")
    async with yard.app(entry) as app:
        assert app.get_config_errors() == []
        assert await text(app) == "own"
    assert caches(yard.folder) == []
    for file in (hello, helper):
        plant_bytecode(file, "raise SystemExit('planted')\n" if file is hello else "WORD = 'planted'\n")
    async with yard.app(entry) as app:
        assert await text(app) == "own"


@pytest.mark.parametrize("entry", ["path:hello.py", "hello.greet"])
@pytest.mark.parametrize("name", ["hello.py", "helper.py"])
async def test_a_link_in_the_place_of_code_is_not_followed(yard, entry, name):
    yard.file("hello.py", HELPED)
    yard.file("helper.py", "WORD = 'own'\n")
    other = yard.folder.parent / "other.py"
    (yard.folder / name).rename(other)
    (yard.folder / name).symlink_to(other)
    async with yard.app(entry) as app:
        (problem,) = app.get_config_errors()
        assert app.tool_specs() == []
    assert "is a link in a folder that tools can write" in problem["detail"]


async def test_a_pipe_in_the_place_of_code_holds_up_nothing(yard):
    os.mkfifo(yard.folder / "hello.py")
    yard.file("other.py", "import piped\n")
    os.mkfifo(yard.folder / "piped.py")
    async with yard.app("path:hello.py", "path:other.py", "shell:command") as app:
        problems = app.get_config_errors()
        assert [spec.name for spec in app.tool_specs()] == ["shell"]
    assert len(problems) == 2


async def test_a_module_beside_a_plugin_does_not_take_the_place_of_an_installed_one(yard):
    yard.file("hello.py", "import click\n" + greeting("greet", "x").replace("'x'", "click.__file__"))
    planted = yard.file("click.py", "raise SystemExit('planted')\n")
    async with yard.app("path:hello.py") as app:
        assert await text(app) not in (str(planted), "")
        assert "planted" not in await text(app)


async def test_compiled_code_beside_a_plugin_is_not_loaded(yard):
    yard.file("hello.py", HELPED)
    yard.file(f"helper{sysconfig.get_config_var('EXT_SUFFIX')}", "no code at all")
    async with yard.app("path:hello.py") as app:
        (problem,) = app.get_config_errors()
    assert "is compiled, and lies where tools can write" in problem["detail"]


async def test_elsewhere_bytecode_is_kept_as_usual(yard):
    folder = yard.folder.parent / "mine"
    write(folder, {"hello.py": HELPED, "helper.py": "WORD = 'own'\n"})
    async with yard.app(f"path:{folder}/hello.py") as app:
        assert await text(app) == "own"
    assert len(list(folder.rglob("*.pyc"))) == 2


async def test_a_name_is_not_looked_up_where_tools_can_write_if_it_is_installed(yard, monkeypatch):
    installed = write(yard.folder.parent / "site", {"dotted_plugin.py": greeting("greet", "installed")})
    monkeypatch.syspath_prepend(str(installed))
    async with yard.app("dotted_plugin.greet") as app:
        assert await text(app) == "installed"
    sys.modules.pop("dotted_plugin", None)
    planted = yard.file("dotted_plugin.py", greeting("greet", "planted"))
    monkeypatch.syspath_prepend(str(yard.folder))
    async with yard.app("dotted_plugin.greet") as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], app.tool_specs()) == ("plugin_shadowed", [])
    assert f"{planted} stands in front of {installed}/dotted_plugin.py" in problem["detail"]


async def test_a_name_that_python_finds_in_the_workspace_is_read_by_the_same_rules(yard, monkeypatch):
    package = yard.folder / "lib" / "dotted_package"
    tools = "from . import words\n" + greeting("greet", "x").replace("'x'", "words.WORD")
    write(package, {"__init__.py": "", "tools.py": tools, "words.py": "WORD = 'own'\n"})
    monkeypatch.syspath_prepend(str(yard.folder / "lib"))
    async with yard.app("dotted_package.tools.greet") as app:
        assert app.get_config_errors() == []
        assert await text(app) == "own"
    assert caches(yard.folder) == []
    assert "dotted_package" not in sys.modules
    (package / "words.py").unlink()
    (package / "words.py").symlink_to(write(yard.folder.parent, {"words.py": "WORD = 'linked'\n"}) / "words.py")
    async with yard.app("dotted_package.tools.greet") as app:
        (problem,) = app.get_config_errors()
    assert "is a link" in problem["detail"]


async def test_what_the_program_itself_has_imported_is_used_as_it_is(yard, monkeypatch):
    yard.file("lib/own_module.py", greeting("greet", "own"))
    monkeypatch.syspath_prepend(str(yard.folder / "lib"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import own_module

    async with yard.app("own_module.greet") as app:
        assert await text(app) == "own"
    assert own_module.greet
    monkeypatch.delitem(sys.modules, "own_module")


async def test_a_descriptor_that_is_replaced_after_it_was_looked_at_is_not_obeyed(yard, monkeypatch):
    """What it names decides what the sandbox guards: nothing else may be loaded by it."""
    write(yard.folder / "plugin", {**descriptor("plugin.greet"), "plugin.py": greeting("greet", "own")})
    outside = write(yard.folder / "elsewhere", {"evil.py": greeting("greet", "evil")})
    evil = descriptor("evil.greet", local_workspace_dependencies=[{"name": "evil", "path": "../elsewhere"}])
    locate = locating.read_project

    def replaced(*given, **options):
        write(yard.folder / "plugin", evil)
        return locate(*given, **options)

    monkeypatch.setattr(locating, "read_project", replaced)
    async with yard.app("path:plugin", plugin_cache_dir=str(yard.folder.parent / "cache")) as app:
        assert await text_of_first(app) == "own"
        monkeypatch.setattr(locating, "read_project", locate)
        assert await text(app) == "evil", "its owner changed it, and everything is laid out anew"
        guarded = app._lifecycle.loaded.host.children("work").sandbox
        assert guarded is None or str(outside) in map(str, guarded.paths.protected)


async def text_of_first(app) -> str:
    """By the path that was loaded, before anybody looks whether something changed."""
    (tool,) = [
        found for plugin in app._lifecycle.loaded.sources() for p in plugin.source.plugins() for found in p.tools
    ]
    return tool.code()


@pytest.mark.parametrize("make", ["link", "pipe", "folder link"])
async def test_a_descriptor_is_a_plain_file_of_its_folder(yard, make):
    elsewhere = write(yard.folder.parent / "other", {**descriptor("plugin.greet"), "plugin.py": greeting("greet", "x")})
    folder = yard.folder / "plugin"
    if make == "folder link":
        folder.symlink_to(elsewhere)
    else:
        write(folder, {"plugin.py": greeting("greet", "x")})
        place = folder / "agent_plugin.json"
        os.mkfifo(place) if make == "pipe" else place.symlink_to(elsewhere / "agent_plugin.json")
    async with yard.app("path:plugin") as app:
        (problem,) = app.get_config_errors()
    assert problem["type"] == "file_refused"


def test_names_of_a_space_that_tools_cannot_write_are_private_as_before(tmp_path):
    write(tmp_path, {"click.py": "WORD = 'own'\n"})
    assert ImportSpace([str(tmp_path)], [], Door()).load("click").WORD == "own"


def test_the_source_of_a_module_is_what_was_compiled(tmp_path):
    folder = tmp_path.resolve()
    write(folder, {"words.py": "WORD = 1\n"})
    space = ImportSpace([str(folder)], ["words"], Door.to([str(folder)]))
    module = space.load("words")
    assert module.__loader__.get_source(module.__name__) == "WORD = 1\n"
    assert json.loads(json.dumps(module.__file__)) == str(folder / "words.py")

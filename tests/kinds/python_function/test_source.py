"""Python plugins in an application: they do not disturb each other, their mistakes are named, their changes noticed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from repositories import commit, descriptor, git, greeting, packaging, repository, write
from support import need
from yard import Yard

pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def plain(folder: Path, module: str, *entries: str, **more: str) -> Path:
    """A plugin folder without packaging, whose module is called `plugin`."""
    return write(folder, {**descriptor(*(entries or ("plugin.greet",))), "plugin.py": module, **more})


async def text(app, name: str = "greet", **arguments) -> str:
    return (await app.call_tool(name, arguments)).text


async def test_two_plugins_with_the_same_modules_do_not_disturb_each_other(yard):
    for name in ("one", "two"):
        files = {
            **packaging("same"),
            **descriptor("same.plugin." + name),
            "same/__init__.py": "",
            "same/words.py": f"WORD = {name!r}\n",
            "same/late.py": f"WORD = 'late {name}'\n",
            "same/plugin.py": f"""
from same.words import WORD

def {name}() -> str:
    import same.late
    from . import words
    return f"{{WORD}} {{same.late.WORD}} {{words.WORD}}"
""",
        }
        write(yard.folder / name, files)
    async with yard.app("path:one", "path:two", plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        for name in ("one", "two"):
            assert await text(app, name) == f"{name} late {name} {name}"
    assert "same" not in sys.modules


BAD = {
    "syntax": ("def greet(:\n    pass\n", "plugin_import_syntax", "invalid syntax", 1),
    "raises": ("x = 1\n\nraise ValueError('no licence')\n", "plugin_import", "ValueError: no licence", 3),
    "exits": ("import sys\nsys.exit(3)\n", "plugin_import_exit", "sys.exit(3)", 2),
    "interrupts": ("raise KeyboardInterrupt\n", "plugin_import", "KeyboardInterrupt", 1),
    "imports": ("import no_such_module_at_all\n", "plugin_import", "No module named 'no_such_module_at_all'", 1),
    "hangs": ("import time\nwhile True: time.sleep(0.01)\n", "plugin_import_timeout", "5 seconds", None),
    "misspelt": ("def great() -> str:\n    return ''\n", "plugin_entry", "has no 'greet'", None),
    "untyped": ("def greet(x: object) -> str:\n    return ''\n", "plugin_signature", "cannot be a tool", 1),
    "no plugin": ("class greet:\n    pass\n", "plugin_entry", "is no plugin", 1),
    "breaks": ("\nclass greet:\n    def __init__(self):\n        1 / 0\n", "plugin_failed", "ZeroDivisionError", 4),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_plugin_that_cannot_be_loaded_is_named_and_the_others_work(yard, case):
    module, code, words, line = BAD[case]
    plain(yard.folder / "bad", module)
    plain(yard.folder / "good", greeting("fine", "fine"), "plugin.fine")
    policy = {"python_import_timeout_seconds": 5} if case == "hangs" else {}
    async with yard.app("path:bad", "path:good", plugin_cache_dir="cache", policy=policy) as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == code
        assert words in problem["detail"]
        if line:
            assert problem["file"] == str(yard.folder / "bad" / "plugin.py"), "the author's own file, not our copy"
            assert problem["line"] == line
        assert await text(app, "fine") == "fine"


async def test_what_is_printed_at_import_is_not_ours(yard, capsys):
    module = "import sys\nprint('hello there')\nsys.stderr.write('psst')\n" + greeting("greet", "hi")
    plain(yard.folder / "mine", module)
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        assert await text(app) == "hi"
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


async def test_one_bad_entry_does_not_stop_its_neighbours(yard):
    plain(yard.folder / "mine", greeting("greet", "hi"), "plugin.greet", "plugin.nothing", "absent.Class")
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        found = app.get_config_errors()
        assert [problem["type"] for problem in found] == ["plugin_entry", "plugin_entry"]
        assert {Path(problem["file"]).name for problem in found} == {"agent_plugin.json"}
        assert "'absent.Class': there is no module 'absent'" in {problem["detail"] for problem in found}
        assert await text(app) == "hi"


@pytest.mark.parametrize("packaged", [False, True])
async def test_a_change_takes_effect_at_the_next_call(yard, packaged):
    if packaged:
        need("uv")
    files = packaging("plugin") if packaged else {}
    folder = plain(yard.folder / "mine", greeting("greet", "old"), **files)
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        assert await text(app) == "old"
        write(folder, {"plugin.py": "import helper\n" + greeting("greet", "newer"), "helper.py": ""})
        assert await text(app) == "newer"
        write(folder, {"plugin.py": greeting("renamed", "other"), **descriptor("plugin.renamed")})
        assert await text(app, "renamed") == "other"
        assert (await app.call_tool("greet", {})).failure == "unknown_tool"


async def test_a_broken_edit_keeps_what_worked_and_says_so(yard):
    folder = plain(yard.folder / "mine", greeting("greet", "good"))
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        assert await text(app) == "good"
        for broken in ("def (", "raise ValueError", "", "def greet(x: object): pass\n"):
            write(folder, {"plugin.py": broken})
            assert await text(app) == "good"
            (problem,) = app.get_config_errors()
            assert "the last good version stays in use" in problem["detail"]
        write(folder, {"plugin.py": greeting("greet", "better")})
        assert await text(app) == "better"
        assert app.get_config_errors() == []


STATEFUL = """
class Counter:
    id = "counter"

    def init(self, config):
        return {"count": config.get("start", 0)}

    def get_tool_schemas(self, state):
        return [{"type": "function", "function": {"name": "count", "description": f"from {state['count']}"}}]

    def execute_tool(self, tool_name, state):
        state["count"] += 1
        return state["count"]
"""


async def test_a_reload_keeps_the_state_of_what_did_not_change(yard):
    plain(yard.folder / "mine", STATEFUL, "plugin.Counter")
    plain(yard.folder / "other", greeting("greet", "hi"))
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        assert await text(app, "count") == "1"
        yard.config("path:mine", "path:other", plugin_cache_dir="cache")
        assert await text(app, "greet") == "hi"
        assert await text(app, "count") == "2"
        await app.reload()
        assert await text(app, "count") == "3"
        yard.config("path:mine", plugin_cache_dir="cache", start=10)
        assert await text(app, "count") == "11"
        assert app.tool_specs()[0].description == "from 10"


async def test_each_agent_has_a_state_of_its_own(yard):
    plain(yard.folder / "mine", STATEFUL, "plugin.Counter")
    agents = {"low": {"start": 0}, "high": {"start": 100}}
    async with yard.app("path:mine", plugin_cache_dir="cache", agents=agents) as app:
        for agent, count in (("low", "1"), ("high", "101"), ("low", "2")):
            assert (await app.call_tool("count", {}, agent=agent)).text == count


COUNTED = """
import os
with open(os.environ["LOG_OF_IMPORTS"], "a") as log:
    log.write("imported\\n")

class Counter:
    id = "counter"

    def init(self, config):
        return {"count": config["start"]}

    def get_tool_schemas(self, state):
        return [{"type": "function", "function": {"name": "count", "parameters": {"type": "object"}}}]

    def execute_tool(self, tool_name, payload, state):
        state["count"] += 1
        return state["count"]

    def close(self):
        with open(os.environ["LOG_OF_IMPORTS"], "a") as log:
            log.write("closed\\n")

shared = Counter()
"""


@pytest.mark.parametrize(("entry", "closings"), [("plugin.Counter", 3), ("plugin.shared", 1)])
async def test_code_is_imported_once_and_each_configuration_has_its_own_state(yard, monkeypatch, entry, closings):
    monkeypatch.setenv("LOG_OF_IMPORTS", str(yard.folder / "log"))
    plain(yard.folder / "counter", COUNTED, entry)
    agents = {name: {"start": start} for name, start in (("a", 10), ("b", 20), ("c", 30))}
    before = {name for name in sys.modules if name.startswith("toolyard_space")}
    async with yard.app("path:counter", plugin_cache_dir="cache", agents=agents) as app:
        assert app.get_config_errors() == []
        for number in (1, 2):
            counts = [(await app.call_tool("count", {}, agent=name)).text for name in "abc"]
            assert counts == [str(10 + number), str(20 + number), str(30 + number)]
        yard.config("path:counter", plugin_cache_dir="cache", agents=agents | {"c": {"start": 40}})
        assert [(await app.call_tool("count", {}, agent=name)).text for name in "abc"] == ["13", "23", "41"]
        assert yard.log().count("imported") == 1
    assert yard.log().count("closed") == closings + (entry == "plugin.Counter")
    assert {name for name in sys.modules if name.startswith("toolyard_space")} == before


async def test_an_edit_is_imported_once_for_all_agents(yard, monkeypatch):
    monkeypatch.setenv("LOG_OF_IMPORTS", str(yard.folder / "log"))
    yard.file("plugin.py", COUNTED)
    agents = {name: {"start": ord(name)} for name in "abc"}
    async with yard.app({"path": "plugin.py", "entry": "plugin.Counter"}, agents=agents) as app:
        assert app.get_config_errors() == []
        yard.file("plugin.py", COUNTED.replace("+= 1", "+= 1000"))
        results = [await app.call_tool("count", {}, agent=name) for name in "abc"]
        assert [result.text for result in results] == [str(ord(name) + 1000) for name in "abc"]
        assert yard.log().count("imported") == 2


async def test_a_local_repository_that_moved_on_is_noticed_on_reload(yard):
    origin = repository(yard.folder / "origin", {**descriptor("plugin.greet"), "plugin.py": greeting("greet", "old")})
    async with yard.app("git+origin", plugin_cache_dir="cache") as app:
        assert await text(app) == "old"
        commit(origin, {"plugin.py": greeting("greet", "newer")})
        await app.reload()
        assert await text(app) == "newer"
        git(origin, "tag", "v1")
        git(origin, "tag", "--delete", "v1")


async def test_bundled_plugins_are_used_where_they_are(yard):
    async with yard.app("path:${env:BUILTIN_PLUGINS}/feature-system-message", plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
    assert not (yard.folder / "cache").exists()


async def test_a_single_file_is_a_plugin(yard):
    yard.file("tools/hello.py", greeting("greet", "hi") + greeting("wave", "waves"))
    async with yard.app("path:tools/hello.py") as app:
        assert [spec.name for spec in app.tool_specs()] == ["greet", "wave"]
        yard.file("tools/hello.py", greeting("greet", "changed"))
        assert await text(app) == "changed"


async def test_a_plugin_knows_its_own_files(yard):
    module = "from pathlib import Path\n" + greeting("greet", "x").replace(
        "'x'", "(Path(__file__).parent / 'data').read_text()"
    )
    plain(yard.folder / "mine", module, data="beside")
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        assert await text(app) == "beside"


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ("path:nowhere", "plugin_missing", "there is no folder"),
        ("path:nowhere.py", "plugin_missing", "there is no file"),
        ("path:", "plugin_spec", "empty"),
        ("path:empty", "plugin_descriptor", "no agent_plugin.json"),
        ("path:bad-name.py", "plugin_entry", "cannot be imported"),
        ("no_such_package.module.Class", "plugin_entry", "no module 'no_such_package'"),
        ("json.nothing.Class", "plugin_entry", "has no 'nothing'"),
        ({"path": "empty", "entyr": "x"}, "plugin_spec", "'entyr'"),
        ({"path": "empty", "ref": "v1"}, "plugin_spec", "'ref'"),
        ({"path": "empty", "git": "x"}, "plugin_spec", "not both"),
        ({"path": 3}, "plugin_spec", "'path' must be a string"),
        ({"path": "empty", "subdirectory": "../elsewhere"}, "plugin_outside", "outside the repository"),
        ({"path": "empty", "subdirectory": "nothing"}, "plugin_missing", "no folder 'nothing'"),
        ({"git": "empty", "entry": "x.Y"}, "plugin_fetch_failed", "empty"),
    ],
)
async def test_a_reference_to_nothing_says_so(yard, spec, code, words):
    (yard.folder / "empty").mkdir()
    yard.file("bad-name.py", "")
    async with yard.app(spec, plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["severity"]) == (code, "error")
        assert words in problem["detail"]


async def test_a_hostile_repository_cannot_reach_out_of_itself(yard):
    outside = write(yard.folder / "outside", {**descriptor("plugin.greet"), "plugin.py": greeting("greet", "x")})
    cases = {
        "subdirectory": descriptor("plugin.greet", subdirectory="../outside"),
        "beside": descriptor("plugin.greet", local_workspace_dependencies=[{"name": "x", "path": str(outside)}]),
        "above": descriptor("plugin.greet", local_workspace_dependencies=[{"name": "x", "path": "../.."}]),
    }
    for name, files in cases.items():
        repository(yard.folder / name, files | {"plugin.py": greeting("greet", "x")})
        async with yard.app(f"git+{name}", plugin_cache_dir="cache") as app:
            (problem,) = app.get_config_errors()
            assert problem["type"] == "plugin_outside", name
    origin = repository(yard.folder / "link", descriptor("plugin.greet"))
    os.symlink("../outside/plugin.py", origin / "plugin.py")
    commit(origin, {})
    async with yard.app("git+link", plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == "plugin_outside"


async def test_problems_and_tools_are_known_without_opening(yard):
    plain(yard.folder / "mine", greeting("greet", "hi"))
    plain(yard.folder / "bad", "1 / 0\n")
    app = yard.app("path:mine", "path:bad", plugin_cache_dir="cache")
    (problem,) = await asyncio.to_thread(app.get_config_errors)
    assert problem["line"] == 1
    assert [spec.name for spec in app.tool_specs()] == ["greet"]
    async with app:
        assert await text(app) == "hi"


async def test_the_audit_says_which_kind_of_tool_ran(yard):
    plain(yard.folder / "mine", greeting("greet", "hi"))
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        await text(app)
    assert [(line["event"], line["kind"]) for line in yard.audit()] == [("start", "python"), ("end", "python")]


async def test_what_a_note_says_is_a_warning(yard):
    pyproject = (
        '[build-system]\nrequires = ["no-such-backend"]\nbuild-backend = "x"\n[project]\nname = "p"\nversion = "1"\n'
    )
    plain(yard.folder / "mine", greeting("greet", "hi"), **{"pyproject.toml": pyproject})
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["severity"]) == ("plugin_used_as_it_is", "warning")
        assert await text(app) == "hi"


async def test_twenty_plugins_load_side_by_side(yard):
    for number in range(20):
        plain(yard.folder / f"p{number}", greeting(f"greet{number}", f"hi {number}"), f"plugin.greet{number}")
    async with yard.app(*(f"path:p{number}" for number in range(20)), plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        assert [spec.name for spec in app.tool_specs()] == [f"greet{number}" for number in range(20)]
        answers = await asyncio.gather(*(text(app, f"greet{number}") for number in range(20)))
        assert answers == [f"hi {number}" for number in range(20)]
        assert json.dumps(app.tool_specs(format="openai"))

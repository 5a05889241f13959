"""Where plugins come from: every spelling, the descriptor, the cache and the policy."""

from __future__ import annotations

import json
import sys

import pytest

import support
from repositories import BACKEND, commit, descriptor, git, git_server, greeting, packaging, repository, write
from yard import script

pytestmark = pytest.mark.anyio

CLASS = """
class {name}:
    id = {id!r}

    def init(self, config):
        return {{"greeting": config.get("greeting", "hello")}}

    def get_tool_schemas(self, state, prepared=None):
        return [{{"type": "function", "function": {{"name": {id!r}, "parameters": {{"type": "object"}}}}}}]

    def execute_tool(self, tool_name, arguments, state):
        return state["greeting"] + " from {id}"
"""


def plugin_class(name: str, plugin_id: str) -> str:
    return CLASS.format(name=name, id=plugin_id)


def python_repository(plugin_id: str = "greet", package: str = "greeter", **more: str) -> dict[str, str]:
    """A repository with packaging, a descriptor and one class."""
    return {
        **packaging(package),
        **descriptor(f"{package}.tools.Greeter"),
        f"{package}/__init__.py": "",
        f"{package}/tools.py": plugin_class("Greeter", plugin_id),
        **more,
    }


async def texts(app, *names: str) -> list[str]:
    return [(await app.call_tool(name, {})).text for name in names]


async def test_C10_a_dotted_class_is_imported_as_it_is(yard, monkeypatch):
    write(yard.folder / "lib", {"installed_pkg/module.py": plugin_class("Plugin", "greet")})
    monkeypatch.syspath_prepend(str(yard.folder / "lib"))
    yard.file("beside/module.py", plugin_class("Plugin", "beside"))
    async with yard.app("installed_pkg.module.Plugin", "beside.module.Plugin", greeting="good day") as app:
        assert app.get_config_errors() == []
        assert await texts(app, "greet", "beside") == ["good day from greet", "good day from beside"]
    assert not (yard.folder / "cache").exists()
    sys.modules.pop("installed_pkg", None)
    sys.modules.pop("installed_pkg.module", None)


async def test_C10_a_path_is_installed_and_its_descriptor_names_the_classes(yard):
    files = python_repository()
    files |= descriptor("greeter.tools.Greeter", "greeter.more.wave")
    write(yard.folder / "plugins/mine", files | {"greeter/more.py": greeting("wave", "waves")})
    async with yard.app("path:plugins/mine", plugin_cache_dir="cache/plugins") as app:
        assert app.get_config_errors() == []
        assert await texts(app, "greet", "wave") == ["hello from greet", "waves"]
    (installed,) = (yard.folder / "cache" / "plugins").glob("mine-*")
    assert (installed / "site" / "greeter" / "tools.py").exists()


async def test_C10_a_git_repository_by_tag_branch_and_commit(yard):
    origin = repository(yard.folder / "origin", python_repository("first"))
    git(origin, "tag", "v1")
    side = commit(origin, python_repository("second"))
    git(origin, "branch", "side")
    commit(origin, python_repository("third"))
    cases = {"": "third", "#v1": "first", "#side": "second", f"#{side}": "second"}
    for ref, name in cases.items():
        for prefix in (f"git+{origin}", "git+origin", f"git+file://{origin}"):
            async with yard.app(f"{prefix}{ref}", plugin_cache_dir="cache/plugins") as app:
                assert app.get_config_errors() == []
                assert await texts(app, name) == [f"hello from {name}"]


async def test_C10_a_verbose_object_names_one_class(yard):
    files = {f"sub/dir/{name}": text for name, text in python_repository("greet").items()}
    files["sub/dir/greeter/other.py"] = plugin_class("Other", "other")
    del files["sub/dir/agent_plugin.json"]
    origin = repository(yard.folder / "origin", files)
    git(origin, "tag", "v1")
    entry = {"subdirectory": "sub/dir", "entry": "greeter.other.Other"}
    for spec in ({"path": "origin", **entry}, {"git": "origin", "ref": "v1", **entry}):
        async with yard.app(spec, plugin_cache_dir="cache") as app:
            assert app.get_config_errors() == []
            assert [spec.name for spec in app.tool_specs()] == ["other"]
            assert await texts(app, "other") == ["hello from other"]


async def test_C10_bash_tools_of_a_git_repository(yard):
    files = {
        "tools/agent_plugin.json": json.dumps({"bash_tools": [{"file": "one.bash"}, {"file": "two.bash"}]}),
        "tools/one.bash": script("one", run="cat \"$(dirname \"$0\")/word\""),
        "tools/two.bash": script("two", run="echo 2"),
        "tools/word": "beside\n",
        "agent_plugin.json": json.dumps({"bash_tools": [{"file": "tools/two.bash"}]}),
    }  # fmt: skip
    origin = repository(yard.folder / "origin", files)
    git(origin, "tag", "v1")
    commit(origin, {"tools/word": "later\n"})
    spec = {"bash_tool": {"git": "origin", "ref": "v1", "subdirectory": "tools"}}
    async with yard.app(spec, plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        assert await texts(app, "one", "two") == ["beside\n", "2\n"]
    async with yard.app(f"bash+git:{origin}#v1", plugin_cache_dir="cache") as app:
        assert [spec.name for spec in app.tool_specs()] == ["two"]
    async with yard.app("bash+git:origin", policy={"allow_bash_tools": False}, plugin_cache_dir="other") as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == "bash_tools_not_allowed"
        assert not (yard.folder / "other").exists(), "nothing is fetched that may not run"


async def test_C10_the_reference_comes_after_the_last_hash(yard):
    origin = repository(yard.folder / "odd#name", python_repository())
    git(origin, "tag", "v1")
    async with yard.app(f"git+{origin}#v1", plugin_cache_dir="cache") as app:
        assert await texts(app, "greet") == ["hello from greet"]


async def test_C10_the_kind_is_seen_by_what_a_class_can_do(yard):
    module = """
class Feature:
    id = "brief"
    def build_system_message(self, config, context):
        return "Be brief."

class Provider:
    id = "provider"
    def stream(self, request, context):
        yield "text"

class Application:
    id = "watcher"
    def on_event(self, event):
        pass
"""
    names = ("Feature", "Provider", "Application")
    write(yard.folder / "mixed", {"mixed.py": module, **descriptor(*(f"mixed.{name}" for name in names))})
    async with yard.app("path:mixed", plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        found = {plugin.plugin: plugin.kind for plugin in app.plugins()}
        assert found == {"brief": "feature", "provider": "provider", "watcher": "application"}


async def test_C11_a_descriptor_is_strict_json(yard):
    text = '{\n  "entries": ["greeter.tools.Greeter"],\n}\n'
    write(yard.folder / "mine", python_repository() | {"agent_plugin.json": text})
    async with yard.app("path:mine") as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == "config_syntax"
        assert "trailing comma" in problem["detail"]
        assert problem["file"] == str(yard.folder / "mine" / "agent_plugin.json")
        assert text.splitlines()[problem["line"] - 1][problem["column"] - 1] == ","


@pytest.mark.parametrize(
    ("value", "words", "place"),
    [
        ({"entries": []}, "'entries' must be a list", "entries"),
        ({"entries": "a.B"}, "'entries' must be a list", "entries"),
        ({}, "'entries' must be a list", None),
        ([], "a descriptor is an object", None),
        ({"entries": ["a.B", 3]}, "dotted name", "3"),
        ({"entries": ["../x"]}, "dotted name", "../x"),
        ({"entries": ["a.B"], "subdirectory": 3}, "'subdirectory'", "subdirectory"),
        ({"entries": ["a.B"], "subdirectory": "../other"}, "outside the repository", None),
        ({"entries": ["a.B"], "kinds": ["wizards"]}, "no kind 'wizards'", "wizards"),
        ({"entries": ["a.B"], "kinds": "tools"}, "'kinds' must be a list", "kinds"),
        ({"entries": ["a.B"], "local_workspace_dependencies": [{"name": "x"}]}, "needs 'path'", "{"),
        ({"entries": ["a.B"], "local_workspace_dependencies": [{"path": "../none"}]}, "no folder", None),
        ({"bash_tools": [{"file": "x.bash"}]}, "bash tools", None),
    ],
)
async def test_C11_each_mistake_in_a_descriptor_has_its_place(yard, value, words, place):
    text = json.dumps(value, indent=1)
    write(yard.folder / "mine", {"agent_plugin.json": text, "a.py": ""})
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert words in problem["detail"]
        if place:
            assert place in text.splitlines()[problem["line"] - 1]


async def test_C12_an_install_is_used_again_until_source_reference_or_policy_change(yard):
    builds = yard.folder / "builds"
    counting = f"{BACKEND}\nwith open({str(builds)!r}, 'a') as file: file.write('x')\n"
    folder = write(yard.folder / "mine", python_repository(**{"backend/in_tree.py": counting}))

    async def load(**policy) -> list[str]:
        off = {"mode": "off"}  # so that a build can tell that it happened
        async with yard.app("path:mine", plugin_cache_dir="cache/plugins", policy=policy, sandbox=off) as app:
            assert app.get_config_errors() == []
            return await texts(app, "greet")

    await load()
    after = len(builds.read_text())
    await load()
    assert len(builds.read_text()) == after
    write(folder, {"greeter/tools.py": plugin_class("Greeter", "greet").replace(" from", " again from")})
    assert await load() == ["hello again from greet"]
    assert len(builds.read_text()) > after
    after = len(builds.read_text())
    await load(install_deps=True)
    assert len(builds.read_text()) > after
    assert len(list((yard.folder / "cache" / "plugins").glob("mine-*"))) == 3


async def test_C12_a_change_beside_a_plugin_installs_it_again(yard):
    library = write(yard.folder / "library", {**packaging("library"), "library.py": "WORD = 'old'\n"})
    module = "import library\n" + greeting("word", "x").replace("'x'", "library.WORD")
    beside = {"local_workspace_dependencies": [{"name": "library", "path": "../library"}]}
    write(yard.folder / "mine", {**packaging("mine"), **descriptor("mine.word", **beside), "mine.py": module})
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        assert await texts(app, "word") == ["old"]
        write(library, {"library.py": "WORD = 'newer'\n"})
        assert await texts(app, "word") == ["newer"]


async def test_C12_the_default_cache_is_the_users_own(yard, tmp_path_factory):
    write(yard.folder / "mine", python_repository())
    cache = tmp_path_factory.mktemp("user-cache")
    async with yard.open(yard.config("path:mine"), cache_dir=cache) as app:
        assert await texts(app, "greet") == ["hello from greet"]
    assert list((cache / "plugins").glob("mine-*"))


async def test_C13_nothing_remote_is_touched_unless_policy_allows_it(yard):
    repository(yard.folder / "origin", python_repository())
    with git_server(yard.folder) as (address, log):
        specs = [
            f"git+{address}/origin",
            {"git": f"{address}/origin", "entry": "greeter.tools.Greeter"},
            "git+ssh://127.0.0.1/origin",
            "git+git@127.0.0.1:origin",
            "git+git://127.0.0.1/origin",
            f"bash+git:{address}/origin",
            {"bash_tool": {"git": f"{address}/origin", "ref": "v1"}},
        ]
        async with yard.app(*specs, plugin_cache_dir="cache") as app:
            found = app.get_config_errors()
            assert [problem["type"] for problem in found] == ["plugin_remote_not_allowed"] * len(specs)
            assert all("allow_remote" in problem["hint"] for problem in found)
            assert all(problem["line"] for problem in found)
        assert log == []


async def test_C13_hosts_narrow_what_is_remote(yard):
    repository(yard.folder / "origin", python_repository())
    with git_server(yard.folder) as (address, log):
        spec = f"git+{address}/origin"
        policy = {"allow_remote": True, "allowed_git_hosts": ["git.example.org"]}
        async with yard.app(spec, policy=policy, plugin_cache_dir="cache") as app:
            (problem,) = app.get_config_errors()
            assert problem["type"] == "plugin_host_not_allowed"
        assert log == []
        policy["allowed_git_hosts"].append("127.0.0.1")
        async with yard.app(spec, policy=policy, plugin_cache_dir="cache") as app:
            assert app.get_config_errors() == []
            assert await texts(app, "greet") == ["hello from greet"]


@pytest.mark.parametrize(
    "spec",
    [
        "git+--upload-pack=touch owned",
        "git+ext::sh -c 'touch owned'",
        "git+origin#--upload-pack=touch owned",
        "bash+git:ext::sh",
        {"git": "origin", "ref": "-c core.sshCommand=x"},
        {"git": "-c"},
        {"bash_tool": {"git": "origin", "ref": "--exec=x"}},
        {"git": "ssh://-oProxyCommand=x/y"},
    ],
)
async def test_C13_what_git_could_take_for_an_option_is_refused(yard, spec):
    repository(yard.folder / "origin", python_repository())
    async with yard.app(spec, policy={"allow_remote": True}, plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] in ("plugin_git_url", "plugin_git_ref")
        assert problem["line"]
    assert not (yard.folder / "owned").exists()
    assert not (yard.folder / "cache").exists()


async def test_C13_dependencies_are_left_out_unless_policy_asks_for_them(yard):
    support.need("uv")
    files = {**packaging("mine", dependencies=("no-such-dependency-anywhere",)), **descriptor("mine.wave")}
    write(yard.folder / "mine", files | {"mine.py": greeting("wave", "waves")})
    async with yard.app("path:mine", plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        assert await texts(app, "wave") == ["waves"]
    async with yard.app("path:mine", plugin_cache_dir="cache", policy={"install_deps": True}) as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == "plugin_install_failed"
        assert "no-such-dependency-anywhere" in problem["detail"]


async def test_C13_the_pip_cache_is_a_sibling_of_the_plugin_cache(yard):
    support.need("uv")
    write(yard.folder / "mine", python_repository())
    async with yard.app("path:mine", plugin_cache_dir="${env:CONFIG_DIR}/.plugin_cache/plugins") as app:
        assert app.get_config_errors() == []
    assert (yard.folder / ".plugin_cache" / "pip").is_dir()


async def test_C13_a_relative_pip_cache_starts_at_the_folder_of_the_configuration(yard, monkeypatch):
    support.need("uv")
    write(yard.folder / "mine", python_repository())
    elsewhere = yard.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    async with yard.app("path:mine", plugin_cache_dir="cache", policy={"pip_cache_dir": "downloads"}) as app:
        assert app.get_config_errors() == []
    assert (yard.folder / "downloads").is_dir()
    assert not list(elsewhere.iterdir())

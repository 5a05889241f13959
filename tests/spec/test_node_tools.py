"""Node tools: the line of the contract, on a real Node."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from node_yard import NodeYard, call, codes
from repositories import commit, git, repository
from support import CommandLine, is_alive, need
from toolyard.config.document import Document, Place
from toolyard.kinds.node_module.kind import NodeModules
from toolyard.kinds.node_module.package import facts_of
from toolyard.kinds.node_module.package_manager import choose_manager
from toolyard.kinds.node_module.reference import NodeFile, NodeFolder, NodeGit
from toolyard.kinds.node_module.settings import NodeModuleSettings
from toolyard.plugins.acquire.git_reference import read_git_reference

pytestmark = pytest.mark.anyio

TOOLS = """
export default {
  description: "Say it again.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  run: ({ text }) => text,
};
export const backwards = {
  description: "Say it backwards.",
  parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  execute: async ({ text }) => [...text].reverse().join(""),
};
"""


@pytest.fixture
def yard(tmp_path: Path) -> NodeYard:
    return NodeYard(tmp_path)


def two_tools(yard: NodeYard) -> Path:
    return yard.package(
        {"dist/index.js": TOOLS},
        {"id": "again", "entry": "dist/index.js"},
        {"id": "backwards", "entry": "dist/index.js", "export": "backwards"},
        name="@yard/two-tools",
        type="module",
    )


HERE = Place(Document(Path("/yard/toolyard.json"), "{}", {}), ())


def address(url, ref=None):
    return read_git_reference(url, ref, "/yard")


@pytest.mark.parametrize("plugin", ["node:./pkg", {"node_tool": {"path": "./pkg"}}])
async def test_C14_the_tools_of_a_package_are_those_that_its_descriptor_lists(yard, plugin):
    two_tools(yard)
    async with yard.app(plugin) as app:
        assert codes(app) == []
        assert [(spec.name, spec.description) for spec in app.tool_specs()] == [
            ("again", "Say it again."),
            ("backwards", "Say it backwards."),
        ]
        assert app.tool_specs(format="openai")[0]["function"]["parameters"]["required"] == ["text"]
        assert await call(app, "again", {"text": "olé"}) == "olé"
        assert await call(app, "backwards", {"text": "olé"}) == "élo"
        assert (await app.call_tool("again", {})).failure == "invalid_arguments"


@pytest.mark.parametrize(
    ("plugin", "names"),
    [
        ({"node_tool": {"path": ".", "subdirectory": "pkg"}}, ["again", "backwards"]),
        ({"node_tool": {"path": "pkg", "id": "backwards"}}, ["backwards"]),
        ({"node_tool": {"path": "pkg", "id": "other", "entry": "dist/index.js", "export": "backwards"}}, ["other"]),
        ({"node_tool": {"path": "pkg", "entry": "dist/index.js"}}, ["index"]),
        ({"node_tool": {"path": "pkg/dist", "entry": "index.js", "id": "bare"}}, ["bare"]),
        ({"node_tool": {"file": "./my_tool.mjs", "id": "my_tool", "entry": "my_tool.mjs"}}, ["my_tool"]),
        ({"node_tool": {"file": "my_tool.mjs", "export": "backwards"}}, ["my_tool"]),
        ("node:my_tool.mjs", ["my_tool"]),
        ("node:./with-dash.cjs", ["with_dash"]),
        ("node:${env:CONFIG_DIR}/pkg", ["again", "backwards"]),
    ],
)
async def test_C14_every_spelling_of_a_package_or_a_single_file_loads(yard, plugin, names):
    two_tools(yard)
    yard.file("my_tool.mjs", TOOLS)
    yard.file("with-dash.cjs", "exports.run = ({ text }) => text;")
    async with yard.app(plugin) as app:
        assert codes(app) == []
        assert [spec.name for spec in app.tool_specs()] == names
        assert await call(app, names[0], {"text": "ab"}) in ("ab", "ba")


@pytest.mark.parametrize(
    ("value", "spec"),
    [
        ("node+git:https://host/a.git#v1", NodeGit(git=address("https://host/a.git", "v1"), at=HERE)),
        ("node+git:me@host:a.git", NodeGit(git=address("me@host:a.git"), at=HERE)),
        ("node+git:./repo#main", NodeGit(git=address("/yard/repo", "main"), at=HERE)),
        ("node+git:./re#po#main", NodeGit(git=address("/yard/re#po", "main"), at=HERE)),
        ({"node_tool": {"git": "ssh://h/a", "ref": "v2", "subdirectory": "b", "id": "i"}},
         NodeGit(git=address("ssh://h/a", "v2"), subdirectory="b", id="i", at=HERE)),
        ("node:/abs/tool.js", NodeFile(file="/abs/tool.js", at=HERE)),
        ({"node_tool": {"path": "a", "subdirectory": "b/c"}}, NodeFolder(folder="/yard/a/b/c", at=HERE)),
    ],
)  # fmt: skip
def test_C14_every_spelling_is_one_of_three_things(value, spec):
    named = NodeModules().read(value, HERE)
    assert (named.problems, named.references) == ((), [spec])


@pytest.mark.parametrize(
    "value",
    [
        "node:",
        "node+git:",
        {"node_tool": {}},
        {"node_tool": "./pkg"},
        {"node_tool": {"path": "a", "file": "b.js"}},
        {"node_tool": {"path": 3}},
        {"node_tool": {"path": "a", "entri": "x.js"}},
        {"node_tool": {"path": "a", "ref": "v1"}},
        {"node_tool": {"path": "a", "subdirectory": "../b"}},
        {"node_tool": {"file": "a.js", "subdirectory": "b"}},
        {"node_tool": {"file": "a.js", "entry": "b.js"}},
    ],
)
async def test_C14_a_wrong_spelling_is_a_problem_at_its_place(yard, value):
    async with yard.app("node:missing", value) as app:
        problem = next(p for p in app.get_config_errors() if p["type"] == "plugin_spec")
        assert problem["line"] >= 4
        assert problem["hint"]


async def test_C14_a_package_of_a_repository_is_fetched_by_policy(yard):
    package = {"name": "p", "version": "1.0.0", "agent": {"tools": [{"id": "again", "entry": "index.mjs"}]}}
    files = {"inner/package.json": json.dumps(package), "inner/index.mjs": TOOLS}
    repo = repository(yard.folder / "repo", files)
    git(repo, "tag", "v1")
    commit(repo, {"inner/index.mjs": "nonsense("})
    tagged = {"node_tool": {"git": "./repo", "ref": "v1", "subdirectory": "inner"}}
    async with yard.app(tagged, plugin_cache_dir="cache") as app:
        assert app.get_config_errors() == []
        assert await call(app, "again", {"text": "ab"}) == "ab"
    async with yard.app("node+git:https://example.invalid/x.git#v1", plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert (problem["line"], "allow_remote" in problem["hint"]) == (3, True)


async def test_C14_typescript_is_built_by_the_packages_own_script(yard):
    need("npm")
    build = """
        const fs = require("fs");
        fs.mkdirSync("dist", { recursive: true });
        fs.writeFileSync("dist/index.js", fs.readFileSync("src/index.ts", "utf8").replace(/: (string|number)/g, ""));
    """
    source = "const times: number = 2;\nexport default { run: ({ text }) => text.repeat(times) };\n"
    folder = yard.package(
        {"src/index.ts": source, "build.cjs": build},
        {"id": "twice", "entry": "dist/index.js"},
        type="module",
        scripts={"build": "node build.cjs"},
    )
    async with yard.app("node:pkg", plugin_cache_dir="${env:CONFIG_DIR}/cache") as app:
        assert codes(app) == []
        assert await call(app, "twice", {"text": "ab"}) == "abab"
    assert not (folder / "dist").exists()
    assert list((yard.folder / "cache").rglob("dist/index.js"))


@pytest.mark.parametrize(
    ("policy", "own", "files", "manager"),
    [
        ("npm", "pnpm@9.0.0", ("yarn.lock",), "npm"),
        (None, "pnpm@9.0.0", ("yarn.lock",), "pnpm"),
        (None, None, ("yarn.lock",), "yarn"),
        (None, None, ("pnpm-lock.yaml",), "pnpm"),
        (None, None, ("package-lock.json",), "npm"),
        (None, None, (), "npm"),
    ],
)
def test_C14_the_manager_is_the_policys_then_the_packages_then_that_of_the_lock_then_npm(policy, own, files, manager):
    package = facts_of(Document(Path("/p/package.json"), "{}", {"packageManager": own}), Path("/p"), [], [])
    assert choose_manager(package, NodeModuleSettings(node_package_manager=policy), files) == manager


def test_C14_the_policy_has_the_defaults_of_the_page():
    policy = NodeModuleSettings()
    assert policy.node_timeout_seconds == 60
    assert (policy.node_install_deps, policy.node_build, policy.node_allow_install_scripts) == (True, True, True)
    assert (policy.node_package_manager, policy.node_build_command) == (None, None)


async def test_C14_a_policy_that_does_not_fit_is_a_problem_and_the_default_stays(yard):
    yard.module("return 'fine'")
    async with yard.app("node:probe.mjs", policy={"node_package_manager": "bun", "node_timeout_seconds": 0}) as app:
        assert codes(app) == ["config_type", "config_type"]
        assert await call(app) == "fine"


async def test_C14_each_call_has_its_own_time_limit(yard):
    body = "if (args.value) for (;;) await new Promise((go) => setTimeout(go, 10)); return process.pid"
    async with yard.probe(body, policy={"node_timeout_seconds": 5}) as app:
        host = await call(app)
        result = await app.call_tool("probe", {"value": "for ever"})
        assert (result.failure, result.text) == ("timeout", "Error: 'probe' timed out after 5 seconds")
        assert not is_alive(int(host)), "it did not mind its signal"
        assert await call(app) != host


@pytest.mark.parametrize(
    "noise",
    [
        "console.log('{}')",
        "process.stdout.write('no end of line')",
        'process.stdout.write(\'{"jsonrpc": "2.0", "id": 2, "result": {}}\\n\')',
        "(await import('node:child_process')).execSync('echo noise', { stdio: 'inherit' })",
    ],
)
async def test_C14_what_a_tool_prints_never_breaks_the_protocol(yard, noise):
    async with yard.probe(f"{noise}; context.write('part '); {noise}; return `${{args.value}}!`") as app:
        texts = await asyncio.gather(*(call(app, arguments={"value": str(i)}, on_event=yard.watch) for i in range(5)))
    assert texts == [f"{i}!" for i in range(5)]
    assert yard.streamed() == "part " * 5


def test_C14_without_node_there_is_a_problem_and_no_traceback(tmp_path: Path):
    toolyard = CommandLine(tmp_path)
    toolyard.file("probe.mjs", "export default { run() {} };")
    toolyard.config("node:probe.mjs", "shell:command")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to(need("bash"))
    ran = toolyard("tools", env={"PATH": str(tmp_path / "bin")})
    assert "toolyard.json:1:14: there is no Node on PATH" in ran.err
    assert "install Node 20" in ran.err
    assert "Traceback" not in ran.err
    assert ran.out.startswith("shell ")


async def test_C14_a_node_that_is_too_old_is_a_problem(yard, monkeypatch, tmp_path_factory):
    """A real Node that says it is another, since no old one is at hand."""
    yard.file("old.cjs", "Object.defineProperty(process.versions, 'node', { value: '18.0.0' });")
    program = tmp_path_factory.mktemp("bin") / "node"
    program.write_text(f'#!/bin/sh\nexec {need("node")} -r {yard.folder}/old.cjs "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    yard.module("return 1")
    async with yard.app("node:probe.mjs") as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == "node_too_old"
        assert "Node 20 or newer is needed" in problem["detail"]


async def test_C14_a_second_start_knows_the_tools_without_starting_anything(yard):
    two_tools(yard)
    config = yard.file("toolyard.json", json.dumps({"plugins": ["node:pkg"]}))
    async with yard.open(config) as app:
        specs = app.tool_specs()
    async with yard.open(config) as app:
        assert (app._lifecycle.loaded.host.children("work").keeper_pid, app.tool_specs()) == (None, specs)
        assert await call(app, "again", {"text": "x"}) == "x"


async def test_C14_a_setting_that_a_tool_asks_for_is_a_known_key(yard):
    yard.module("return context.config", more="configKeys: ['smtp_user', 'plugin_cash_dir'],")
    async with yard.app("node:probe.mjs", smtp_user="ada", plugin_cash_dir="x") as app:
        assert codes(app) == []
        assert json.loads(await call(app)) == {"smtp_user": "ada", "plugin_cash_dir": "x"}


@pytest.mark.parametrize("name", ["pkg", "pipe.mjs", "nul\0.mjs", "probe.mjs/inner.mjs"])
async def test_a_module_must_be_a_file(yard: NodeYard, name: str):
    yard.module("return 'fine'")
    yard.package({})
    os.mkfifo(yard.folder / "pipe.mjs")
    assert codes(yard.app({"node_tool": {"file": name}})) == ["node_file_missing"]


async def test_pipes_in_a_package_are_no_part_of_it(yard: NodeYard):
    package = yard.package({"a.mjs": TOOLS}, {"id": "again", "entry": "a.mjs"})
    os.mkfifo(package / "pipe")
    async with yard.app("node:pkg") as app:
        assert codes(app) == []
        assert await call(app, "again", {"text": "fine"}) == "fine"

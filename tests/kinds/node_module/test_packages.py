"""Node packages: what package.json says, installing and building in a cached copy, and what is told when that fails."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from node_yard import NodeYard, call, codes
from repositories import git, repository
from support import PATIENCE, TOOLYARD, Signpost, is_alive, need, need_backend
from toolyard.config.document import Document
from toolyard.core.events import OutputChunk
from toolyard.core.tool import CallContext
from toolyard.kinds.node_module.package import facts_of
from toolyard.kinds.node_module.package_manager import Manager, build_steps, choose_manager, needs_manager
from toolyard.kinds.node_module.settings import NodeModuleSettings

pytestmark = pytest.mark.anyio

ECHO = "export default { description: 'Echo.', run: ({ value = 'nothing' }) => `echo ${value}` };\n"
BUILD = "const fs = require('fs'); fs.mkdirSync('dist', { recursive: true }); {more}\n"
COMPILE = BUILD.replace(
    "{more}", "fs.writeFileSync('dist/index.js', fs.readFileSync('src/index.ts', 'utf8').replace(/: string/g, ''));"
)
TYPED = "const text: string = 'built ';\nexport default { run: () => text + import.meta.url };\n"
TELL = "fs.writeFileSync('%s', `${process.pid}\\n`);"
"""Write where we are to a signpost."""
MODULE = {"type": "module"}
TOOL = {"id": "probe", "entry": "index.js"}


@pytest.fixture
def yard(tmp_path: Path) -> NodeYard:
    return NodeYard(tmp_path)


def typed(yard: NodeYard, **fields) -> Path:
    """A package that is built from TypeScript by a script of its own."""
    files = {"src/index.ts": TYPED, "build.cjs": COMPILE}
    built = {"id": "probe", "entry": "dist/index.js"}
    return yard.package(files, built, **{**MODULE, "scripts": {"build": "node build.cjs"}, **fields})


def cached(yard: NodeYard) -> list[str]:
    """The packages that are ready in the cache, and whatever else was left there, less the locks."""
    folder = yard.folder / "cache"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [name for name in names if name not in (".locks", ".downloads")]


def built_app(yard: NodeYard, *, sandbox: str = "auto", **policy):
    return yard.app("node:pkg", plugin_cache_dir="cache", policy=policy, sandbox={"mode": sandbox})


@pytest.fixture
def only_node_and_bash(tmp_path_factory, monkeypatch):
    """One folder on PATH, where tools cannot write, with nothing else in it."""
    folder = tmp_path_factory.mktemp("bin")
    for program in ("node", "bash"):
        (folder / program).symlink_to(need(program))
    monkeypatch.setenv("PATH", str(folder))


async def test_a_package_without_dependencies_and_build_is_used_where_it_is_and_needs_no_npm(yard, only_node_and_bash):
    yard.package({"index.js": "export default { run: () => import.meta.url };"}, TOOL, **MODULE)
    async with built_app(yard) as app:
        assert await call(app) == (yard.folder / "pkg" / "index.js").as_uri()
    assert cached(yard) == []


async def test_typescript_is_built_by_the_packages_own_script_in_a_copy_once_for_each_content(yard):
    need("npm")
    folder = typed(yard)
    async with built_app(yard) as app:
        assert codes(app) == []
        text = await call(app)
    assert text.startswith(f"built file://{yard.folder}/cache/probes-")
    assert not (folder / "dist").exists(), "the author's folder is left alone"
    (first,) = cached(yard)
    async with built_app(yard) as app:
        assert await call(app) == text
    assert cached(yard) == [first]
    yard.file("pkg/src/index.ts", TYPED.replace("built ", "built anew "))
    async with built_app(yard) as app:
        assert (await call(app)).startswith("built anew ")
    assert len(cached(yard)) == 2


async def test_dependencies_are_installed_in_the_copy(yard):
    need("npm")
    files = {
        "index.js": "import shout from 'shout'; export default { run: ({ value }) => shout(value) };",
        "vendor/shout/package.json": json.dumps({"name": "shout", "version": "1.0.0", "main": "main.js"}),
        "vendor/shout/main.js": "module.exports = (text) => text.toUpperCase();",
    }
    folder = yard.package(files, TOOL, dependencies={"shout": "file:./vendor/shout"}, **MODULE)
    async with built_app(yard) as app:
        assert codes(app) == []
        assert await call(app, arguments={"value": "hey"}) == "HEY"
    assert not (folder / "node_modules").exists()
    async with yard.app("node:pkg", plugin_cache_dir="other", policy={"node_install_deps": False}) as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["file"]) == ("node_import", str(folder / "index.js"))
        assert "Cannot find package 'shout'" in problem["detail"]


async def test_what_is_installed_already_is_used_where_nothing_may_be_installed(yard):
    need("npm")
    typed(yard, dependencies={"shout": "*"})
    yard.file("pkg/node_modules/shout/index.js", "module.exports = 'installed ';")
    yard.file("pkg/src/index.ts", "import text from 'shout';\nexport default { run: () => text };\n")
    async with built_app(yard, node_install_deps=False) as app:
        assert codes(app) == []
        assert await call(app) == "installed "


async def test_install_scripts_run_only_where_they_are_allowed(yard):
    need("npm")
    log = yard.folder / "log"
    dependency = {"name": "dep", "version": "1.0.0", "scripts": {"postinstall": f"echo ran >> '{log}'"}}
    files = {"index.js": ECHO, "vendor/dep/package.json": json.dumps(dependency)}
    scripts = {"postinstall": f"echo ran >> '{log}'"}
    yard.package(files, TOOL, dependencies={"dep": "file:./vendor/dep"}, scripts=scripts, **MODULE)
    async with built_app(yard, sandbox="off", node_allow_install_scripts=False) as app:
        assert await call(app) == "echo nothing"
    assert yard.log() == []
    async with built_app(yard, sandbox="off") as app:
        assert await call(app) == "echo nothing"
    assert "ran" in yard.log()


async def test_the_policys_build_command_takes_the_place_of_the_script(yard):
    typed(yard)
    command = "mkdir dist && echo \"export default { run: () => 'by command' };\" > dist/index.js"
    async with built_app(yard, node_build_command=command) as app:
        assert codes(app) == []
        assert await call(app) == "by command"


async def test_no_build_where_policy_forbids_it(yard):
    folder = typed(yard)
    async with built_app(yard, node_build=False) as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], problem["detail"]) == ("node_entry_missing", "'dist/index.js' does not exist")
    assert (problem["file"], "node_build" in problem["hint"]) == (str(folder / "package.json"), True)
    assert problem["line"] > 1


async def test_a_build_that_fails_is_a_problem_with_its_last_words_and_leaves_nothing(yard):
    need("npm")
    yard.tool("other", run="echo other")
    typed(yard, scripts={"build": "node -e \"console.error('the reason'); process.exit(3)\""})
    async with yard.app("node:pkg", "bash:other.bash", plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["file"]) == ("node_build", str(yard.folder / "pkg" / "package.json"))
        assert "npm run build" in problem["detail"]
        assert "the reason" in problem["detail"]
        assert await call(app, "other") == "other\n", "the others work"
    assert cached(yard) == []


async def test_an_install_that_fails_is_a_problem(yard):
    need("npm")
    yard.package({"index.js": ECHO}, TOOL, dependencies={"gone": "file:./not-there.tgz"}, **MODULE)
    async with built_app(yard) as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], "npm install" in problem["detail"]) == ("node_install", True)
        assert "node_install_deps" in problem["hint"]
        assert problem["detail"].startswith("what it depends on may not be downloaded (allow_remote is false)")
        assert '{"allow_remote": true}' in problem["hint"]
    assert cached(yard) == []


async def test_a_cache_that_cannot_be_written_is_a_problem(yard):
    need("npm")
    typed(yard)
    yard.file("cache", "a file")
    async with built_app(yard) as app:
        assert codes(app) == ["plugin_cache"]


async def test_a_link_that_leads_out_of_a_package_is_not_copied(yard):
    typed(yard)
    (yard.folder / "pkg" / "passwd").symlink_to("/etc/passwd")
    async with built_app(yard) as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["file"]) == ("plugin_outside", str(yard.folder / "pkg" / "passwd"))
    assert cached(yard) == []


@pytest.mark.parametrize("package", [
    {"packageManager": "bun@1.0.0"},
    {"packageManager": "npm@10.0.0"},
])  # fmt: skip
async def test_a_manager_that_is_not_there_is_a_problem(yard, only_node_and_bash, package):
    typed(yard, **package)
    async with built_app(yard) as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], "node_package_manager" in problem["hint"]) == ("node_package_manager", True)
        assert problem["line"] > 1


def facts(**fields):
    document = Document(Path("/p/package.json"), "{}", {"name": "p", **fields})
    return facts_of(document, Path("/p"), [], [])


@pytest.mark.parametrize(
    ("policy", "own", "files", "manager"),
    [
        (None, None, (), "npm"),
        (None, None, ("package-lock.json",), "npm"),
        (None, None, ("pnpm-lock.yaml", "yarn.lock"), "pnpm"),
        (None, None, ("yarn.lock", "package-lock.json"), "yarn"),
        (None, "yarn@4.1.0+sha224.abc", ("pnpm-lock.yaml",), "yarn"),
        (None, "pnpm@9", (), "pnpm"),
        ("npm", "yarn@4.1.0", ("pnpm-lock.yaml",), "npm"),
        ("yarn", None, (), "yarn"),
        ("pnpm", "bun@1", (), "pnpm"),
    ],
)
def test_the_manager_is_the_policys_then_the_packages_then_that_of_a_lock_file(policy, own, files, manager):
    chosen = choose_manager(facts(packageManager=own), NodeModuleSettings(node_package_manager=policy), files)
    assert chosen == manager


BOTH = {"dependencies": {"a": "*"}, "devDependencies": {"b": "*"}, "scripts": {"build": "tsc"}}


@pytest.mark.parametrize(
    ("fields", "files", "policy", "commands"),
    [
        ({}, (), {}, []),
        ({"devDependencies": {"b": "*"}}, (), {}, []),
        ({"dependencies": {}}, (), {}, []),
        ({"dependencies": {"a": "*"}}, (), {}, ["npm install --no-audit --no-fund --omit=dev"]),
        ({"optionalDependencies": {"a": "*"}}, (), {"install_deps": False}, []),
        (BOTH, ("package-lock.json",), {}, ["npm ci --no-audit --no-fund --include=dev", "npm run build"]),
        (BOTH, (), {"build": False}, ["npm install --no-audit --no-fund --omit=dev"]),
        (BOTH, (), {"install_deps": False}, ["npm run build"]),
        (BOTH, (), {"allow_install_scripts": False},
         ["npm install --no-audit --no-fund --include=dev --ignore-scripts", "npm run build"]),
        (BOTH, ("pnpm-lock.yaml",), {}, ["pnpm install --frozen-lockfile --prod=false", "pnpm run build"]),
        (BOTH, (), {"package_manager": "pnpm", "build": False, "allow_install_scripts": False},
         ["pnpm install --no-frozen-lockfile --prod --ignore-scripts"]),
        (BOTH, ("yarn.lock",), {},
         ["yarn install --non-interactive --production=false --frozen-lockfile", "yarn run build"]),
        ({**BOTH, "packageManager": "yarn@4.0.0"}, ("yarn.lock",), {"allow_install_scripts": False},
         ["yarn install --immutable --mode=skip-build", "yarn run build"]),
        ({**BOTH, "packageManager": "yarn@4.0.0"}, (), {"build": False}, ["yarn install --no-immutable"]),
        ({"scripts": {"build": "tsc"}, "packageManager": "yarn@4.0.0"}, ("yarn.lock",), {},
         ["yarn install --immutable", "yarn run build"]),
        ({"scripts": {"build": "tsc"}}, ("yarn.lock",), {}, ["yarn run build"]),
        (BOTH, (), {"install_deps": False, "build_command": "make all"}, ["sh -c make all"]),
        ({"scripts": {"build": " "}}, (), {}, []),
    ],
)  # fmt: skip
def test_the_commands_follow_from_package_and_policy(fields, files, policy, commands):
    package, decided = facts(**fields), NodeModuleSettings(**{f"node_{key}": value for key, value in policy.items()})
    name = str(choose_manager(package, decided, files))
    version = "4.0.0" if "packageManager" in fields else "1.22.0"
    manager = Manager(name=name, program=(f"/bin/{name}",), version=version)
    steps = build_steps(package, decided, files, manager if needs_manager(package, decided) else None)
    assert [step.command for step in steps] == commands


DESCRIPTORS = {
    "no tools": ({"agent": {}}, "node_package", "'agent.tools' must be a list"),
    "an empty list": ({"agent": {"tools": []}}, "node_package", "at least one entry"),
    "no agent": ({"agent": None}, "node_package", "'agent.tools' must be a list"),
    "an entry without id": ({"agent": {"tools": [{"entry": "index.js"}]}}, "node_package", "needs 'id' and 'entry'"),
    "an export that is no text": ({"agent": {"tools": [{**TOOL, "export": 3}]}}, "node_package", "both strings"),
    "twice the same": ({"agent": {"tools": [TOOL, TOOL]}}, "node_package", "declared twice"),
    "a module outside": ({"agent": {"tools": [{"id": "probe", "entry": "../out.js"}]}}, "plugin_outside", "outside"),
    "an absolute module": ({"agent": {"tools": [{"id": "probe", "entry": "/etc/x.js"}]}}, "plugin_outside", "outside"),
    "a missing module": ({"agent": {"tools": [{"id": "a", "entry": "no.js"}]}}, "node_entry_missing", "'no.js'"),
    "a missing export": ({"agent": {"tools": [{**TOOL, "export": "nope"}]}}, "node_export", "no export 'nope'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DESCRIPTORS)
async def test_each_fault_of_a_descriptor_is_a_problem_with_its_place(yard, kind):
    fields, code, words = DESCRIPTORS[kind]
    yard.file("out.js", ECHO)
    folder = yard.package({"index.js": ECHO}, **{**MODULE, **fields})
    async with yard.app("node:pkg") as app:
        (problem,) = app.get_config_errors()
    assert (problem["type"], words in problem["detail"], bool(problem["hint"])) == (code, True, True), problem
    assert problem["file"] == str(folder / ("index.js" if code == "node_export" else "package.json"))


async def test_a_descriptor_that_is_no_json_is_a_problem_at_its_line(yard):
    folder = yard.package({"index.js": ECHO}, TOOL)
    (folder / "package.json").write_text('{\n "agent": {"tools": [],}\n}')
    async with yard.app("node:pkg") as app:
        (problem,) = app.get_config_errors()
    assert (problem["file"], problem["line"]) == (str(folder / "package.json"), 2)


MODULES = {
    "a syntax error": ("let x = ;\n", "node_import", "Unexpected token", 1),
    "an error of its own": ("\nthrow new Error('at load');\n", "node_import", "at load", 2),
    "an import of nothing": ("import 'nothing-here';\n", "node_import", "Cannot find package", None),
    "no export": ("const x = 1;\n", "node_export", "no default export", None),
    "no function": ("export default { description: 'x' };\n", "node_shape", "no function 'run' or 'execute'", None),
    "a class that breaks": ("export default class { x = y(); run() {} }", "node_shape", "y is not defined", 1),
    "a description that is none": ("export default { description: 3, run() {} };", "node_shape", "'description'", None),
    "parameters that are none": ("export default { parameters: { type: 7 }, run() {} };", "node_parameters", "", None),
    "keys that are none": ("export default { configKeys: 'x', run() {} };", "node_shape", "'configKeys'", None),
    "an exit": ("process.exit(4);\n", "node_import", "process.exit(4) was called", 1),
    "an end": ("process.abort();\n", "node_host", "signal 6", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", MODULES)
async def test_a_module_that_does_not_load_is_a_named_problem_and_the_others_work(yard, kind):
    text, code, words, line = MODULES[kind]
    yard.file("bad.mjs", text)
    yard.module("return 'fine'")
    async with yard.app("node:bad.mjs", "node:probe.mjs") as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], words in problem["detail"], problem["file"]) == (
            code,
            True,
            str(yard.folder / "bad.mjs"),
        )
        assert line is None or problem["line"] == line
        assert await call(app) == "fine"


async def test_a_faulty_tool_does_not_take_the_rest_of_its_package_with_it(yard):
    bad = {"id": "bad", "entry": "bad.js"}
    yard.package({"index.js": ECHO, "bad.js": "throw new Error('no')"}, bad, TOOL, **MODULE)
    async with yard.app("node:pkg") as app:
        assert codes(app) == ["node_import"]
        assert await call(app) == "echo nothing"


async def test_a_module_that_hangs_while_it_loads_is_a_problem(yard):
    yard.module("return 1", top="for (;;) {}")
    async with yard.app("node:probe.mjs", policy={"node_timeout_seconds": 2}) as app:
        (problem,) = app.get_config_errors()
        assert problem["type"] == "node_load_timeout"
        assert problem["detail"] == "the modules did not load within 2 seconds"
        assert not children_of(app._lifecycle.loaded.host.children("look").keeper_pid)


def children_of(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


@pytest.mark.parametrize(
    ("plugin", "code"),
    [
        ("node:missing.mjs", "node_file_missing"),
        ({"node_tool": {"path": "missing"}}, "plugin_missing"),
        ({"node_tool": {"path": "empty"}}, "node_package"),
        ({"node_tool": {"path": "pkg", "id": "other"}}, "node_package"),
        ({"node_tool": {"path": "pkg", "entry": "../out.js"}}, "plugin_outside"),
    ],
)
async def test_what_is_not_there_is_a_problem(yard, plugin, code):
    yard.package({"index.js": ECHO}, TOOL, **MODULE)
    yard.file("out.js", ECHO)
    (yard.folder / "empty").mkdir()
    async with yard.app(plugin) as app:
        assert codes(app) == [code]
        assert app.tools() == []


async def test_four_processes_build_a_package_once_and_all_of_them_can_use_it(yard):
    need("npm")
    log = BUILD.replace("{more}", f"fs.appendFileSync({json.dumps(str(yard.folder / 'log'))}, 'built\\n');")
    typed(yard, scripts={"build": "node log.cjs && node build.cjs"})
    yard.file("pkg/log.cjs", log)
    yard.config("node:pkg", plugin_cache_dir="cache", sandbox={"mode": "off"})  # so that a build can tell of itself
    words = [TOOLYARD, "--sessions", yard.folder / "s", "call", "probe", "{}"]
    running = [
        await asyncio.create_subprocess_exec(
            *map(str, words),
            cwd=yard.folder,
            env={**os.environ, "XDG_CACHE_HOME": str(yard.folder / f"xdg{number}")},
            stdout=asyncio.subprocess.PIPE,
        )
        for number in range(4)
    ]
    outputs = [await asyncio.wait_for(process.communicate(), PATIENCE) for process in running]
    assert [out.decode().startswith("built file://") for out, _ in outputs] == [True] * 4
    assert yard.log() == ["built"]
    assert len(cached(yard)) == 1


async def test_a_build_that_is_killed_halfway_leaves_nothing_that_is_taken_for_a_package(yard):
    need("npm")
    here = Signpost(yard.folder / "here")
    slow = f"fs.writeFileSync('dist/index.js', 'half'); {TELL % (yard.folder / 'here')}"
    slow += " if (!fs.existsSync('../../../go')) setInterval(() => {}, 1000);"
    typed(yard, scripts={"build": "node slow.cjs && node build.cjs"})
    yard.file("pkg/slow.cjs", BUILD.replace("{more}", slow))
    config = yard.config("node:pkg", plugin_cache_dir="cache")
    process = await asyncio.create_subprocess_exec(
        str(TOOLYARD), "--config", str(config), "tools", stdout=asyncio.subprocess.DEVNULL
    )
    builder = int(await asyncio.to_thread(here.wait))
    process.send_signal(signal.SIGKILL)
    await asyncio.wait_for(process.wait(), PATIENCE)
    await yard.until_gone(builder)
    assert all(name.startswith(".") for name in cached(yard)), "no package"
    yard.file("go", "")
    async with built_app(yard) as app:
        assert codes(app) == []
        assert (await call(app)).startswith("built ")
    assert [name[0] for name in cached(yard)] == ["p"], "nothing but the package is left"
    here.close()


async def test_cancelling_a_start_ends_the_build_and_leaves_nothing(yard):
    need("npm")
    here = Signpost(yard.folder / "here")
    slow = f"{TELL % (yard.folder / 'here')} setInterval(() => {{}}, 1000);"
    typed(yard, scripts={"build": "node slow.cjs"})
    yard.file("pkg/slow.cjs", BUILD.replace("{more}", slow))
    app = built_app(yard)
    opening = asyncio.ensure_future(app.__aenter__())
    builder = int(await asyncio.to_thread(here.wait))
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not is_alive(builder)
    assert cached(yard) == []
    await app.__aexit__(None, None, None)
    here.close()


async def test_a_changed_package_takes_effect_at_the_next_call_and_a_call_under_way_ends_as_it_began(yard):
    first = "import { value } from './value.js'; import { existsSync } from 'node:fs';\n"
    slow = "while (!existsSync('go')) await new Promise((go) => setTimeout(go, 10));"
    run = f"async run(args, context) {{ context.write('begun'); if (args.value) {{ {slow} }} return value }}"
    folder = yard.package(
        {"index.js": f"{first}export default {{ {run} }};", "value.js": "export const value = 'old';"}, TOOL, **MODULE
    )
    async with yard.app("node:pkg", working_directory=str(yard.folder)) as app:
        begun = asyncio.Event()

        def watch(event):
            if isinstance(event, OutputChunk):
                begun.set()

        slow_call = asyncio.ensure_future(app.call_tool("probe", {"value": "slow"}, on_event=watch))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        (folder / "value.js").write_text("export const value = 'new';")
        assert await call(app) == "new"
        yard.file("go", "")
        assert (await slow_call).text == "old"
        (folder / "package.json").write_text(
            json.dumps({"type": "module", "agent": {"tools": [{**TOOL, "id": "renamed"}]}})
        )
        assert await call(app, "renamed") == "new"
        assert (await app.call_tool("probe", {})).failure == "unknown_tool"
        shutil.rmtree(folder)
        assert (await app.call_tool("renamed", {})).failure == "unknown_tool"
        # Which of the two depends on whether a sandbox that guarded it had to be built anew.
        assert codes(app) in (["plugin_missing"], ["node_file_missing"])


async def test_a_broken_edit_keeps_what_worked_and_says_so(yard):
    folder = yard.package({"index.js": ECHO}, TOOL, **MODULE)
    async with yard.app("node:pkg") as app:
        assert await call(app) == "echo nothing"
        for name, text in (("index.js", "let x = ;"), ("index.js", "export const x = 1;"), ("package.json", "{")):
            good = (folder / name).read_text()
            (folder / name).write_text(text)
            assert await call(app) == "echo nothing"
            assert len(codes(app)) == 1
            (folder / name).write_text(good)
        (folder / "index.js").write_text(ECHO.replace("echo ", "mended "))
        assert await call(app) == "mended nothing"
        assert codes(app) == []


async def test_a_second_start_spawns_nothing_until_a_tool_is_called(yard):
    yard.package({"index.js": ECHO}, TOOL, **MODULE)
    yard.module("return 1", name="single")
    plugins = ("node:pkg", "node:single.mjs")
    policy = {"allow_bash_tools": False}
    async with yard.app(*plugins, policy=policy) as app:
        specs = app.tool_specs()
    async with yard.app(*plugins, policy=policy) as app:
        assert app._lifecycle.loaded.host.children("work").keeper_pid is None
        assert app.tool_specs() == specs
        assert await call(app) == "echo nothing"


async def test_a_reload_keeps_hosts_whose_conditions_are_the_same(yard):
    yard.module("return process.pid")
    async with yard.app("node:probe.mjs") as app:
        pid = await call(app)
        yard.config("node:probe.mjs", other="setting")
        assert await call(app) == pid
        yard.config("node:probe.mjs", policy={"node_timeout_seconds": 30})
        assert await call(app) != pid
        await yard.until_gone(pid)
        yard.config()
        assert (await app.call_tool("probe", {})).failure == "unknown_tool"


async def test_a_reload_that_needs_new_hosts_lets_calls_under_way_come_to_their_end(yard):
    yard.module(
        "const { appendFileSync, existsSync } = await import('node:fs'); const at = args.value;"
        "if (at) { appendFileSync(`${at}/log`, 'begun\\n');"
        " while (!existsSync(`${at}/go`)) await new Promise((go) => setTimeout(go, 10)) }"
        "return process.pid"
    )
    arguments = {"value": str(yard.folder)}
    async with yard.app("node:probe.mjs") as app:
        slow = asyncio.ensure_future(app.call_tool("probe", arguments))
        await yard.until_logged()
        yard.config("node:probe.mjs", policy={"node_timeout_seconds": 100})
        new = await call(app)
        yard.file("go", "")
        old = await slow
        assert (old.failure, old.text == new) == (None, False), old
        await yard.until_gone(old.text)
        yard.config("node:probe.mjs", policy={"node_timeout_seconds": 110})
        (yard.folder / "go").unlink()
        slow = asyncio.ensure_future(app.call_tool("probe", arguments))
        await yard.until_logged(2)
        yard.config("node:probe.mjs", policy={"node_timeout_seconds": 120})
        await call(app)
    assert (await slow).failure == "crash", "with the application all ends"


async def test_a_call_that_comes_late_to_a_package_that_has_changed_leaves_no_process(yard):
    yard.module("return process.pid")
    async with yard.app("node:probe.mjs") as app:
        (old,) = app.tools()
        await call(app)
        yard.module("return 'new'")
        assert await call(app) == "new"
        context = CallContext(call_id="late", cwd=yard.folder, config={}, output_limit=1000)
        late = await old.run(old.plan({}, context), context)
        assert late.text == "new", "the file is what it is now"
        await yard.until(lambda: old._hosts.running == 0)
        (new,) = app.tools()
        yard.config()
        await app.reload()
        gone = await new.run(new.plan({}, context), context)
        assert (gone.failure, "not loaded any more" in gone.text) == ("crash", True)


async def test_what_cannot_even_start_a_process_is_a_problem(yard, monkeypatch):
    yard.module("return 1")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    async with yard.app("node:probe.mjs", policy={"allow_bash_tools": False}) as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], "the process keeper ended unexpectedly" in problem["detail"]) == ("node_host", True)


async def test_a_package_of_a_repository_is_loaded_from_wherever_it_was_fetched_to(yard):
    origin = repository(yard.folder / "origin", {})
    yard.package({"index.js": ECHO}, TOOL, folder="origin/tools", **MODULE)
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "tools")
    git(origin, "tag", "v1")
    good, bad = ({"node_tool": {"git": str(origin), "ref": ref, "subdirectory": "tools"}} for ref in ("v1", "v2"))
    async with yard.app(good, bad, plugin_cache_dir="cache") as app:
        (problem,) = app.get_config_errors()
        assert (problem["type"], problem["line"]) == ("plugin_ref_missing", 10)
        assert [spec.name for spec in app.tool_specs()] == ["probe"]
        assert app.origin("probe").startswith(str(yard.folder / "cache"))
        assert app.origin("probe").endswith("/tree/tools/package.json")


def test_python_itself_is_not_asked_for_node(tmp_path):
    """Start-up stays light where no Node tool is configured."""
    import subprocess

    (tmp_path / "toolyard.json").write_text('{"plugins": ["shell:command"]}')
    code = (
        "import asyncio, sys; from toolyard import AgentApplication\n"
        "async def main():\n async with AgentApplication('toolyard.json', 's'): pass\n"
        "asyncio.run(main()); print(sorted(name for name in sys.modules if 'toolyard.kinds.node' in name))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    node = "toolyard.kinds.node_module"
    assert ran.stdout == f"{[node, f'{node}.kind', f'{node}.reference', f'{node}.settings']}\n", (
        "its spelling, and nothing else"
    )


async def test_another_time_limit_does_not_build_a_package_again(yard):
    typed(yard)
    texts = []
    for seconds in (60, 61):
        async with yard.app("node:pkg", policy={"node_timeout_seconds": seconds}, plugin_cache_dir="cache") as app:
            texts.append(await call(app))
    assert texts[0] == texts[1]


async def test_a_module_may_be_a_link_and_a_pipe_is_none(yard):
    yard.module("return 'by a link';", name="real")
    (yard.folder / "probe.mjs").symlink_to("real.mjs")
    os.mkfifo(yard.folder / "pipe.mjs")
    async with yard.app("node:probe.mjs", "node:pipe.mjs") as app:
        assert codes(app) == ["node_file_missing"]
        assert (await app.call_tool("probe", {})).text == "by a link"


YARN = """#!/usr/bin/env bash
# As the first yarn does: it asks for its version first, and stops at settings that it may not read.
set -euo pipefail
[ "$1" = --version ] && { echo 1.22.22; exit; }
node -e 'try { require("fs").readFileSync(process.env.HOME + "/.npmrc") } catch (e) { if (e.code != "ENOENT") throw e }'
[ "$*" = "run build" ]
echo "export default { description: 'd', run: () => 'built' }" >index.js
"""


async def test_yarn_builds_a_package_in_the_sandbox(yard, monkeypatch, tmp_path_factory):
    need_backend("bubblewrap", "landlock")
    home, programs = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("programs")
    (home / ".npmrc").write_text("//registry.example/:_authToken=secret\n")
    (programs / "yarn").write_text(YARN)
    (programs / "yarn").chmod(0o755)
    yard.package({"yarn.lock": ""}, TOOL, **MODULE, scripts={"build": "x"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.chdir(yard.folder)
    async with yard.app("node:pkg", sandbox={"readable": [str(programs)]}) as app:
        assert app.get_config_errors() == []
        assert await call(app) == "built"


COREPACK = """#!/usr/bin/env bash
# As corepack does of a yarn that its registry has not signed.
[ "${COREPACK_INTEGRITY_KEYS-}" = 0 ] || { echo "Error: No compatible signature found in metadata" >&2; exit 1; }
[ "$2" = --version ] && { echo 1.22.22; exit; }
echo "export default { description: 'd', run: () => 'built' }" >index.js
"""


async def test_corepack_may_be_told_to_trust_a_registry_that_signs_nothing(yard, monkeypatch, tmp_path_factory):
    programs = tmp_path_factory.mktemp("programs")
    (programs / "corepack").write_text(COREPACK)
    (programs / "corepack").chmod(0o755)
    for name in ("node", "bash", "env"):
        (programs / name).symlink_to(shutil.which(name))
    yard.package({"yarn.lock": ""}, TOOL, **MODULE, scripts={"build": "x"})
    monkeypatch.setenv("PATH", str(programs))
    async with yard.app("node:pkg", sandbox={"mode": "off"}) as app:
        (told,) = app.get_config_errors()
        assert "No compatible signature found" in told["detail"]
        assert told["hint"].startswith("install the package manager itself, or a newer corepack, or set COREPACK_")
    monkeypatch.setenv("COREPACK_INTEGRITY_KEYS", "0")
    async with yard.app("node:pkg", sandbox={"mode": "off"}) as app:
        assert app.get_config_errors() == []
        assert await call(app) == "built"

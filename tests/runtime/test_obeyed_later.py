"""What tools leave behind, or change in the right moment, is not obeyed outside: real attacks on an application."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support import need, need_backend
from toolyard.app import AgentApplication
from toolyard.files.accepted import accept
from toolyard.files.door import FileRefused
from toolyard.permissions.verdict import answer_always
from users import ROOT, as_other
from yard import Yard, inhabit

pytestmark = pytest.mark.anyio

GREET = '''from toolyard.plugins.contract import tool
{more}

@tool
def greet() -> str:
    """Greet."""
    return "{text}"
'''


@pytest.fixture
def yard(tmp_path, monkeypatch) -> Yard:
    need_backend("bubblewrap", "bubblewrap-pids")
    return Yard(inhabit(tmp_path, monkeypatch) / "project")


async def shell(app, command: str) -> str:
    return (await app.call_tool("shell", {"command": command})).text


def greet(text: str = "hello", more: str = "") -> str:
    return GREET.format(text=text, more=more)


def save(path: Path, text: str) -> None:
    """As many editors do: beside the file, and then into its place."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    beside.rename(path)


async def test_rules_that_are_replaced_while_something_runs_are_not_obeyed_until_a_person_accepts_them(yard):
    """A job that waits for the moment in which the owner saves the file, and then writes it."""
    config = yard.config("shell:session")
    text = config.read_text()
    job = f"while ! sed -i 's/shell:session/shell:command/' {config} 2>/dev/null; do :; done"
    async with yard.open(config) as app:
        await app.call_tool("bash", {"command": f"({job}) >/dev/null 2>&1 &"})
        save(config, text)
        # What became of the saved file may be told with this result already, or with a later one.
        assert (await app.call_tool("bash", {"command": "echo still"})).text.startswith("still\n")
        (problem,) = app.get_config_errors()
        assert (problem["type"], "tools could write it" in problem["detail"]) == ("config_not_accepted", True)
        assert problem["hint"].endswith(f"toolyard trust accept {config}")
    async with yard.open(config) as again:
        assert [one["type"] for one in again.get_config_errors()] == ["config_not_accepted"], "nor by a later start"
        assert list(again.tools()) == []
        accept(str(config))
        tool = "shell" if "shell:command" in config.read_text() else "bash"  # which of the two wrote last
        assert "accepted\n" in (await again.call_tool(tool, {"command": "echo accepted"})).text
        assert again.get_config_errors() == []


async def test_an_edit_while_nothing_runs_is_the_owner_s_and_so_is_one_in_place(yard):
    config = yard.config("shell:command")
    async with yard.open(config) as app:
        await shell(app, "true")
        save(config, config.read_text().replace("{", '{"something": 1,', 1))
        await shell(app, "true")
        assert [one["type"] for one in app.get_config_errors() if one["severity"] == "error"] == []
    config = yard.config("shell:session")
    async with yard.open(config) as app:
        await app.call_tool("bash", {"command": "sleep 100 &"})
        config.write_text(config.read_text().replace("{", '{"other": 1,', 1))
        await app.call_tool("bash", {"command": "true"})
        assert [one["type"] for one in app.get_config_errors() if one["severity"] == "error"] == []


async def test_a_configuration_that_a_tool_made_further_down_is_not_obeyed(yard, monkeypatch):
    config = yard.config("shell:command")
    made = Path.cwd() / "below" / "toolyard.json"
    async with yard.open(config) as app:
        await shell(app, f"mkdir below; cp {config} {made}")
    async with yard.open(made) as app:
        assert [one["type"] for one in app.get_config_errors()] == ["config_not_accepted"]


async def test_a_plugin_that_is_replaced_while_something_runs_is_not_run_until_it_is_accepted(yard):
    file = yard.folder / "greet.py"
    yard.file("greet.py", greet())
    config = yard.config("shell:session", "path:greet.py")
    job = f"while ! echo 'open({str(yard.folder / 'ran')!r}, \"w\")' >> {file}; do :; done"
    async with yard.open(config) as app:
        await app.call_tool("bash", {"command": f"({job}) >/dev/null 2>&1 &"})
        save(file, greet("hello again"))
        assert (await app.call_tool("greet", {})).text.partition("\n")[0] == "hello"
        assert "plugin_not_accepted" in [one["type"] for one in app.get_config_errors()]
        assert not (yard.folder / "ran").exists()
        file.write_text(greet("accepted"))
        accept(str(file))
        assert (await app.call_tool("greet", {})).text.partition("\n")[0] == "accepted"


async def test_what_a_plugin_of_one_file_imports_cannot_be_written_or_made(yard):
    yard.file("greet.py", greet(more="import helper\nimport msgspec\n"))
    yard.file("helper.py", "import further\n")
    yard.file("further.py", "")
    yard.config("shell:command", "path:greet.py")
    evil = f"open({str(yard.folder / 'ran')!r}, 'w')"
    async with yard.open(yard.folder / "toolyard.json") as app:
        script = f"""cd {yard.folder}; for file in helper.py further.py __pycache__/helper.cpython-311.pyc; do
            echo "{evil}" >> $file; done; echo "{evil}" > msgspec.py; mkdir greet; echo "{evil}" > greet/__init__.py"""
        said = await shell(app, script)
    assert said.count("Read-only file system") == 3
    assert sorted(path.name for path in yard.folder.glob("*.from-sandbox")) == [
        "greet.from-sandbox",
        "msgspec.py.from-sandbox",
    ]
    async with yard.open(yard.folder / "toolyard.json") as app:
        assert (await app.call_tool("greet", {})).text == "hello"
    assert not (yard.folder / "ran").exists()


@pytest.mark.parametrize(
    "entry", ["paht:greet.py", {"path": "greet.py", "entri": "x"}, {"python": {"file": "greet.py"}}]
)
async def test_what_a_faulty_entry_means_cannot_be_written_either(yard, entry):
    yard.file("greet.py", greet())
    yard.config("shell:command", entry)
    async with yard.open(yard.folder / "toolyard.json") as app:
        assert app.get_config_errors() != []
        assert "Read-only file system" in await shell(app, f"echo x >> {yard.folder}/greet.py")


async def test_nobody_inside_can_lock_the_record_of_what_runs(yard):
    config = yard.config("shell:command")
    sessions = yard.folder / "sessions"
    lock = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX); print('locked')"
    state = os.environ["XDG_STATE_HOME"]
    async with yard.open(config) as app:
        await shell(app, "true")
        for place in (sessions / "audit.head", sessions / "audit", Path(state) / "toolyard"):
            said = await shell(app, f'{sys.executable} -c "{lock}" {place}; ls {place}')
            assert "locked" not in said
        assert "No such file" in await shell(
            app, f"find {sessions} {state} -name '*.ndjson' -exec cat {{}} +; ls {sessions}/audit.head"
        )
    assert len(yard.audit()) >= 8


async def test_a_home_that_is_the_workspace_keeps_grants_and_programs(yard, monkeypatch):
    home = yard.folder.parent / "home"
    monkeypatch.chdir(home)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    (home / ".local/state/toolyard").mkdir(parents=True)
    (home / ".local/state/toolyard/permissions.json").write_text("{}")
    yard.config("shell:command")
    script = """echo x > .local/state/toolyard/permissions.json; mkdir -p .local/bin; echo x > .local/bin/git
        mkdir -p .local/lib/python3.11/site-packages; echo x > .local/lib/python3.11/site-packages/evil.pth
        mkdir bin; echo x > bin/git; echo x > .bashrc; mv .local elsewhere; echo x > notes"""
    async with yard.open(yard.folder / "toolyard.json") as app:
        await shell(app, script)
    assert (home / ".local/state/toolyard/permissions.json").read_text() == "{}"
    assert not [path for path in home.rglob("*") if path.name in ("evil.pth", ".bashrc", "elsewhere", "bin")]
    assert (home / "notes").exists()


async def test_a_folder_of_programs_that_is_the_workspace_stops_every_tool(yard, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path.cwd()}:{os.environ['PATH']}")
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        (problem,) = app.get_config_errors()
        result = await app.call_tool("shell", {"command": "touch made"})
    assert problem["type"] == "sandbox_root_in_reach"
    assert "take it off PATH" in problem["hint"]
    assert (result.failure, Path("made").exists()) == ("denied", False)


OWN_ENVIRONMENT = """
import asyncio, os, sys
from toolyard import AgentApplication

async def main():
    config = {"plugins": ["shell:command"], "permissions": {"preset": "trusted"}}
    async with AgentApplication(config, sys.argv[1]) as app:
        print([one for one in app.get_config_errors()])
        print((await app.call_tool("shell", {"command": sys.argv[2]})).text)

asyncio.run(main())
"""


async def test_an_application_that_runs_from_the_workspace_s_own_environment_is_not_changed_by_its_tools(yard):
    work = Path.cwd()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", ".venv"], check=True, timeout=60)
    (packages,) = work.glob(".venv/lib/python*/site-packages")
    ours = [str(ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))]
    (packages / "ours.pth").write_text("\n".join(ours))
    evil = f"import os; open({str(work.parent / 'ran')!r}, 'w')"
    plant = f"""echo "{evil}" > {packages}/evil.pth; echo "{evil}" > {packages}/sitecustomize.py
        printf '#!/bin/sh\\ntouch {work.parent}/ran\\n' > .venv/bin/git; chmod +x .venv/bin/git; rm .venv/bin/python3
        echo x >> .venv/pyvenv.cfg; mv .venv old; mkdir node_modules; echo in > in"""
    env = os.environ | {"PATH": f"{work}/.venv/bin:{os.environ['PATH']}", "VIRTUAL_ENV": f"{work}/.venv"}
    argv = [".venv/bin/python", "-c", OWN_ENVIRONMENT, str(work.parent / "sessions"), plant]
    ran = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout[:3]) == (0, "[]\n"), ran.stdout + ran.stderr
    assert (work / "in").exists()
    subprocess.run([".venv/bin/python", "-c", ""], env=env, check=True, timeout=60)
    subprocess.run(["git", "--version"], env=env, check=True, capture_output=True, timeout=60)
    assert not (work.parent / "ran").exists()


MOVE = """
import sys
from toolyard.process.sandbox.mount_points import move_unwanted
print(move_unwanted([sys.argv[1]]))
"""


@pytest.mark.parametrize("mode", [0o555, 0o000])
@pytest.mark.parametrize("what", ["file", "folder", "link", "pipe"])
def test_rules_are_moved_away_from_a_folder_that_a_tool_has_closed(tmp_path, mode, what):
    """As an ordinary user, whom the mode of a folder stops."""
    tmp_path = Path(os.path.realpath(tmp_path))
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_mode & 0o001 == 0 and os.access(above, os.W_OK):
            above.chmod(above.stat().st_mode | 0o001)
    work = tmp_path / "work"
    make = textwrap.dedent(f"""
        import os
        os.mkdir({str(work)!r}); path = {str(work / "toolyard.json")!r}
        {{"file": lambda: open(path, "w"), "folder": lambda: os.mkdir(path), "link": lambda: os.symlink("x", path),
          "pipe": lambda: os.mkfifo(path)}}[{what!r}]()
        os.chmod({str(work)!r}, {mode})
    """)
    tmp_path.chmod(0o777)
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    for source in (make, MOVE):
        argv = [*as_other(ordinary=True), sys.executable, "-c", source, str(work / "toolyard.json")]
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=env)
        assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip().endswith("toolyard.json.from-sandbox'}"), ran.stdout
    assert stat.S_IMODE(work.stat().st_mode) == mode, "and the folder is as it was"
    work.chmod(0o700)
    assert [path.name for path in work.iterdir()] == ["toolyard.json.from-sandbox"]


async def test_rules_that_a_tool_makes_in_a_folder_that_it_closes_are_moved_away(yard):
    config = yard.config("shell:command").rename(yard.folder / "other.json")
    async with yard.open(config) as app:
        await shell(app, "echo {} > toolyard.json; chmod 000 .")
    Path.cwd().chmod(0o755)
    assert [path.name for path in Path.cwd().iterdir()] == ["toolyard.json.from-sandbox"]


async def test_package_managers_read_nothing_that_a_tool_wrote(yard):
    need("npm")
    Path("package.json").write_text('{"name": "x", "version": "1.0.0", "scripts": {"hi": "echo hi"}}')
    yard.config("shell:command")
    script = """echo 'script-shell=/bin/false' > .npmrc; echo 'yarnPath: evil' > .yarnrc.yml; mkdir -p .cargo
        echo x > .cargo/config.toml; rmdir .npmrc; mv .cargo elsewhere; npm run hi"""
    async with yard.open(yard.folder / "toolyard.json") as app:
        assert "\nhi\n" in await shell(app, script), "and npm inside takes no offence"
        assert subprocess.run(["npm", "run", "hi"], capture_output=True, timeout=60).returncode == 0
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["package.json"]


async def test_ordinary_work_goes_on_beside_what_is_guarded(yard, monkeypatch):
    need("git")
    subprocess.run(["git", "init", "-q", "."], check=True)
    yard.config("shell:command")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    script = """set -e; echo a > a; git add -A; git -c user.name=x -c user.email=x@x commit -qm one
        git checkout -q -b b
        git init -q sub; git stash list; git status -s; git gc -q; git log --oneline | wc -l"""
    async with yard.open(yard.folder / "toolyard.json") as app:
        result = await app.call_tool("shell", {"command": script})
        assert result.data["stdout"].split() == ["??", "sub/", "1"], result.text
        # What the owner does meanwhile, but for writing git's configuration, is as ever.
        commit = "-c user.name=x -c user.email=x@x commit --allow-empty -qm two"
        for words in ("status -s", "add a", commit):
            subprocess.run(["git", *words.split()], check=True, capture_output=True)
    subprocess.run(["git", "config", "some.thing", "1"], check=True)


async def test_a_sessions_folder_to_which_a_tool_made_a_link_is_refused(yard):
    config = yard.config("shell:command")
    elsewhere = yard.folder.parent / "elsewhere"
    elsewhere.mkdir()
    async with yard.open(config) as app:
        await shell(app, f"ln -s {elsewhere} sessions; ln -s {elsewhere}/new later")
    for name in ("sessions", "later", "sessions/below"):
        with pytest.raises(FileRefused, match="is a link in a folder that tools can write"):
            AgentApplication(config, name)
    assert list(elsewhere.iterdir()) == []


async def test_a_lock_file_of_another_package_manager_opens_no_settings(yard):
    Path("package.json").write_text("{}")
    yard.config("shell:command")
    async with yard.open(yard.folder / "toolyard.json") as app:
        await shell(app, "touch yarn.lock pnpm-lock.yaml")
    async with yard.open(yard.folder / "toolyard.json") as app:
        said = await shell(app, "for file in .npmrc .yarnrc.yml; do echo evil > $file; cat $file; done")
    assert "evil" not in said
    assert not Path(".npmrc").exists()


async def test_what_a_call_elsewhere_printed_cannot_be_read(yard, monkeypatch):
    """Long outputs are kept, those of calls that reach further, too."""
    config = yard.config("shell:command")
    async with yard.open(config, approver=answer_always(allowed=True, reason="yes")) as app:
        result = await app.call_tool(
            "shell", {"command": "echo secret-of-one; seq 1 300000", "reach": "outside", "reason": "x"}
        )
    kept = [path for path in (yard.folder / "sessions" / "outputs").rglob("*") if path.is_file()]
    assert [path for path in kept if b"secret-of-one" in path.read_bytes()], result.text[-300:]
    (other := yard.folder.parent / "other").mkdir()
    monkeypatch.chdir(other)
    async with yard.open(config) as app:
        said = await shell(
            app, f"grep -r secret-of-one {yard.folder}/sessions; cat {' '.join(map(str, kept))}; echo done"
        )
    assert "done" in said
    assert "secret-of-one" not in said.replace("grep -r secret-of-one", "")


async def test_scripts_that_a_rule_lets_run_outside_cannot_be_changed_inside(yard, monkeypatch):
    """They run in the sandbox, and without one by a rule: then their text is what is obeyed outside."""
    need("node")
    (yard.folder / "single").mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(yard.folder)
    yard.tool("single", file="single/single.bash", run="cat")
    yard.tool("listed", file="several/listed.bash", run="cat")
    yard.file("several/helper.bash", "")
    yard.file("several/agent_plugin.json", '{"id": "several", "bash_tools": ["listed.bash"]}')
    yard.program("deploy", "cat")
    yard.manifest({"name": "deploy", "description": "x", "command": ["./tools/bin/deploy"]})
    yard.file("module.mjs", 'export default {description: "x", run: () => "x"};')
    yard.file("server.py", "raise SystemExit(1)\n")
    config = yard.config(
        "shell:command",
        *("bash:single/single.bash", "bash:several", "manifest:tools.json", "node:module.mjs"),
        {"mcp": {"command": [sys.executable, "./server.py"], "name": "s"}},
        policy={"allow_node_tools": True},
    )
    files = ["single/single.bash", "several/listed.bash", "several/helper.bash", "several/agent_plugin.json"]
    files += ["tools.json", "tools/bin/deploy", "module.mjs", "server.py"]
    before = {file: (yard.folder / file).read_bytes() for file in files}
    script = "for f in {}; do echo evil >> $f; rm -f $f; echo evil > x; mv -T x $f; done 2>/dev/null; touch worked"
    async with yard.open(config) as app:
        await shell(app, script.format(" ".join(files)))
    assert (yard.folder / "worked").exists(), "the folder around them can be written"
    assert {file: (yard.folder / file).read_bytes() for file in files} == before

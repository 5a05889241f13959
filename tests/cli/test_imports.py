"""Help comes at once, because a command imports what it needs and nothing else."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from support import CommandLine

START = {"toolyard", "toolyard.cli", "toolyard.cli.main", "toolyard.__main__"}
OPENING = START | {f"toolyard.cli.{name}" for name in ("application", "render", "running")}
REPORTING = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
HEAVY = {"asyncio", "concurrent", "http", "logging", "multiprocessing", "socket", "ssl", "subprocess"}


def imported(toolyard: CommandLine, *words: str) -> set[str]:
    """The modules that a command imports beyond those that it takes to ask."""

    def modules(program: str | Path) -> set[str]:
        ran = toolyard.run([sys.executable, "-c", REPORTING, program, *words])
        assert ran.code == 0, ran.err
        return set(ran.err.splitlines()[-1].split())

    return modules(toolyard.path) - modules(toolyard.file("nothing.py", ""))


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["--help"], START),
        (["--version"], START),
        (["tools", "--help"], OPENING | {"toolyard.cli.tools"}),
        (["call", "--help"], OPENING | {"toolyard.cli.call"}),
        (
            ["exec", "--help"],
            OPENING | {f"toolyard.{name}" for name in ("cli.call", "cli.exec", "core", "core.reach")},
        ),
        (["shell", "--help"], OPENING | {f"toolyard.cli.{name}" for name in ("call", "shell", "shell.command")}),
        (["init", "--help"], START | {"toolyard.cli.init", "toolyard.cli.render"}),
        (["config", "--help"], OPENING | {"toolyard.cli.config"}),
        (["config", "show", "--help"], OPENING | {"toolyard.cli.config"}),
        (["doctor", "--help"], OPENING | {"toolyard.cli.doctor", "toolyard.cli.doctor.command"}),
        (["tool", "--help"], START | {"toolyard.cli.render", "toolyard.cli.running", "toolyard.cli.tool"}),
    ],
)
def test_help_imports_the_command_line_and_click_and_nothing_heavy(toolyard: CommandLine, words, ours):
    modules = imported(toolyard, *words)
    packages = {name.partition(".")[0] for name in modules}
    assert {name for name in modules if name.partition(".")[0] == "toolyard"} == ours
    assert packages - set(sys.stdlib_module_names) == {"click", "toolyard"}
    assert packages & HEAVY == set()


def test_a_command_that_connects_to_nobody_imports_nothing_of_tls(toolyard: CommandLine):
    assert "_ssl" not in imported(toolyard, "exec", "true")


def test_writing_a_new_tool_starts_no_machinery(toolyard: CommandLine):
    modules = imported(toolyard, "tool", "new", "my_tool")
    rooms = {name.split(".")[1] for name in modules - START if name.startswith("toolyard.")}
    assert rooms == {"authoring", "cli", "config", "core", "files", "kinds", "plugins"}, "nothing that runs or calls"
    kinds = {name for name in modules if re.fullmatch(r"toolyard\.kinds\.\w+\.\w+", name)}
    written = {name for name in kinds if name.rpartition(".")[2] not in ("kind", "reference", "settings")}
    assert written == {"toolyard.kinds.bash_script.author", "toolyard.kinds.bash_script.scaffold"}


def test_the_first_keeper_starts_before_an_event_loop_is_imported(toolyard: CommandLine):
    """What both take then passes at the same time."""
    asking = """
import sys
from toolyard.cli.running import postpone
postpone("asyncio")
from toolyard.app import AgentApplication
application = AgentApplication({}, sys.argv[1], only="shell:command")
application.begin()
keeper = application._lifecycle._begun.processes.children["work"].keeper
print(keeper._starting is not None, "asyncio.base_events" in sys.modules)

async def main():
    async with application as app:
        print((await app.call_tool("shell", {"command": "echo hello"})).text)

import asyncio
asyncio.run(main())
"""
    ran = toolyard.run([sys.executable, "-c", asking, "sessions"])
    assert ran.out.startswith("True False\n"), ran.err
    assert "hello" in ran.out


def test_a_command_imports_nothing_that_takes_long_and_is_not_needed(toolyard: CommandLine):
    runs = (imported(toolyard, "exec", "true") for _ in range(5))
    # The first on a machine, and after a change of the sandbox, finds out what keeps tools in.
    modules = next(run for run in runs if "toolyard.process.sandbox.self_test.probe" not in run)
    rare = (".approval", ".arguments.notes", ".expansion.line", ".formats", ".host_questions", ".judge")
    assert {name for name in modules if name.startswith("toolyard.") and name.endswith(rare)} == set()
    assert modules & {"bz2", "difflib", "jsonschema", "lzma", "random", "shutil", "tempfile", "tree_sitter"} == set()


TLS_WHEN_NEEDED = """
import sys
from toolyard.cli.running import run_to_end

async def work():
    import asyncio
    print(sys.modules["ssl"].__class__.__name__)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, ssl=True), 0.2)
    except TimeoutError:
        print("a handshake was begun")
    import ssl
    print(ssl.__class__.__name__, ssl.create_default_context().__class__.__name__)
    return 0

run_to_end(work())
"""


def test_tls_is_imported_when_somebody_uses_it(toolyard: CommandLine):
    ran = toolyard.run([sys.executable, "-c", TLS_WHEN_NEEDED])
    assert ran.out.splitlines() == ["PostponedModule", "a handshake was begun", "module SSLContext"], ran.err

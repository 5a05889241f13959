"""Children in a sandbox: kept in, and in everything else like children outside of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from support import command_lines, need, need_backend, running, until
from toolyard.errors import CannotStart, NoSandbox
from toolyard.process.environment import exact_environment
from toolyard.process.limits import Limits
from toolyard.process.sandbox.layout import lay_out

pytestmark = pytest.mark.anyio
PATIENCE = 60.0
PLACEHOLDERS = [".cargo", ".git", ".npmrc", ".yarnrc.yml"]
"""Folders that keep others from being made, as long as a sandbox lasts; one is room for a repository."""


async def test_the_workspace_is_shared_and_the_rest_is_not(box, backend):
    (box.home / ".ssh").mkdir()
    (box.home / ".ssh" / "key").write_text("secret")
    (box.folder / "other").write_text("other")
    script = f"""echo made > made; cat given
    cat {box.home}/.ssh/key; cat {box.folder}/other; echo x > {box.home}/x; echo x > {box.folder}/x; true"""
    (box.workspace / "given").write_text("given")
    outcome = await box.bash(box.children(backend), script)
    assert outcome.stdout.text == "given"
    assert (box.workspace / "made").read_text() == "made\n"
    assert sorted(path.name for path in box.folder.iterdir()) == ["home", "other", "work"]
    assert sorted(path.name for path in box.home.iterdir()) == [".ssh"]


async def test_what_was_to_be_hidden_may_be_gone_when_the_sandbox_is_built(box, backend):
    """Under /etc bubblewrap cannot even make a place for it."""
    folder = box.home / "folder"
    folder.mkdir()
    (folder / "gone").write_text("x")
    children = box.children(backend, mode="auto", places={"also_hidden": (str(folder / "gone"),)})
    assert children.sandbox.layout.access(str(folder / "gone")) == "hidden"
    (folder / "gone").unlink()
    folder.rmdir()
    assert (await box.bash(children, "echo up")).stdout.text == "up\n"
    assert children.sandbox.choose().backend == backend


async def test_what_is_known_of_a_machine_is_chosen_by_once(box, backend):
    """A call of a tool that needs no sandbox would look through all that there are, each time."""
    children = box.children(backend)
    await children.choose_sandbox()
    assert children.sandbox.is_chosen
    assert children.sandbox.choose().backend == backend


async def test_exit_codes_signals_streams_and_input_are_a_child_s_own(box, backend):
    children = box.children(backend)
    outcome = await box.bash(children, "cat; echo err >&2; exit 7", stdin=b"in")
    assert (outcome.exit_code, outcome.stdout.text, outcome.stderr.text) == (7, "in", "err\n")
    assert (await box.bash(children, "kill -TERM $$")).signal == signal.SIGTERM


async def test_past_its_time_a_whole_tree_is_gone(box, backend):
    children = box.children(backend)
    mark = f"{os.getpid()}.{id(box)}"
    script = f"setsid sleep {mark} & (sleep {mark} & disown) ; exec sleep {mark}"
    outcome = await box.bash(children, script, timeout=0.5)
    assert outcome.timed_out
    assert command_lines(f"sleep {mark}") == []


async def test_a_child_has_time_to_end_by_itself(box, backend):
    outcome = await box.bash(
        box.children(backend), "trap 'echo bye; exit 3' TERM; echo up; sleep 60 & wait", timeout=1, grace=20
    )
    assert (outcome.timed_out, outcome.stdout.text) == (True, "up\nbye\n")


async def test_nothing_is_open_but_the_streams(box, backend):
    outcome = await box.python(box.children(backend), "import os; print(sorted(os.listdir('/proc/self/fd')))")
    assert outcome.stdout.text == "['0', '1', '2', '3']\n", "the fourth is the list itself"


REACH_KEEPER = """
import ctypes, os, sys
keeper = os.getppid()
opened = []
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, keeper, None, None) == 0:
    opened.append("ptrace")
for name in ("mem", "environ", "fd/3", "maps", "root", "cwd"):
    try:
        os.open(f"/proc/{keeper}/{name}", os.O_RDONLY)
        opened.append(name)
    except OSError:
        pass
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
here = ctypes.create_string_buffer(8)
vector = Vector(ctypes.addressof(here), 8)
if libc.process_vm_readv(keeper, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0) > 0:
    opened.append("process_vm_readv")
print(opened)
"""


async def test_nobody_inside_looks_into_the_keeper_which_speaks_with_the_application(box, backend):
    assert (await box.python(box.children(backend), REACH_KEEPER)).stdout.text == "[]\n"


async def test_with_process_numbers_of_its_own_nobody_inside_can_end_the_keeper(box):
    children = box.children("bubblewrap-pids")
    outcome = await box.bash(
        children, "echo $$ $PPID; kill -9 $PPID; kill -TERM $PPID; kill -STOP $PPID; echo on; ps ax"
    )
    first, on, *listed = outcome.stdout.text.splitlines()
    assert (first.split()[1], on) == ("1", "on")
    assert len(listed) <= 4, "nobody else's processes are seen"
    assert (await box.bash(children, "echo again")).stdout.text == "again\n"


async def test_temporary_files_stay_from_call_to_call_and_outside_nobody_sees_them(box, backend):
    children = box.children(backend)
    name = f"toolyard-test-{os.getpid()}-{id(box)}"
    await box.bash(children, f'echo kept > "${{TMPDIR:-/tmp}}/{name}"')
    assert (await box.bash(children, f'cat "${{TMPDIR:-/tmp}}/{name}"')).stdout.text == "kept\n"
    assert not Path("/tmp", name).exists()


async def test_variables_that_are_given_exactly_are_all_there_are_but_for_where_temporary_files_go(
    box, backend, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(box.home))
    monkeypatch.setenv("LANG", "C")
    ran = await box.bash(
        box.children(backend), "", argv=[need("env")], env=exact_environment(("PATH", "HOME", "UNSET"))
    )
    names = {line.partition("=")[0] for line in ran.stdout.text.splitlines()}
    without_own_folder = {"TMPDIR"} if backend == "landlock" else set()
    assert names == {"PATH", "HOME"} | without_own_folder


@pytest.mark.parametrize("backend", ["bubblewrap", "bubblewrap-pids"])
async def test_what_is_in_memory_cannot_fill_it(box, backend):
    outcome = await box.bash(box.children(backend), "stat -f -c '%b %S' /dev/shm /run")
    sizes = [int(blocks) * int(size) for blocks, size in map(str.split, outcome.stdout.text.splitlines())]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert all(0 < size <= memory // 4 + 65536 for size in sizes)


@pytest.mark.parametrize(
    ("limits", "script", "sign"),
    [
        (Limits(file_bytes=100_000), "head -c 1000000 /dev/zero > big; stat -c %s big", "100000"),
        (Limits(cpu_seconds=1), "trap 'echo limit; exit' XCPU; while :; do :; done", "limit"),
        (
            Limits(memory_bytes=100_000_000),
            "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}",
            "cannot allocate",
        ),
        (Limits(open_files=20), "ulimit -n", "20"),
    ],
)
async def test_limits_hold_inside(box, backend, limits, script, sign):
    outcome = await box.bash(box.children(backend), script, limits=limits, timeout=40)
    assert sign in outcome.stdout.text + outcome.stderr.text


async def test_a_fork_bomb_is_over_when_its_time_is(box, backend):
    mark = f"bomb-{os.getpid()}-{id(box)}"
    # At most some hundred at a time, however fast: the machine is not the test's own.
    script = f"""ulimit -u 4096; n=0
    bomb() {{ local k; for k in 1 2; do (exec -a {mark} sleep 30) & done; }}
    while [ $n -lt 60 ]; do bomb; n=$((n+1)); done; wait"""
    outcome = await box.bash(box.children(backend), script, timeout=1.5, grace=0.2)
    assert outcome.timed_out
    assert not outcome.left
    assert command_lines(mark) == []


async def test_git_works_inside_but_for_what_is_protected(box):
    git = need("git")
    subprocess.run([git, "init", "-q", box.workspace], check=True)
    script = """set -x; git config --global --list; git add -A && git -c user.name=x -c user.email=x@x commit -qm one
    git log --oneline | wc -l; git config core.hooksPath .; echo x > .git/hooks/pre-commit; mv .git gone; echo end"""
    (box.workspace / "a").write_text("a")
    outcome = await box.bash(box.mounts(), script)
    assert outcome.stdout.text.splitlines() == ["1", "end"], outcome.stderr.text
    assert "hooksPath" not in (box.workspace / ".git" / "config").read_text()
    assert not (box.workspace / ".git" / "hooks" / "pre-commit").exists()


async def test_what_was_put_there_to_protect_it_is_gone_afterwards(box):
    children = box.mounts()
    outcome = await box.bash(children, "echo x > .git/hooks/x; echo x > .git/config; ls; ls -A")
    assert outcome.stdout.text.split() == PLACEHOLDERS
    assert sorted(path.name for path in box.workspace.iterdir()) == PLACEHOLDERS
    assert [path.name for path in sorted(box.workspace.iterdir()) if path.is_socket()] == [".npmrc", ".yarnrc.yml"]
    await children.aclose()
    assert list(box.workspace.iterdir()) == []


async def test_it_stays_as_long_as_another_sandbox_needs_it(box):
    first, second = box.mounts(), box.mounts()
    for children in (first, second):
        await box.bash(children, "true")
    await first.aclose()
    outcome = await box.bash(second, "mkdir .git/hooks; ls -A")
    assert outcome.stdout.text.split() == PLACEHOLDERS
    assert sorted(os.listdir(box.workspace / ".git")) == ["HEAD", "objects", "refs"], "so that git stops there"
    await second.aclose()
    assert list(box.workspace.iterdir()) == []


async def test_rules_that_are_made_inside_are_moved_away_before_anybody_obeys_them(box, backend):
    children = box.children(backend)
    await box.bash(children, "echo first > toolyard.json")
    place = f"{box.workspace}/toolyard.json"
    assert children.sandbox.sweep() == {place: f"{place}.from-sandbox"}
    await box.bash(children, "echo second > toolyard.json")
    await children.aclose()
    found = {path.name: path.read_text() for path in box.workspace.iterdir()}
    assert found == {"toolyard.json.from-sandbox": "first\n", "toolyard.json.from-sandbox-2": "second\n"}


async def test_a_file_that_its_owner_replaces_meanwhile_makes_the_sandbox_stale(box):
    rules = box.workspace / "toolyard.json"
    rules.write_text("{}")
    children = box.mounts()
    await box.bash(children, "true")
    assert not children.is_stale()
    (box.workspace / "new").write_text("{ }")
    (box.workspace / "new").rename(rules)
    assert children.is_stale()


@pytest.mark.parametrize("setting", ["also_writable", "also_readable", "also_hidden"])
async def test_paths_can_be_opened_and_closed(box, backend, setting):
    place = box.home / "place"
    place.mkdir()
    (place / "file").write_text("here")
    children = box.children(backend, places={setting: [str(place)]})
    outcome = await box.bash(children, f"cat {place}/file; echo x > {place}/made")
    assert outcome.stdout.text == ("" if setting == "also_hidden" else "here")
    assert (place / "made").exists() is (setting == "also_writable")


async def test_local_sockets_can_be_allowed(box, backend):
    import socket

    source = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('owner'); print('reached')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(box.workspace / "owner"))
        server.listen()
        assert "Permission denied" in (await box.python(box.children(backend), source)).stderr.text
        allowed = box.children(backend, unix_sockets=True)
        assert (await box.python(allowed, source)).stdout.text == "reached\n"
    assert allowed.sandbox.name == {"landlock": "landlock without attributes, protected, obeyed, sockets"}.get(
        backend, f"{backend} without sockets"
    )


async def test_the_network_can_be_allowed(box, backend):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"
        assert (await box.bash(box.children(backend), script)).stdout.text == ""
        assert (await box.bash(box.children(backend, network=True), script)).stdout.text == "reached\n"


async def test_required_means_all_or_nothing(box):
    refused = box.children("landlock", mode="require")
    with pytest.raises(NoSandbox, match="required: attributes, protected, obeyed"):
        await box.bash(refused, "true")
    content = box.children("landlock", mode="require", properties=("writes", "network"))
    assert (await box.bash(content, "echo ran")).stdout.text == "ran\n"


async def test_required_but_nothing_there_runs_nothing(box, monkeypatch):
    monkeypatch.setenv("PATH", str(box.home))  # where there is no bubblewrap
    with pytest.raises(NoSandbox, match="not installed"):
        await box.bash(box.children("landlock", backends=("bubblewrap",), mode="require"), "true")


async def test_a_backend_that_cannot_be_built_here_gives_way_to_the_next(box, monkeypatch):
    mounts = need_backend("bubblewrap", "bubblewrap-pids")
    children = box.children(mounts, backends=(mounts, "landlock"))

    def broken(paths, walk=None):
        layout = lay_out(paths)
        layout.rules["/nowhere/at/all"] = "write"  # as a mount that bubblewrap cannot make
        return layout

    monkeypatch.setattr("toolyard.process.sandbox.sandbox.lay_out", broken)
    assert (await box.bash(children, "echo ran")).stdout.text == "ran\n"
    assert children.sandbox.name == "landlock without attributes, protected, obeyed"
    assert "nowhere" in children.sandbox.choose().passed_over[mounts]


async def test_whoever_makes_a_sandbox_fail_gets_no_weaker_one(box):
    mounts = need_backend("bubblewrap", "bubblewrap-pids")
    children = box.children(mounts, backends=(mounts, "landlock"))
    await box.bash(children, "true")
    good = children.sandbox._layout
    children.sandbox._layout = replace(good, rules=good.rules | {"/nowhere/at/all": "write"})
    os.kill(children.keeper_pid, signal.SIGKILL)
    await until(lambda: children.keeper_pid is None)
    with pytest.raises(CannotStart, match="nowhere"):
        await box.bash(children, "echo ran")
    children.sandbox._layout = good
    assert (await box.bash(children, "echo ran")).stdout.text == "ran\n"
    assert children.sandbox.choose().backend == mounts


async def test_where_no_backend_can_be_built_that_passed_its_test_nothing_runs(box, monkeypatch):
    mounts = need_backend("bubblewrap", "bubblewrap-pids")
    children = box.children(mounts)

    def broken(paths, walk=None):
        layout = lay_out(paths)
        layout.rules["/nowhere/at/all"] = "write"
        return layout

    monkeypatch.setattr("toolyard.process.sandbox.sandbox.lay_out", broken)
    with pytest.raises(NoSandbox, match="the sandbox cannot be built"):
        await box.bash(children, "echo ran")


APPLICATION = """
import asyncio, os, sys
from toolyard.process.child import Children, ChildRequest
from toolyard.process.sandbox.sandbox import Sandbox
from toolyard.process.sandbox.policy import SandboxPolicy
from toolyard.process.sandbox.layout import SandboxPaths

async def main(backend, home, work, mark):
    children = Children(Sandbox(SandboxPolicy(backends=(backend,)), SandboxPaths(home=home, workspace=[work])))
    script = "echo {} > toolyard.json; setsid sleep $0 & echo up; sleep $0"
    request = ChildRequest(argv=["/bin/bash", "-c", script, mark], cwd=work, env={b"PATH": os.environb[b"PATH"]},
                           on_output=lambda _, text: print(text, flush=True))
    await children.run(request)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_killed_application_leaves_neither_processes_nor_files(box, backend):
    need_backend(backend)
    private = box.folder / "private"
    private.mkdir()
    mark = f"{os.getpid()}.{id(box)}"
    argv = [sys.executable, "-c", APPLICATION, backend, str(box.home), str(box.workspace), mark]
    env = os.environ | {"XDG_RUNTIME_DIR": str(private)}
    with running(argv, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout.readline() == b"up\n"
        await until(lambda: len(command_lines(f"sleep {mark}")) == 2)
        process.kill()
    await until(lambda: not list(private.iterdir()))
    assert command_lines(mark) == []
    assert [path.name for path in box.workspace.iterdir()] == ["toolyard.json.from-sandbox"]


FORK_MANY = """import os, time
made = 0
try:
    for made in range(200):
        if not os.fork():
            time.sleep(60)
            os._exit(0)
except OSError:
    print("refused after", made < 64)
"""


async def test_a_group_that_was_left_stopped_does_not_stop_the_next_keeper(box):
    children = box.mounts()
    children.sandbox.confinement()  # from here on there is a group
    stopped = [file for folder in children.sandbox.group.paths() if (file := Path(folder, "cgroup.freeze")).exists()]
    for file in stopped:
        file.write_text("1")
    outcome = await box.bash(children, "echo up")
    assert outcome.stdout.text == "up\n"
    assert all(file.read_text() == "0\n" for file in stopped)


async def test_processes_inside_are_bounded_together(box, backend):
    """By a control group, or where there is none by what processes inherit; elsewhere not, as is documented."""
    children = box.children(backend, processes=64)
    said = (await box.python(children, FORK_MANY)).stdout.text
    limits = children.sandbox._limits
    assert said == ("refused after True\n" if limits.group.folders or limits.inherited(backend) else "")
    assert (await box.bash(children, "echo after")).stdout.text == "after\n"
    folders = list(limits.group.folders)
    await children.aclose()
    assert not [folder for folder in folders if os.path.exists(folder)]


async def test_a_sandbox_that_was_chosen_is_known(box, backend):
    children = box.children(backend)
    await box.bash(children, "true")
    assert children.sandbox.is_known()

"""A shell's state as data: what goes along to a shell elsewhere, what stays behind, and that none of it is run."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess

import pytest

from support import PATIENCE
from toolyard.bash.session.dump_syntax import read_declarations
from toolyard.bash.session.handover import MOST_SHOWN, MOST_TOLD, read_state
from toolyard.bash.session.session import BashSession
from toolyard.process.child import Children

pytestmark = pytest.mark.anyio
ODD = r"""a=$'new\nline\ttab\x01\e' b='"$(touch ran)`touch ran`\' c="it's" d= e=$'\377\376' declare=1
declare -a list=(1 "two words" [7]=$'x\ny'); declare -A map=([k]=v ["a b"]='c]d' ['$(touch ran)']=x [']']=y)
declare -i number=7; declare -r fixed=1; declare -x out='é'; declare -u upper=abc
declare -n other=a; declare unset_one"""
NAMES = "a b c d e list map number fixed out upper unset_one"


def dump_of(script: str, folder, env=None) -> bytes:
    command = f"{script}\numask; declare -p; declare -F; alias -p; trap -p"
    argv = [shutil.which("bash") or "bash", "--norc", "-c", command]
    env = {**os.environ} if env is None else env  # without what a library of another test has set for itself
    return subprocess.run(argv, capture_output=True, cwd=folder, timeout=PATIENCE, check=True, env=env).stdout


def test_every_kind_of_value_is_the_same_in_the_next_shell(tmp_path):
    state = read_state(dump_of(ODD, tmp_path), "/", env={}, own_folder="/none")
    lines = state.startup_lines({}).decode("utf-8", "surrogateescape")
    shown = f'for name in {NAMES}; do declare -p "$name"; done'
    texts = [
        subprocess.run(
            ["bash", "--norc", "-c", f"{script}\n{shown}".encode("utf-8", "surrogateescape")],
            capture_output=True,
            cwd=tmp_path,
            timeout=PATIENCE,
            check=True,
        ).stdout
        for script in (ODD, lines)
    ]
    # An integer and a variable in capitals are plain texts there, or else bash would evaluate what they are given.
    assert texts[1] == texts[0].replace(b"declare -i", b"declare --").replace(b"declare -u", b"declare --")
    assert not (tmp_path / "ran").exists()


def test_what_is_code_or_is_obeyed_stays_behind_and_is_named(tmp_path):
    script = """shopt -s expand_aliases; f() { :; }; alias ll='ls -l'; trap 'echo x' INT
    export PATH=/evil:$PATH GIT_PAGER=evil BASH_ENV=/evil LD_PRELOAD=/evil PYTHONSTARTUP=/evil fine=1"""
    env = {b"PATH": b"/usr/bin"}
    state = read_state(dump_of(script, tmp_path), "/", env=env, own_folder="/none")
    assert {"function f", "alias ll", "trap SIGINT", "PATH", "GIT_PAGER", "LD_PRELOAD", "PYTHONSTARTUP"} <= {
        *state.left
    }
    assert b"fine" in state.variables
    assert not {b"PATH", b"GIT_PAGER", b"BASH_ENV", b"LD_PRELOAD", b"PYTHONSTARTUP"} & {*state.variables}
    assert b"evil" not in state.startup_lines(env)


ENVIRONMENTS = [
    {},
    {b"SHELL": b"/bin/sh", b"PATH": b"/usr/bin", b"HOME": b"/nowhere"},
    {b"TERM": b"xterm-256color", b"LC_ALL": b"no_SUCH.locale", b"SHLVL": b"x", b"IFS": b":", b"PWD": b"."},
]


@pytest.mark.parametrize("env", ENVIRONMENTS, ids=["empty", "usual", "odd"])
def test_a_fresh_shell_leaves_nothing_behind_whatever_it_was_started_with(tmp_path, env):
    state = read_state(dump_of("", tmp_path, env), "/", env=env, own_folder="/none")
    assert (state.left, state.described(env)) == ((), "")
    assert [line for line in state.startup_lines(env).splitlines() if b"shopt" not in line and b"set" not in line] == [
        b"\\builtin umask " + state.umask
    ]


def test_what_programs_would_obey_is_named_where_bash_had_set_it_for_itself(tmp_path):
    state = read_state(dump_of("export SHELL=/evil PATH; IFS=:", tmp_path, {}), "/", env={}, own_folder="/none")
    assert {*state.left} == {"SHELL", "PATH", "IFS"}


@pytest.mark.parametrize(
    "lie",
    [
        b'declare -- x="$(touch ran)"',
        b'declare -- x="`touch ran`"',
        b"declare -- x=$(touch ran)",
        b'declare -- x="a"; touch ran',
        b'declare -- x="a"\ntouch ran',
        b"declare -- x=$'a'; touch ran",
        b'declare -a x=([$(touch ran)]="a")',
        b'declare -A x=([k]="a" [$(touch ran)]="b")',
        b'declare -i x="a[$(touch ran)]"',
        b'declare -n x="a[$(touch ran)]"',
        b'declare -- x[0$(touch ran)]="a"',
        b"touch ran",
        b'declare -x BASH_FUNC_ls%%="() { touch ran; }"',
        b'declare -rx SHELLOPTS="errexit:x; touch ran:"',
        b'declare -r BASHOPTS="$(touch ran):extglob"',
        b"declare -x x=\"'; touch ran; '\"",
    ],
)
@pytest.mark.parametrize("mask", [b"0022", b"0022; touch ran", b"$(touch ran)"])
def test_what_a_shell_that_lies_says_of_itself_is_never_run(tmp_path, lie, mask):
    state = read_state(mask + b"\n" + lie + b"\n", "/$(touch ran)", env={}, own_folder="/none")
    before = read_state(b"", "/", env={}, own_folder="/none")
    for lines in (state.startup_lines({}), state.lines_since(before)):
        subprocess.run(
            ["bash", "--norc", "-c", lines], cwd=tmp_path, timeout=PATIENCE, capture_output=True, check=False
        )
    assert list(tmp_path.iterdir()) == []


def test_reading_ends_where_bash_would_not_have_printed_that():
    variables, rest = read_declarations(b'declare -- a="1"\ndeclare -- b="2" ; evil\ndeclare -- c="3"\n')
    assert (set(variables), rest) == ({b"a"}, b"")


def told(script: str, folder, env=None):
    return read_state(dump_of(script, folder), "/", env=env or {}, own_folder="/none")


def test_a_question_shows_in_full_whatever_goes_along_and_nothing_else_does(tmp_path):
    script = (
        """n=m m='a[$(touch ran)]' hidden=/tmp/evil list=('x y' z) long=$(printf %0500d 1); export seen=1 many=$long"""
    )
    shown = told(script, tmp_path).shown_for('echo $((n)) "${list[@]}" $long', {})
    assert {*shown.variables} & {b"n", b"m", b"hidden", b"list", b"long", b"seen", b"many"} == {
        *(b"n", b"m", b"list", b"seen")
    }
    text = shown.described({})
    for part in ("n='m'", "m='a[$(touch ran)]'", "['0']='x y' ['1']='z'", "seen='1'"):
        assert part in text
    assert {"long", "many"} <= {*shown.left}


def test_of_many_variables_for_programs_those_stay_behind_that_are_not_shown(tmp_path):
    script = "; ".join(f"export v{number}={number}" for number in range(100))
    shown = told(script, tmp_path).shown_for("true", {})
    assert all(f"{name.decode()}=" in shown.described({}) for name in shown.variables)
    assert len(shown.variables) == MOST_SHOWN
    assert {f"v{number}" for number in range(100)} <= {*shown.left, *(name.decode() for name in shown.variables)}


def test_where_nobody_looks_programs_get_nothing_that_changed(tmp_path):
    env = {b"KEPT": b"1"}
    state = told("export KEPT=1 NEW=2; plain=3 hidden=4", tmp_path, env)
    for_a_line, for_good = state.unseen(env, 'echo "$NEW $plain"'), state.unseen(env)
    assert [name for name, each in for_a_line.variables.items() if each.exported] == [b"KEPT"]
    assert {b"NEW", b"plain"} <= {*for_a_line.variables}
    assert b"hidden" not in for_a_line.variables
    assert b"hidden" in for_good.variables
    assert "NEW for programs" in for_good.left


SETTINGS = "umask 005; set -f; shopt -s dotglob nullglob"


def test_options_and_a_umask_of_its_own_are_shown_and_go_along_only_then(tmp_path):
    state, fresh = told(SETTINGS, tmp_path), told("", tmp_path)
    assert fresh.shown_for("true", {}).described({}).startswith("umask") is False
    shown = state.shown_for("true", {})
    assert shown.described({}).startswith("with umask 0005, options dotglob noglob nullglob")
    assert b"umask 0005" in shown.startup_lines({})
    quiet = state.unseen({}, "true")
    assert quiet._settings == fresh._settings
    assert "options" in quiet.left
    assert state.unseen({}, "true", keeps_options=True)._settings == state._settings


def test_of_options_only_those_come_back_that_the_line_changed(tmp_path):
    env = {**os.environb}
    before = told(SETTINGS, tmp_path, env).unseen(env, "true")
    assert told("", tmp_path, env).lines_since(before) == b"\n"
    assert told("set -f", tmp_path, env).lines_since(before) == b"\\builtin set -o noglob\n"
    assert told("umask 005", tmp_path, env).lines_since(before) == b"\\builtin umask 0005\n"


def test_a_variable_that_was_unset_is_shown_or_is_there(tmp_path):
    env = {b"DRY_RUN": b"1", b"MODE": b"a", b"odd.name": b"x", b"PATH": os.environb[b"PATH"]}
    state = read_state(dump_of("unset DRY_RUN; MODE=b", tmp_path, env), "/", env=env, own_folder="/none")
    shown = state.shown_for("true", env)
    assert "unset DRY_RUN" in shown.described(env)
    assert "MODE='b'" in shown.described(env)
    assert b"unset -v DRY_RUN" in shown.startup_lines(env)
    quiet = state.unseen(env, 'echo "$MODE"')
    assert quiet.startup_lines(env).startswith(b"\\builtin umask"), "all variables are as they began"


@pytest.mark.parametrize("dump", [b"", b"0022\n" + b'declare -- x="1"\n' * (MOST_TOLD // 8)], ids=["nothing", "much"])
def test_a_shell_that_tells_nothing_or_too_much_changes_nothing_elsewhere(dump):
    env = {b"A": b"1"}
    state = read_state(dump, "/", env=env, own_folder="/none")
    assert not state.is_told
    assert b"unset -v" not in state.startup_lines(env)
    before = told_before(env)
    assert state.lines_since(before) == b""


def told_before(env):
    return read_state(b'0022\ndeclare -x A="1"\ndeclare -- y="2"\n', "/", env=env, own_folder="/none")


NOT_FOR_MORE = {
    "for programs": "export x=1",
    "for programs, by an option": "set -a; x=1; set +a",
    "a list": "x=(1 2)",
    "a number, which bash evaluates": "declare -i x=1",
    "one that stays as it is": "readonly x=1",
    "another name of another": "declare -n x=another",
}


@pytest.mark.parametrize("script", NOT_FOR_MORE.values(), ids=NOT_FOR_MORE.keys())
@pytest.mark.parametrize("here", ["", *NOT_FOR_MORE.values()], ids=["nothing", *NOT_FOR_MORE.keys()])
def test_to_a_shell_that_reaches_further_only_plain_texts_go_and_only_into_plain_texts(tmp_path, script, here):
    before, here_now = told("", tmp_path), told(here, tmp_path)
    line = f"{script}; plain=2"
    taken = told(line, tmp_path).without_obeyed(before, here_now, line).lines_since(before)
    assert taken == b"plain='2'\n"
    taken = told("x=1", tmp_path).without_obeyed(before, here_now, "x=1").lines_since(before)
    assert taken == (b"\n" if here else b"x='1'\n")


@pytest.mark.parametrize(
    "name",
    [
        *("OPENSSL_CONF", "POSIXLY_CORRECT", "PATH", "IFS", "BASH_ENV", "SOME_CONFIG", "MY_HOME", "FUNCNEST", "CDPATH"),
        *("http_proxy", "histchars", "GLOBIGNORE", "LESSOPEN", "TERMINFO", "TMPDIR", "not_named"),
    ],
)
def test_what_bash_or_a_program_obeys_or_the_line_does_not_name_stays_in_a_shell_that_may_less(tmp_path, name):
    before = told("", tmp_path)
    state = told(f"{name}=/evil", tmp_path).without_obeyed(
        before, before, "" if name == "not_named" else f"{name}=/evil"
    )
    assert state.lines_since(before) == b"\n"


def test_options_do_not_come_back_from_a_shell_that_may_less_and_what_stays_is_said(tmp_path):
    before, line = told("", tmp_path), "set -f; shopt -s nullglob; umask 0; f() { :; }; export A=1; cd /"
    state = told(line, tmp_path).without_obeyed(before, before, line)
    assert state.lines_since(before) == b"\n"
    assert {"options", "A", "function f"} <= {*state.left}


def test_into_a_shell_that_tells_nothing_of_itself_or_exports_all_nothing_is_put(tmp_path):
    before = told("", tmp_path)
    for here in (read_state(b"", "/", env={}, own_folder="/none"), told("set -a", tmp_path)):
        assert told("x=1", tmp_path).without_obeyed(before, here, "x=1").lines_since(before) == b"\n"


async def elsewhere(shell: BashSession, command: str, children: Children):
    async with asyncio.timeout(PATIENCE):
        return await shell.run(command, within=children)


@pytest.fixture
async def other():
    children = Children()
    yield children
    await children.aclose()


async def test_folder_variables_and_options_go_there_and_come_back(tmp_path, other):
    async with BashSession(tmp_path) as shell:
        await shell.run("mkdir sub; cd sub; x=1; list=(a 'b c'); set -o pipefail; shopt -s nullglob; umask 027")
        there = await elsewhere(
            shell, 'echo "$PWD $x ${list[1]} $(umask)"; false | true; echo $?; echo *; x=2; new=3; cd ..', other
        )
        assert there.output == f"{tmp_path}/sub 1 b c 0027\n1\n\n"
        here = await shell.run('echo "$PWD $x $new"')
        assert here.output == f"{tmp_path} 2 3\n"
        await elsewhere(shell, "(exit 7)", other)
        assert (await shell.run("echo $?")).output == "7\n"


async def test_functions_stay_in_their_shell_and_work_there_afterwards(tmp_path, other):
    async with BashSession(tmp_path) as shell:
        await shell.run("f() { echo mine; }")
        assert "not found" in (await elsewhere(shell, "f", other)).output
        assert (await shell.run("f")).output == "mine\n"


async def test_a_command_elsewhere_may_end_its_shell_time_out_or_be_cancelled(tmp_path, other):
    async with BashSession(tmp_path) as shell:
        await shell.run("x=1")
        ended = await elsewhere(shell, "exit 3", other)
        assert (ended.exit_code, ended.ended) == (3, False)
        late = await shell.run("sleep 60", timeout=0.2, within=other)
        assert late.timed_out
        task = asyncio.ensure_future(shell.run("sleep 60", within=other))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE)
        reply = await shell.run("echo $x")
        assert (reply.output, reply.restarted) == ("1\n", False)


async def test_a_job_elsewhere_goes_on_and_tells_its_end(tmp_path, other):
    async with BashSession(tmp_path) as shell:
        await shell.run("x=1")
        reply = await shell.run("sleep 0.3; exit 5", background=True, within=other)
        assert (await shell.run("echo $x")).output == "1\n"
        job = shell.jobs[reply.job]
        assert await job.wait(PATIENCE)
        assert job.exit_code == 5


async def test_a_question_elsewhere_can_be_answered(tmp_path, other):
    async with BashSession(tmp_path) as shell:
        asked = await shell.run("read -p 'name? ' name; echo hello $name", interactive=True, within=other)
        assert asked.waiting_for_input
        answered = await shell.write("you\n")
        assert "hello you" in answered.output
        assert (await shell.run("echo $name")).output == "you\n"


async def test_a_session_that_moves_keeps_its_state_and_says_what_it_lost(tmp_path, other):
    async with BashSession(tmp_path) as shell:
        await shell.run("x=1; f() { :; }")
        first = shell.pid
        await shell.move(other)
        reply = await shell.run("echo $x; type -t f")
        assert reply.output == "1\n"
        assert "function f" in (reply.note or "")
        assert shell.pid != first


async def test_what_a_shell_saved_for_the_next_one_is_not_run_by_a_shell_elsewhere(tmp_path, other):
    async with BashSession(tmp_path, on_timeout="background") as shell:
        await shell.run("f() { echo code of another; }; x=1")
        assert (await shell.run("sleep 60", timeout=0.2)).job
        await shell.move(other, unseen=True)
        reply = await shell.run("type -t f; echo $x")
        assert reply.output == "1\n"
        assert "function f" in (reply.note or "")

"""One child: how it ends, what it prints, what it is given."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from toolyard.errors import CannotStart
from toolyard.process.child import ChildRequest

pytestmark = pytest.mark.anyio

EVERY_BYTE = bytes(range(256)) * 1000
GO = "while [ ! -e go ]; do sleep 0.01; done"
"""Wait, in bash, for the test to create a file."""


@pytest.mark.parametrize(("script", "exit_code", "signal"), [
    ("exit 0",               0,   None),
    ("exit 7",               7,   None),
    ("exit 255",             255, None),
    ("exit 137",             137, None),
    ("no-such-command-here", 127, None),
    ("kill -TERM $$",        143, 15),
    ("kill -KILL $$",        137, 9),
    ("kill -HUP $$",         129, 1),
    ("kill -INT $$",         130, 2),
    ("kill -PIPE $$",        141, 13),
    ("ulimit -c 0; kill -SEGV $$", 139, 11),
])  # fmt: skip
async def test_an_exit_is_counted_as_a_shell_counts(desk, script, exit_code, signal):
    outcome = await desk.run(script)
    assert (outcome.exit_code, outcome.signal, outcome.timed_out, list(outcome.left)) == (exit_code, signal, False, [])


async def test_the_two_streams_are_kept_apart_and_each_in_order(desk):
    outcome = await desk.run("for i in {1..200}; do echo out $i; echo err $i >&2; done")
    assert outcome.stdout.text == "".join(f"out {i}\n" for i in range(1, 201))
    assert outcome.stderr.text == "".join(f"err {i}\n" for i in range(1, 201))


@pytest.mark.parametrize("data", [
    pytest.param(b"",                                   id="nothing"),
    pytest.param(b"no newline at the end",              id="no newline"),
    pytest.param(b"a\0b\0\n",                           id="NUL"),
    pytest.param(b"\xef\xbb\xbfa\r\nb\rc\n",            id="byte order mark and carriage returns"),
    pytest.param(b"caf\xe9 \xff\xfe \xc0\x80 \xed\xa0\x80\n", id="invalid UTF-8"),
    pytest.param(b"unfinished \xf0\x9f\x98",            id="half a character at the end"),
    pytest.param(EVERY_BYTE,                            id="every byte"),
    pytest.param("😀é€a".encode() * 40_000,             id="characters split over reads"),
])  # fmt: skip
async def test_output_is_byte_exact_and_the_live_pieces_add_up_to_it(desk, data):
    pieces = []
    request = desk.program(
        shutil.which("cat"), stdin=data, output_limit=1 << 22, on_output=lambda *piece: pieces.append(piece)
    )
    outcome = await desk.run_request(request)
    assert outcome.stdout.text == data.decode("utf-8", "replace")
    assert outcome.stdout.total_bytes == len(data)
    assert outcome.stdout.truncated is None
    assert "".join(text for _, text in pieces) == outcome.stdout.text
    assert all(stream == "stdout" and text for stream, text in pieces)


async def test_output_is_heard_while_the_child_still_runs(desk):
    running = desk.start(f"echo first; {GO}; echo second")
    await running.until_heard("first\n")
    assert not running.task.done()
    (desk.cwd / "go").touch()
    assert (await running.outcome()).stdout.text == running.heard() == "first\nsecond\n"


async def test_a_character_split_over_two_writes_is_heard_as_one(desk):
    running = desk.start(rf"printf 'a\xc3'; {GO}; printf '\xa9b'")
    await running.until_heard("a")
    (desk.cwd / "go").touch()
    await running.outcome()
    assert [text for _, text in running.pieces] == ["a", "éb"]


async def test_each_stream_is_heard_only_when_asked_for(desk):
    running = desk.start("echo out; echo err >&2", streams=("stdout",))
    assert (await running.outcome()).stderr.text == "err\n"
    assert running.pieces == [("stdout", "out\n")]
    both = desk.start("echo out; echo err >&2")
    await both.outcome()
    assert sorted(both.pieces) == [("stderr", "err\n"), ("stdout", "out\n")]


async def test_a_child_that_closes_its_streams_may_live_on(desk):
    running = desk.start(f"echo last; exec >&- 2>&-; {GO}; exit 5")
    await running.until_heard("last\n")
    (desk.cwd / "go").touch()
    outcome = await running.outcome()
    assert (outcome.exit_code, outcome.stdout.text) == (5, "last\n")


async def test_more_output_than_a_pipe_holds_does_not_block_a_child_that_nobody_hears(desk):
    outcome = await desk.run("head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2", output_limit=1 << 22)
    assert (outcome.exit_code, outcome.stdout.total_bytes, outcome.stderr.total_bytes) == (0, 3_000_000, 2_000_000)


async def test_a_flood_keeps_its_head_and_tail_in_bounded_memory(desk):
    outcome = await desk.run("echo first; yes | head -c 50000000; echo last", output_limit=1000)
    assert outcome.stdout.total_bytes == 50_000_000 + len("first\nlast\n")
    assert outcome.stdout.text.startswith("first\ny\n")
    assert outcome.stdout.text.endswith("y\nlast\n")
    assert len(outcome.stdout.text) < 1200
    assert outcome.stdout.truncated.omitted_bytes == outcome.stdout.total_bytes - 1000


async def test_the_whole_of_a_long_output_is_spilled_to_a_file(desk):
    spill = desk.cwd / "deep" / "whole.txt"
    outcome = await desk.run("seq 1 100000; echo err >&2", output_limit=1000, spill_to=spill)
    assert spill.read_text() == "".join(f"{i}\n" for i in range(1, 100_001))
    assert outcome.stdout.truncated.kept_at == spill
    assert str(spill) in outcome.stdout.text


async def test_stdin_is_at_its_end_unless_something_is_given(desk):
    outcome = await desk.run("cat; read -r line; echo $?")
    assert outcome.stdout.text == "1\n"


async def test_stdin_holds_exactly_the_given_bytes(desk):
    data = os.urandom(10_000_000)
    outcome = await desk.run("sha256sum", stdin=data)
    assert outcome.stdout.text.split()[0] == hashlib.sha256(data).hexdigest()
    assert (await desk.run("cat", stdin=b"")).stdout.text == ""


async def test_a_child_need_not_read_its_stdin(desk):
    outcome = await desk.run("exit 3", stdin=b"x" * 10_000_000)
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    "name", ["plain", "with space", "quote'\"$(id)", "ünï", os.fsdecode(b"caf\xe9"), "line\nbreak"]
)
async def test_a_child_runs_in_the_given_directory(desk, name):
    folder = desk.cwd / name
    folder.mkdir()
    request = desk.python_request("import os; os.write(1, os.getcwdb())", cwd=folder)
    outcome = await desk.run_request(request)
    assert outcome.stdout.text == os.fsencode(folder).decode("utf-8", "replace")


async def test_a_child_gets_exactly_the_given_variables(desk):
    env = {b"A": b"1", b"EMPTY": b"", b"LINES": b"a\nb", b"RAW": b"\xff=\xfe", b"caf\xe9": b"x"}
    source = "import os; os.write(1, b'\\0'.join(k + b'=' + v for k, v in sorted(os.environb.items())))"
    outcome = await desk.run_request(desk.python_request(source, env=env))
    seen = dict(line.split("=", 1) for line in outcome.stdout.text.split("\0"))
    given = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in env.items()}
    seen.pop("LC_CTYPE", None)  # Python's own doing: it sets a UTF-8 locale where there is none
    assert seen == given


async def test_a_child_gets_exactly_the_given_arguments(desk):
    words = ["", " ", "a b", "'", '"', "$(id)", "`id`", "*", "line\nbreak", "-n", "ünï😀", os.fsdecode(b"\xff\xfe")]
    source = "import os, sys; os.write(1, b'\\0'.join(map(os.fsencode, sys.argv[2:])))"
    outcome = await desk.run_request(desk.python_request(source, *words))
    assert outcome.stdout.text.split("\0") == [os.fsencode(word).decode("utf-8", "replace") for word in words]


async def test_a_child_leads_its_own_session(desk):
    source = "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid(), os.path.exists('/dev/tty') and tty())"
    tty = "def tty():\n    try: return bool(open('/dev/tty'))\n    except OSError: return False\n"
    outcome = await desk.run_request(desk.python_request(tty + source))
    assert outcome.stdout.text == "True False\n"


async def test_a_child_inherits_three_descriptors_and_no_signal_disposition(desk):
    listing = "import os; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:-1])"
    assert (await desk.run_request(desk.python_request(listing))).stdout.text == "[0, 1, 2]\n"
    masks = await desk.run_request(desk.program(shutil.which("grep"), "-E", "^Sig(Blk|Ign)", "/proc/self/status"))
    libc_own = 1 << 31 | 1 << 32  # posix_spawn of glibc ignores the two signals that its threads use
    assert {int(line.split()[1], 16) & ~libc_own for line in masks.stdout.text.splitlines()} == {0}


def executable(path: Path, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


UNSTARTABLE = {
    "missing program": (errno.ENOENT, lambda at: {"argv": [f"{at}/missing"]}),
    "directory as program": (errno.EACCES, lambda at: {"argv": [f"{at}"]}),
    "not executable": (errno.EACCES, lambda at: {"argv": [executable(at / "x", "", 0o644)]}),
    "not a program": (errno.ENOEXEC, lambda at: {"argv": [executable(at / "x", "echo no shebang")]}),
    "missing interpreter": (errno.ENOENT, lambda at: {"argv": [executable(at / "x", "#!/no/such\n")]}),
    "missing folder of the program": (errno.ENOENT, lambda at: {"argv": [f"{at}/x/y"]}),
    "argument too long": (errno.E2BIG, lambda at: {"argv": ["/bin/true", "x" * (1 << 20)]}),
    "missing directory": (errno.ENOENT, lambda at: {"cwd": at / "missing"}),
    "file as directory": (errno.ENOTDIR, lambda at: {"cwd": Path(executable(at / "x", ""))}),
    "NUL in an argument": (errno.EINVAL, lambda at: {"argv": ["/bin/true", "a\0b"]}),
    "half a surrogate pair in an argument": (errno.EINVAL, lambda at: {"argv": ["/bin/true", "\ud800"]}),
    "no program at all": (errno.EINVAL, lambda at: {"argv": []}),
    "NUL in the directory": (errno.EINVAL, lambda at: {"cwd": at / "a\0b"}),
    "NUL in a variable": (errno.EINVAL, lambda at: {"env": {b"A": b"x\0y"}}),
    "equals sign in a variable's name": (errno.EINVAL, lambda at: {"env": {b"A=B": b"x"}}),
}


@pytest.mark.parametrize(("reason", "prepare"), UNSTARTABLE.values(), ids=UNSTARTABLE)
async def test_what_cannot_be_started_says_why_and_harms_no_other_call(desk, reason, prepare):
    other = desk.start(f"echo ready; {GO}")
    await other.until_heard("ready\n")
    before = set(os.listdir("/proc/self/fd"))
    request = ChildRequest(**({"argv": ["/bin/true"], "cwd": desk.cwd, "env": desk.env} | prepare(desk.cwd)))
    with pytest.raises(CannotStart) as caught:
        await desk.run_request(request)
    assert caught.value.errno == reason
    assert len(os.listdir("/proc/self/fd")) <= len(before)
    (desk.cwd / "go").touch()
    assert (await other.outcome()).exit_code == 0


async def test_a_listener_that_fails_costs_no_descriptor(desk):
    def fail(stream: str, text: str) -> None:
        raise RuntimeError(text)

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    await desk.run("true")
    before = set(os.listdir("/proc/self/fd"))
    with contextlib.suppress(RuntimeError):
        await desk.run("echo out; echo err >&2; printf '\\xf0'; printf '\\xf0' >&2", on_output=fail)
    assert len(os.listdir("/proc/self/fd")) <= len(before)


async def test_each_child_has_pipes_of_its_own_and_those_opened_ahead_are_closed_at_the_end(desk):
    before = len(os.listdir("/proc/self/fd"))
    script = "readlink /proc/self/fd/1; readlink /proc/self/fd/2"
    pipes = [pipe for _ in range(5) for pipe in (await desk.run(script)).stdout.text.split()]
    assert len(set(pipes)) == 10
    held = len(os.listdir("/proc/self/fd"))
    outcomes = await asyncio.gather(*(desk.run("echo $2", str(number)) for number in range(20)))
    assert [outcome.stdout.text for outcome in outcomes] == [f"{number}\n" for number in range(20)]
    assert len(os.listdir("/proc/self/fd")) == held
    await desk.children.aclose()
    assert len(os.listdir("/proc/self/fd")) <= before

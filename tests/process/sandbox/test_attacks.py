"""Ways out that were once open: each is tried again as a tool would, in every sandbox that closes it."""

from __future__ import annotations

import asyncio
import os
import subprocess

import pytest

from support import command_lines, need, until

pytestmark = pytest.mark.anyio

REACH_FOR_THE_KEEPER = """
import ctypes, fcntl, os, resource, signal
keeper, done = os.getppid(), []
def attempt(name, what):
    try:
        what()
        done.append(name)
    except OSError:
        pass
def by_handle():
    handle = os.open(f"/proc/{keeper}", os.O_RDONLY)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
def by_a_pipe():
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, keeper)
    fcntl.fcntl(ours, 10, signal.SIGKILL)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC)
    os.write(theirs, b"x")
for number in set(range(1, 65)) - {32, 33}:
    attempt(f"signal {number}", lambda: os.kill(keeper, number))
attempt("group", lambda: os.killpg(os.getpgid(keeper), signal.SIGKILL))
attempt("everybody", lambda: os.kill(-1, signal.SIGCONT))
attempt("thread", lambda: ctypes.CDLL(None).tgkill(keeper, keeper, signal.SIGSTOP) and os.strerror(1) and 1 / 0)
attempt("handle", by_handle)
attempt("pipe", by_a_pipe)
attempt("limit", lambda: resource.prlimit(keeper, resource.RLIMIT_CPU, (0, 0)))
print(done)
""".replace(" and os.strerror(1) and 1 / 0", "")


async def test_nobody_inside_ends_or_stops_the_keeper(box, backend):
    children = box.children(backend)
    before = (await box.bash(children, "echo $PPID")).stdout.text
    said = await box.python(children, REACH_FOR_THE_KEEPER)
    after = (await box.bash(children, "echo $PPID")).stdout.text
    assert (said.exit_code, after) == (0, before), said.stderr.text
    if backend != "bubblewrap-pids":  # there the kernel itself looks after the first process
        assert not {"signal 9", "signal 19", "group", "everybody", "handle", "pipe", "limit"} & set(
            eval(said.stdout.text)
        )


DAEMON = """
import os, resource, signal, sys, time
keeper = os.getppid()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_RTTIME, (12345, resource.getrlimit(resource.RLIMIT_RTTIME)[1]))
    for number in (signal.SIGKILL, signal.SIGSTOP):
        try:
            os.kill(keeper, number)
        except OSError:
            pass
    os.execv("/bin/sleep", ["sleep", sys.argv[1]])
os.wait()
"""


async def test_a_daemon_that_hides_from_its_call_does_not_outlive_the_application(box, backend):
    children = box.children(backend)
    mark = f"{os.getpid()}.{id(box)}"
    await box.python(children, DAEMON, mark)
    await children.aclose()
    assert command_lines(f"sleep {mark}") == []


CHANGE_THE_MARK = """
import ctypes, resource, struct
soft, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
done = []
for name, change in {
    "own": lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (12345, hard)),
    "infinite": lambda: resource.setrlimit(resource.RLIMIT_RTTIME, (hard, hard)),
    "by number": lambda: resource.prlimit(__import__("os").getpid(), resource.RLIMIT_RTTIME, (1, hard)),
}.items():
    try:
        change()
        done.append(name)
    except (OSError, ValueError):
        pass
libc, call = ctypes.CDLL(None), {"x86_64": (160, 302), "aarch64": (164, 261)}[__import__("os").uname().machine]
limit = struct.pack("QQ", 1, 1 << 63)
for key in (0, 1, -1, 0x7EE9E502, 0x7EE9E503):
    libc.syscall(call[1], 0, 15, limit, None, key, key)
libc.syscall(call[0], 15, limit)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print(done, resource.getrlimit(resource.RLIMIT_RTTIME) == (soft, hard), soft > 10**15)
"""


async def test_nobody_inside_changes_the_mark_by_which_its_call_is_known(box, backend):
    said = await box.python(box.children(backend), CHANGE_THE_MARK)
    assert said.stdout.text == "[] True True\n", said.stderr.text


async def test_processes_inside_still_signal_limit_and_wait_for_each_other(box, backend):
    script = (
        "sleep 100 & kill -STOP $!; kill -CONT $!; kill -9 $!; wait $!; echo $?; ulimit -n 64; ulimit -n; nice true"
    )
    assert (await box.bash(box.children(backend), script)).stdout.text == "137\n64\n"


LEND_RIGHTS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
umask, mode = os.umask(0), int(sys.argv[1], 8)
def made(name):
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o755))
    return name.encode()
fd = os.open("by_handle", os.O_WRONLY | os.O_CREAT, 0o755)
ways = {
    "chmod": lambda: libc.chmod(made("a"), mode),
    "fchmod": lambda: libc.fchmod(fd, mode),
    "fchmodat": lambda: libc.fchmodat(-100, made("b"), mode, 0),
    "fchmodat2": lambda: libc.syscall(452, -100, made("c"), mode, 0),
    "open": lambda: libc.open(b"d", os.O_WRONLY | os.O_CREAT, mode),
    "openat": lambda: libc.openat(-100, b"e", os.O_RDWR | os.O_CREAT | os.O_EXCL, mode),
    "temporary": lambda: libc.open(b".", os.O_RDWR | os.O_TMPFILE, mode),
    "creat": lambda: libc.creat(b"f", mode),
    "mknod": lambda: libc.mknod(b"g", 0o100000 | mode, 0),
    "mknodat": lambda: libc.mknodat(-100, b"h", 0o100000 | mode, 0),
    "folder": lambda: os.mkdir("i") or libc.chmod(b"i", mode),
}
print(*(name for name, way in ways.items() if way() != -1))
print(*(entry.name for entry in os.scandir(".") if entry.stat().st_mode & 0o6000))
"""


@pytest.mark.parametrize("mode", ["4755", "2755", "6755"])
async def test_no_file_is_made_that_lends_the_rights_of_its_owner_or_group(box, backend, mode):
    outcome = await box.python(box.children(backend), LEND_RIGHTS, mode)
    assert outcome.stdout.text == "\n\n", outcome.stderr.text
    assert not [path for path in box.workspace.rglob("*") if path.stat().st_mode & 0o6000]


async def test_files_that_are_made_get_the_rights_they_ask_for(box, backend):
    outcome = await box.python(box.children(backend), LEND_RIGHTS, "1751")
    assert len(outcome.stdout.text.split()) == 11, outcome.stderr.text
    assert (box.workspace / "a").stat().st_mode & 0o7777 == 0o1751


@pytest.mark.parametrize(
    ("prepare", "attack"),
    [
        ("ln -s ../home/.ssh .git", "cat .git/key; echo x > ../home/.ssh/made"),
        ("ln -s .git .git", "cat ../home/.ssh/key"),
        ("mkdir evil; mkfifo evil/gitdir; echo gitdir: evil > .git", "echo x > .git"),
        ("mkdir evil; ln -s /dev/zero evil/gitdir; echo gitdir: evil > .git", "echo x > .git"),
        (r"mkdir evil; printf '\377' > evil/gitdir; echo gitdir: evil > .git", "echo x > .git"),
        (r"printf 'gitdir: a\0b' > .git", "echo x > .git"),
        ("mkfifo .git", "rm -f .git"),
        ("mkfifo toolyard.json", "rm -f toolyard.json"),
        ("mkdir .git; touch .git/config; mkfifo .git/commondir", "rm -f .git/commondir"),
        (r"mkdir -p $'.git/modules/a\nb'; cd .git/modules/*; touch HEAD config", "echo x >> .git/modules/a*/config"),
    ],
)
async def test_whatever_the_workspace_holds_the_sandbox_is_the_same(box, prepare, attack):
    (box.home / ".ssh").mkdir()
    (box.home / ".ssh" / "key").write_text("secret")
    subprocess.run(["bash", "-c", prepare], cwd=box.workspace, check=True)
    children = box.mounts()
    outcome = await box.bash(children, f"{attack}\necho $?")
    assert outcome.stdout.text.split() == ["1"], outcome.stderr.text
    assert "without" not in children.sandbox.name
    assert sorted(path.name for path in (box.home / ".ssh").iterdir()) == ["key"], "nothing was put through the link"


async def test_submodules_without_number_do_not_weaken_the_sandbox(box):
    git = box.workspace / ".git"
    for number in range(2000):
        module = git / "modules" / f"m{number}"
        module.mkdir(parents=True)
        for name in ("HEAD", "config"):
            (module / name).touch()
    deep = git / "modules" / "/".join("d" * 500)
    subprocess.run(["mkdir", "-p", deep], check=True)
    children = box.mounts()
    outcome = await box.bash(
        children, "for file in .git/config .git/modules/m1999/config; do echo x >> $file; done; true"
    )
    assert outcome.stderr.text.count("Read-only file system") == 2
    assert "without" not in children.sandbox.name


async def test_git_cannot_be_told_that_its_configuration_is_elsewhere(box):
    need("git")
    repository = box.folder / "repository"
    for words in (
        ["init", "-q", str(box.workspace)],
        ["config", "include.path", "../included"],
        ["config", "extensions.worktreeConfig", "true"],
        ["-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "--allow-empty", "-m", "first"],
        ["worktree", "add", "-q", str(repository)],
    ):
        subprocess.run(["git", *words], cwd=box.workspace, check=True)
    (box.workspace / "included").write_text("")
    files = ".git/commondir .git/config.worktree .git/worktrees/*/commondir included"
    children = box.mounts()
    outcome = await box.bash(children, f"for file in {files}; do echo x >> $file; rm -f $file; done; git status -s")
    assert "included: Read-only file system" in outcome.stderr.text
    assert (outcome.exit_code, outcome.stdout.text) == (0, "?? included\n")
    await children.aclose()
    assert not any((box.workspace / ".git" / name).exists() for name in ("commondir", "config.worktree"))
    assert subprocess.run(["git", "status", "-s"], cwd=repository, check=True, capture_output=True).stdout == b""


async def test_a_file_that_git_would_include_is_moved_away(box):
    need("git")
    subprocess.run(["git", "init", "-q", str(box.workspace)], check=True)
    subprocess.run(["git", "config", "include.path", "../included"], cwd=box.workspace, check=True)
    children = box.mounts()
    await box.bash(children, "echo x > included")
    await children.aclose()
    assert not (box.workspace / "included").exists()


async def test_what_is_moved_away_is_never_somebody_else_s(box):
    need("git")
    subprocess.run(["git", "init", "-q", str(box.workspace)], check=True)
    subprocess.run(["git", "config", "include.path", "../sub/included"], cwd=box.workspace, check=True)
    (box.home / "included").write_text("theirs")
    children = box.mounts()
    await box.bash(children, f"ln -s {box.home} sub")
    assert children.sandbox.sweep() == {}
    assert [path.name for path in box.home.iterdir()] == ["included"]


@pytest.mark.parametrize(
    "change",
    [
        "echo new > new; mv new .netrc",
        "mkdir -p .config/gh",
        "mv .ssh old; mkdir .ssh",
    ],
)
async def test_secrets_that_are_written_anew_or_come_to_be_make_a_sandbox_stale(box, change):
    (box.home / ".netrc").write_text("old")
    (box.home / ".ssh").mkdir()
    children = box.mounts()
    assert (await box.bash(children, "cat ~/.netrc")).stdout.text == ""
    (box.home / "notes").write_text("")
    assert not children.is_stale()
    subprocess.run(["bash", "-c", change], cwd=box.home, check=True)
    assert children.is_stale()


async def test_hidden_folders_cannot_be_opened_and_filled(box):
    (box.home / ".ssh").mkdir()
    outcome = await box.bash(box.mounts(), "chmod 700 ~/.ssh; echo x > ~/.ssh/made")
    assert outcome.exit_code == 1
    assert "Read-only file system" in outcome.stderr.text


async def test_folders_in_folders_without_end_do_not_stop_the_closing(box, backend):
    children = box.children(backend)
    source = (
        "import os, sys; os.chdir(sys.argv[1]); [(os.mkdir('d'), os.chdir('d')) for _ in range(2000)]; os.chmod('.', 0)"
    )
    exchange = children.sandbox.folder().exchange
    outcome = await box.python(children, source, exchange)
    assert outcome.exit_code == 0, outcome.stderr.text
    await children.aclose()
    assert not os.path.exists(exchange)


async def test_a_file_that_is_replaced_twice_is_another_one_even_if_the_kernel_uses_its_number_again(box):
    (box.workspace / "toolyard.json").write_text("{}")
    children = box.mounts()
    await box.bash(children, "true")
    for _ in range(50):
        (box.workspace / "new").write_text("{ }")
        (box.workspace / "new").rename(box.workspace / "toolyard.json")
        assert children.is_stale()


PLANT = """
import os, sys, time
config, evil = sys.argv[1:]
text = f"[core]\\n\\tfsmonitor = {evil}\\n"
end = time.monotonic() + 60
print("up", flush=True)
while time.monotonic() < end and not os.path.exists("stop"):
    for path in (config, config + ".lock"):
        try:
            with open(path, "a") as file:
                file.write(text)
        except OSError:
            pass
    try:
        with open("mine", "w") as file:
            file.write(text)
        os.rename("mine", config)
    except OSError:
        pass
"""


@pytest.mark.parametrize("where", ["", "sub/"])
async def test_nothing_is_written_to_git_s_configuration_while_its_owner_changes_it(box, where):
    """A job inside that waits for the moment in which git replaces the file; and for a submodule's."""
    need("git")
    (evil := box.folder / "evil").write_text(f"#!/bin/sh\ntouch {box.folder}/ran\n")
    evil.chmod(0o755)
    git = ["git", "-C", str(box.workspace / where)]
    subprocess.run(["git", "init", "-q", str(box.workspace)], check=True)
    config = box.workspace / ".git" / "config"
    if where:
        module = box.workspace / ".git" / "modules" / "sub"
        module.parent.mkdir()
        subprocess.run(["git", "init", "-q", "--separate-git-dir", module, box.workspace / "sub"], check=True)
        config = module / "config"
    children, up = box.mounts(), asyncio.Event()
    job = asyncio.ensure_future(box.python(children, PLANT, str(config), str(evil), on_output=lambda *_: up.set()))
    async with asyncio.timeout(60):
        await up.wait()
    for number in range(40):
        subprocess.run([*git, "config", "some.number", str(number)], capture_output=True)
        subprocess.run([*git, "status"], check=True, capture_output=True)
    (box.workspace / "stop").touch()
    await job
    assert not (box.folder / "ran").exists()
    assert "fsmonitor" not in config.read_text()
    await children.aclose()
    subprocess.run([*git, "config", "some.number", "1"], check=True)
    assert subprocess.run([*git, "config", "some.number"], check=True, capture_output=True).stdout == b"1\n"


async def test_what_was_written_to_git_s_configuration_after_an_editor_saved_it_is_put_aside(box):
    """An editor heeds no lock; what a job manages to write in that moment is not there for long."""
    need("git")
    (evil := box.folder / "evil").write_text(f"#!/bin/sh\ntouch {box.folder}/ran\n")
    evil.chmod(0o755)
    subprocess.run(["git", "init", "-q", str(box.workspace)], check=True)
    config = box.workspace / ".git" / "config"
    children, up = box.mounts(), asyncio.Event()
    job = asyncio.ensure_future(box.python(children, PLANT, str(config), str(evil), on_output=lambda *_: up.set()))
    async with asyncio.timeout(60):
        await up.wait()
    (box.workspace / ".git" / "config.new").write_text(config.read_text())
    (box.workspace / ".git" / "config.new").rename(config)
    await until(lambda: "fsmonitor" not in config.read_text() and not children.is_stale())
    (box.workspace / "stop").touch()
    await job
    await children.aclose()
    subprocess.run(["git", "-C", box.workspace, "status"], check=True, capture_output=True)
    assert not (box.folder / "ran").exists()

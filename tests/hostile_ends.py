"""Ends of an application that runs hostile daemons: every cause, and what is left after it.

An application of its own runs a tool that leaves daemons behind, each of which hides in another way. Then something
ends: the call, the keeper, the application, several at once. Whatever then carries the mark of a run has survived.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support import AS_FROM_A_SHELL
from toolyard.process.process_tree import children_of, stat_fields

PATIENCE = 30.0
STARTS = 3
SETTLED_WITHIN = 5.0
"""How long after an end something may still be about to die; what lives then has survived."""

DAEMONS = r"""
import ctypes, os, resource, signal, sys, threading, time
libc = ctypes.CDLL(None)
name, tricks = sys.argv[1], sys.argv[2].split(",")
read_end, ready = os.pipe()

def called(text):
    libc.prctl(15, text.encode()[:15], 0, 0, 0)

def forget_limits():
    for which in (resource.RLIMIT_RTTIME, resource.RLIMIT_CPU, resource.RLIMIT_CORE, resource.RLIMIT_NICE):
        soft, hard = resource.getrlimit(which)
        for pair in ((12345, hard), (resource.RLIM_INFINITY, hard), (4321, 54321)):
            try:
                resource.setrlimit(which, pair)
            except (OSError, ValueError):
                pass
    for value in ("-1000", "999"):
        try:
            open("/proc/self/oom_score_adj", "w").write(value)
        except OSError:
            pass

def hide():
    "A session, a parent, descriptors, limits, signals and variables that nobody knows."
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in set(range(1, 65)) - {9, 19, 32, 33}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    forget_limits()
    os.chdir("/")
    os.umask(0)
    called(name)

def say_ready():
    os.write(ready, b"x")
    os.closerange(0, 256)

def rest():
    while True:
        time.sleep(3600)

def sleeper():
    say_ready()
    rest()

def program():
    os.write(ready, b"x")
    os.closerange(0, 256)
    os.execve("/bin/sleep", ["sleep", "3600." + name[1:]], {})

def stopped():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, range(1, 65))
    say_ready()
    while True:
        os.kill(os.getpid(), signal.SIGSTOP)

def adopting():
    "One that adopts what its children leave, and they leave a lot."
    libc.prctl(36, 1, 0, 0, 0)
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            rest()
    say_ready()
    rest()

def headless():
    "A process whose first thread has ended looks like one that has."
    threading.Thread(target=rest).start()
    say_ready()
    libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)

def traced():
    child = os.fork()
    if child == 0:
        libc.ptrace(0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        rest()
    say_ready()
    rest()

def chain():
    "Each fork lives for a moment, in a session of its own; whoever looks for it looks for the one before."
    say_ready()
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(0.005)

def many_chains():
    for _ in range(5):
        if os.fork() == 0:
            while True:
                if os.fork():
                    os._exit(0)
                os.setsid()
                time.sleep(0.001)
    say_ready()
    rest()

def other_user():
    try:
        os.setgid(4321)
        os.setuid(4321)
    except OSError:
        pass
    sleeper()

def other_group():
    "Only root outside of a sandbox can do that."
    for place in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory"):
        try:
            open(place + "/cgroup.procs", "w").write("0")
        except OSError:
            pass
    sleeper()

for trick in tricks:
    if os.fork() == 0:
        hide()
        globals()[trick]()
    os.wait()
waiting = len(tricks)
while waiting:
    waiting -= len(os.read(read_end, waiting))
called(name)
print("ready", flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
rest()
"""

TRICKS = ("sleeper", "program", "stopped", "adopting", "headless", "traced", "chain", "other_user", "other_group")
FAST = ("many_chains",)
"""Forks that are faster than whoever looks for them: only the kernel ends these for certain."""

APPLICATION = r"""
import asyncio, json, os, sys
from pathlib import Path
from toolyard.errors import ProcessError
from toolyard.process.child import Children, ChildRequest

async def main(daemons, mark, tricks, backend, home, workspace, timeout):
    children = Children(sandbox(backend, home, workspace) if backend else None)
    env = {b"PATH": os.environb[b"PATH"]}
    heard = asyncio.Event()
    def request(*argv, **conditions):
        return ChildRequest(argv=argv, cwd=Path(workspace), env=env, grace=0.1, **conditions)
    def tell(*words):
        print(*words, flush=True)
    hostile = request(sys.executable, "-I", "-S", "-c", daemons, mark, tricks,
                      on_output=lambda stream, text: heard.set())
    loop = asyncio.get_running_loop()
    orders = asyncio.Queue()
    loop.add_reader(0, lambda: [orders.put_nowait(word) for word in os.read(0, 100).decode().split() or ["end"]])
    try:
        beside = asyncio.ensure_future(children.run(request("/bin/sleep", "3600." + mark[1:] + "9")))
        call = asyncio.ensure_future(children.run(hostile))
        hearing = asyncio.ensure_future(heard.wait())
        await asyncio.wait([call, hearing], return_when="FIRST_COMPLETED")
        if not heard.is_set():
            tell("failed", call)
        tell("keeper", children.keeper_pid, children.keeper._keeper._process.pid, children.keeper.group_name)
        while (order := await orders.get()) != "end":
            match order:
                case "raise":
                    raise RuntimeError("on purpose")
                case "cancel":
                    call.cancel()
                    await asyncio.wait([call])
                    tell("gone")
                case "time-out":
                    late = request(sys.executable, "-I", "-S", "-c", daemons, mark + "t", tricks, timeout=timeout)
                    try:
                        outcome = await children.run(late)
                        tell("gone", outcome.timed_out)
                    except ProcessError as error:
                        tell("gone", error)
                case "lose":
                    await asyncio.wait([call, beside])
                    tell("gone")
                case "again":
                    tell("again", (await children.run(request("/bin/true"))).exit_code)
        await children.aclose()
    except asyncio.CancelledError:
        await children.aclose()
        raise

def sandbox(backend, home, workspace):
    from toolyard.process.sandbox.layout import SandboxPaths
    from toolyard.process.sandbox.policy import SandboxPolicy
    from toolyard.process.sandbox.sandbox import Sandbox
    policy = SandboxPolicy(backends=(backend,), mode="require", properties=("writes",))
    return Sandbox(policy, SandboxPaths(home=home, workspace=[workspace]))

asyncio.run(main(**json.load(open(os.environ["SETTING"]))))
"""
NEXT_START = (
    APPLICATION.partition("asyncio.run(")[0]
    + r"""
async def start(backend, home, workspace, **_):
    children = Children(sandbox(backend, home, workspace) if backend else None)
    await children.run(ChildRequest(argv=["/bin/true"], cwd=Path("/"), env={}))
    await children.aclose()
asyncio.run(start(**json.load(open(os.environ["SETTING"]))))
"""
)


class Setting(NamedTuple):
    """Where and as whom an application runs."""

    backend: str | None
    tricks: tuple[str, ...] = TRICKS
    prefix: tuple[str, ...] = ()
    """What makes it run as somebody else."""


class Left(NamedTuple):
    """What was seen of one end."""

    survivors: list[str]
    things: list[str]
    """Folders, control groups and mount points."""
    seconds: float
    """From the cause until the application had ended; for a call, until it was reported."""


class StartFailed(Exception):
    """An application that could not even run its daemons."""


class HostileApplication:
    """A program of its own that runs the daemons until something happens to it."""

    def __init__(self, folder: Path, setting: Setting) -> None:
        self.mark = f"h{uuid.uuid4().int % 10**10:010}"
        self.folder = folder
        self.home, self.workspace, self.run, self.tmp = (folder / name for name in ("home", "work", "run", "tmp"))
        for place in (self.home, self.workspace, self.run, self.tmp):
            place.mkdir(exist_ok=True)
            place.chmod(0o777)
        told = {
            "daemons": DAEMONS,
            "mark": self.mark,
            "tricks": ",".join(setting.tricks),
            "backend": setting.backend,
            "home": str(self.home),
            "workspace": str(self.workspace),
            "timeout": 0.5,
        }
        (folder / "setting.json").write_text(json.dumps(told))
        self.prefix = setting.prefix
        places = {"XDG_RUNTIME_DIR": str(self.run), "TMPDIR": str(self.tmp), "XDG_STATE_HOME": str(self.home)}
        self.env = {**os.environ, **places, "SETTING": str(folder / "setting.json")}
        self.process = subprocess.Popen(
            self.argv(APPLICATION),
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        line = self.hear()
        if not line.startswith("keeper"):
            self.end()
            raise StartFailed(line)
        _, keeper, guard, *group = line.split()
        self.keeper, self.guard, self.group = int(keeper), int(guard), "".join(group)

    def argv(self, source: str) -> list[str]:
        return [*self.prefix, sys.executable, "-c", AS_FROM_A_SHELL, sys.executable, "-c", source]

    def hear(self) -> str:
        assert self.process.stdout
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise TimeoutError("the application says nothing")
        if line := self.process.stdout.readline():
            return line
        raise RuntimeError(self.process.communicate(timeout=PATIENCE)[1])

    def tell(self, order: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(order + "\n")

    def ask(self, order: str) -> str:
        self.tell(order)
        return self.hear()

    def middle(self) -> list[int]:
        """Between the guard and the keeper: bubblewrap, where there is one."""
        return [pid for pid in children_of(self.guard) if pid != self.keeper]

    def end(self) -> None:
        """Whatever is left of it."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)
        for pid in self.survivors():
            with contextlib.suppress(OSError):
                os.kill(int(pid.split()[0]), signal.SIGKILL)

    def survivors(self, of: str = "") -> list[str]:
        """The living processes that carry the mark, in their name or in their arguments."""
        return [f"{pid} {what}" for pid, what in marked_processes(of or self.mark)]

    def things(self) -> list[str]:
        """What an application leaves on the disk and in the kernel if nobody removes it."""
        found = [str(path) for place in (self.run, self.workspace, self.tmp) for path in place.iterdir()]
        found += map(str, self.home.glob("toolyard/running/*"))
        return sorted([*found, *(groups_called(self.group) if self.group else ())])


def groups_called(name: str) -> Iterator[str]:
    """Control groups whose name begins so, in every tree of them that this process is in."""
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for _, controllers, path in own:
        for tree in {"", "unified", *controllers.split(",")}:
            folder = Path("/sys/fs/cgroup", tree, path.lstrip("/"))
            yield from (str(found) for found in folder.glob(f"{name}*"))


def marked_processes(mark: str) -> Iterator[tuple[int, str]]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            comm = Path(f"/proc/{entry}/comm").read_text().strip()
            words = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            is_daemon = comm.startswith(mark) or (mark[1:] in words and comm == "sleep")
            if is_daemon and lives(int(entry)):
                yield int(entry), f"{comm} {words[:40]}"


def lives(pid: int) -> bool:
    """Whether a process has a thread that runs; one whose first thread has ended looks like a dead one."""
    fields = stat_fields(pid)
    return bool(fields) and (fields[0] not in (b"Z", b"X") or int(fields[17]) > 1)


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def stop(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


Cause = Callable[[HostileApplication], object]
CALL_ENDS: dict[str, Cause] = {
    "time-out": lambda app: app.ask("time-out"),
    "cancel": lambda app: app.ask("cancel"),
}
"""The application and another call go on."""
KEEPER_ENDS: dict[str, Cause] = {
    "kill -9 of the keeper": lambda app: (app.tell("lose"), kill(app.keeper), app.hear()),
    "kill -9 of the guard": lambda app: (app.tell("lose"), kill(app.guard), app.hear()),
    "kill -9 of keeper and guard": lambda app: (app.tell("lose"), kill(app.guard, app.keeper), app.hear()),
}
"""The application goes on."""
APPLICATION_ENDS: dict[str, Cause] = {
    "an exception": lambda app: app.tell("raise"),
    "SIGINT": lambda app: app.process.send_signal(signal.SIGINT),
    "SIGTERM": lambda app: app.process.terminate(),
    "kill -9 of the application": lambda app: app.process.kill(),
    "kill -9 of application and keeper": lambda app: kill(app.process.pid, app.keeper),
    "kill -9 of keeper and application": lambda app: kill(app.keeper, app.process.pid),
    "kill -9 of application and guard": lambda app: kill(app.process.pid, app.guard),
    "a stopped keeper, then the end": lambda app: (stop(app.keeper), app.tell("end")),
    "a stopped keeper, then SIGINT": lambda app: (stop(app.keeper), app.process.send_signal(signal.SIGINT)),
    "a stopped keeper, then kill -9": lambda app: (stop(app.keeper), app.process.kill()),
    "a stopped guard, then the end": lambda app: (stop(app.guard), app.tell("end")),
    "all stopped, then kill -9": lambda app: (stop(app.keeper, app.guard, *app.middle()), app.process.kill()),
}
LEFT_TO_THE_NEXT_START = ("kill -9 of application and guard", "kill -9 of keeper and application")
"""Nobody is there to clean up, or the application has just told the guard that it will."""
CAUSES = CALL_ENDS | KEEPER_ENDS | APPLICATION_ENDS


def end_once(cause: str, setting: Setting) -> Left:
    """Start an application with its daemons, let the cause happen, and look what is left."""
    with tempfile.TemporaryDirectory(prefix="ends-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        app = start_application(Path(name), setting)
        try:
            return watch_end(app, cause, setting)
        finally:
            app.end()


def start_application(folder: Path, setting: Setting) -> HostileApplication:
    """What tests beside this one make and remove in `/etc` can keep a sandbox from being built: try again."""
    for _ in range(STARTS):
        with contextlib.suppress(StartFailed):
            return HostileApplication(folder, setting)
    return HostileApplication(folder, setting)


def watch_end(app: HostileApplication, cause: str, setting: Setting) -> Left:
    started = time.monotonic()
    CAUSES[cause](app)
    if cause in APPLICATION_ENDS:
        app.process.wait(PATIENCE)
    seconds = time.monotonic() - started
    survivors: list[str] = []
    if setting.backend is None and cause in CALL_ENDS:
        pass  # outside a daemon can hide from its call, as long as other calls run
    elif cause == "time-out":
        survivors = still_there(lambda: app.survivors(f"{app.mark}t"))
    elif cause == "cancel":
        survivors = still_there(lambda: [one for one in app.survivors() if not one.endswith(f"{app.mark[1:]}9 ")])
    elif cause in KEEPER_ENDS:
        survivors = still_there(app.survivors)
        assert app.ask("again") == "again 0\n"
    if cause not in APPLICATION_ENDS:
        app.tell("end")
        app.process.wait(PATIENCE)
    survivors = survivors or still_there(app.survivors)
    if cause in LEFT_TO_THE_NEXT_START:
        subprocess.run(app.argv(NEXT_START), env=app.env, check=True, timeout=PATIENCE)
    return Left(survivors, still_there(app.things), seconds)


def still_there(look: Callable[[], list[Any]]) -> list[Any]:
    """What is found even after everybody had their time."""
    end = time.monotonic() + SETTLED_WITHIN
    while (found := look()) and time.monotonic() < end:
        time.sleep(0.02)
    return found

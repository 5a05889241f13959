"""The self-test: what a backend really keeps in, found out by trying to get out of it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.process.common_folder import CommonFolder
from toolyard.process.interpreter import find_program
from toolyard.process.private_folders import SharedFolder
from toolyard.process.sandbox.backends.bubblewrap import private_git_folders
from toolyard.process.sandbox.git.nested import NestedRepositories
from toolyard.process.sandbox.git.workspace_repositories import WorkspaceRepositories
from toolyard.process.sandbox.layout import SandboxPaths, lay_out
from toolyard.process.sandbox.mount_points import make, move_unwanted
from toolyard.process.sandbox.policy import BACKENDS, SandboxPolicy
from toolyard.process.sandbox.self_test.cache import SelfTestResult
from toolyard.process.sandbox.self_test.tries import IN_GIT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.reach import Reach
    from toolyard.core.sandbox_properties import SandboxProperty
    from toolyard.process.sandbox.backends.confinement import Confinement, SandboxSupport
    from toolyard.process.sandbox.layout import Layout
    from toolyard.process.sandbox.policy import Backend


PIPE = subprocess.PIPE
PACKAGE_FOLDER = Path(__file__).parents[4]
END = b"\n"
START = "import sys; sys.path.append(sys.argv[1]); from toolyard.process.sandbox.self_test.tries import main; main()"
PATIENCE = 30.0
IPC_PRIVATE, IPC_RMID = 0, 0


def try_backend(backend: Backend | None, support: SandboxSupport) -> SelfTestResult:
    """Build a sandbox around a scene of our own and try every way out; with no backend, of nothing."""
    if backend and (reason := support.lacking(backend)):
        return SelfTestResult(open={}, failure=reason)
    try:
        # In a short place, because the path of a socket must be short.
        folder = tempfile.TemporaryDirectory(prefix="toolyard-scene-", dir=public_tmp())
        with folder, Scene(Path(folder.name)) as scene:
            return scene.run(backend, support)
    except OSError as error:
        return SelfTestResult(open={}, failure=f"the test could not be set up: {error}")


class Scene:
    """A home with secrets, a workspace, a repository, and somebody outside of everything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"toolyard-{secrets.token_hex(8)}"
        self._closing = contextlib.ExitStack()
        self._layout: Layout | None = None
        self._repositories: WorkspaceRepositories | None = None
        self._since = time.time()

    def __enter__(self) -> Scene:
        make_files(self.folder)
        self.tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "workspace" / "socket"))
        self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "workspace" / "datagrams"))
        self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.mark}")
        self.temporary = self._closing.enter_context(tempfile.NamedTemporaryFile("w", dir=public_tmp()))
        self.temporary.write("x")
        self.temporary.flush()
        self.victim = self._closing.enter_context(victim())
        self.memory = self._closing.enter_context(shared_memory())
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def run(self, backend: Backend | None, support: SandboxSupport) -> SelfTestResult:
        """Try everything inside, with each reach; what only shows outside is looked for afterwards."""
        looked = self._try_all("look", backend, support)  # first, while there is nothing of the others to be seen
        found = looked if isinstance(looked, SelfTestResult) else self._try_all("work", backend, support)
        if isinstance(looked, SelfTestResult) or isinstance(found, SelfTestResult):
            return found if isinstance(found, SelfTestResult) else SelfTestResult(open={}, failure="it was not tried")
        self._clean_up_as_outside()
        return SelfTestResult(open=self._and_outside(found | looked))

    def _try_all(
        self, reach: Reach, backend: Backend | None, support: SandboxSupport
    ) -> dict[SandboxProperty, list[str]] | SelfTestResult:
        """The ways out that are open with a reach; a result when it could not be tried."""
        confinement = self._confine(reach, backend, support) if backend else None
        described = json.dumps(self._described(reach, confinement))
        program = [sys.executable, "-I", "-S", "-c", START, str(PACKAGE_FOLDER)]
        try:
            with confinement.ready_prefix() if confinement else contextlib.nullcontext(()) as prefix:
                ran = supervised_run([*prefix, *program], described)
        except subprocess.SubprocessError as error:
            return SelfTestResult(open={}, failure=str(error))
        try:
            found: dict[SandboxProperty, list[str]] = json.loads(ran.stdout)
        except ValueError:
            said = ran.stderr.decode(errors="replace").strip().splitlines()
            return SelfTestResult(open={}, failure=said[-1] if said else f"it ended with status {ran.returncode}")
        return found

    def _confine(self, reach: Reach, backend: Backend, support: SandboxSupport) -> Confinement:
        shared, common = SharedFolder(), CommonFolder()
        self._closing.callback(shared.remove)
        self._closing.callback(common.remove)
        self._layout = layout = lay_out(self._paths())
        if reach == "look":
            return support.confinement(backend, layout.looking(), SandboxPolicy(looking=True), shared, common)
        if backend != "landlock":
            for path, content in layout.mount_points:
                make(path, content)
        confinement = support.confinement(backend, layout, SandboxPolicy(), shared, common)
        if backend != "landlock":
            folders = private_git_folders(layout, shared, common)
            self._repositories = WorkspaceRepositories(folders, [str(self.folder / "repository")])
            self._repositories.fill()
        return confinement

    def _clean_up_as_outside(self) -> None:
        """What is done after each call in a sandbox, whatever it is made of."""
        if self._repositories:
            self._repositories.exchange(at_end=True)
        if self._layout:
            move_unwanted(self._layout.unwanted)
            NestedRepositories([str(self.folder / "workspace")], self._since).sweep()

    def _and_outside(self, found: dict[SandboxProperty, list[str]]) -> dict[SandboxProperty, list[str]]:
        """Add what only somebody outside can see."""
        with contextlib.suppress(BlockingIOError):
            self.udp.recv(16)
            found["network"].append("send_udp")
        workspace = self.folder / "workspace"
        if (workspace / "toolyard.json").exists():
            found["obeyed"].append("leave_rules")
        if "fsmonitor" in (workspace / "nested" / ".git" / "config").read_text():
            found["obeyed"].append("plant_repository")
        git = self.folder / "repository" / ".git"
        git = moved if (moved := git.with_name(".git-old")).exists() else git
        written = {name: git.joinpath(*path) for name, path in IN_GIT_FOLDER.items()}
        found["protected"] += [name for name, path in written.items() if path.exists() and path.read_text() != "secret"]
        if (workspace / ".git" / "hooks").exists():
            found["protected"].append("make_repository")
        left = [name for name in os.listdir(public_tmp()) if name.startswith(self.mark)]
        if left:
            found["temporary"].append("leave_temporary_file")
        for name in left:
            os.unlink(os.path.join(public_tmp(), name))
        return found

    def _paths(self) -> SandboxPaths:
        return SandboxPaths(
            home=str(self.folder / "home"),
            workspace=[str(self.folder / "workspace"), str(self.folder / "repository")],
            protected=[str(self.folder / "workspace" / name) for name in ("store", "bin", "environment")],
            unseen=[str(self.folder / "workspace" / "state")],
        )

    def _described(self, reach: Reach, confinement: Confinement | None) -> dict[str, Any]:
        options = confinement.options if confinement else {}
        return {
            "reach": reach,
            **{name: str(self.folder / name) for name in ("home", "workspace", "repository", "outside")},
            **{name: str(self.folder / "workspace" / name) for name in ("store", "bin", "environment", "state")},
            "temporary": self.temporary.name,
            "tmp": confinement.tmp if confinement else public_tmp(),
            "mark": self.mark,
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "victim": self.victim,
            "memory": self.memory,
            "confine": options and options | {name: options[name].hex() for name in ("filter", "supervised")},
        }

    def _listen(self, family: int, kind: int, address: Any) -> socket.socket:
        listener = self._closing.enter_context(socket.socket(family, kind))
        listener.setblocking(False)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        return listener


def supervised_run(argv: list[str], described: str) -> subprocess.CompletedProcess[bytes]:
    """Run the tries, and connect sockets for them as for tools, once they are confined and hand out what that takes.

    They are told by their input: where root has very many files of its own, it is more than a word can hold.
    """
    from toolyard.process.sandbox.sockets.supervisor import ConnectSupervisor

    ours, theirs = socket.socketpair()
    with ours, contextlib.ExitStack() as closing:
        with theirs:
            process = subprocess.Popen(argv, stdin=theirs.fileno(), stdout=PIPE, stderr=PIPE, env={}, cwd="/")
        closing.callback(process.kill)
        ours.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            ours.sendall(described.encode() + END)
            _, fds, _, _ = socket.recv_fds(ours, 1, 2)
            if len(fds) == 2:
                closing.callback(ConnectSupervisor(fds[0], fds[1], lambda _: None).close)
        out, err = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def make_files(folder: Path) -> None:
    inside = [f"workspace/{name}" for name in ("store", "bin", "environment", "state")]
    for name in ("home/.ssh", *inside, "repository/.git/objects", "repository/.git/refs", "outside"):
        (folder / name).mkdir(parents=True)
    files = ("home/.ssh/key", "home/.netrc", "home/.bashrc", "home/other", "outside/file")
    for name in (
        *files,
        "repository/.git/config",
        "repository/.git/HEAD",
        "repository/toolyard.json",
        "workspace/state/lock",
        "workspace/kept",
    ):
        (folder / name).write_text("secret")
    with contextlib.suppress(OSError):  # a disk that knows no such thing keeps it too
        os.setxattr(folder / "home" / "other", "user.there", b"x")


@contextlib.contextmanager
def victim() -> Iterator[int]:
    """A process that has nothing to do with the sandbox; it ends when nobody holds its standard input any more."""
    with subprocess.Popen(
        [find_program("cat") or "/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={"SOME": "secret"}
    ) as process:
        yield process.pid


@contextlib.contextmanager
def shared_memory() -> Iterator[int]:
    """Memory that whoever has our rights can reach by its number; gone with the last who uses it."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.shmget(IPC_PRIVATE, 4096, 0o600)
    if number < 0:
        yield -1  # where there is none, none can be reached
        return
    try:
        yield number
    finally:
        libc.shmctl(number, IPC_RMID, None)


def public_tmp() -> str:
    return "/tmp"  # noqa: S108 - it is what the test is about


def main() -> None:
    """Try every backend as whoever runs this, and none at all, and print what was found."""
    from toolyard.process.sandbox.backends.confinement import find_support

    support = find_support()
    found = {backend or "none": try_backend(backend, support) for backend in (*BACKENDS, None)}
    sys.stdout.write(json.dumps({name: {"open": one.open, "failure": one.failure} for name, one in found.items()}))


if __name__ == "__main__":
    main()

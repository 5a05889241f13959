"""The real `toolyard` without the wait for its imports: one process makes them, and a fork of it becomes each command.

A command has a process, a folder, variables, descriptors and an end of its own, as when a shell starts it. Only its
interpreter is not a new one: a test for which that matters runs the program by its path.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

READ_AT_THE_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "MALLOC_")
"""How the variables begin that an interpreter reads only when it starts."""
PROGRAM = "toolyard.__main__"
PACKAGE = "toolyard"
APART = ("toolyard.builtin_plugins", "toolyard.kinds.mcp.", "toolyard.serve.")
"""All other modules are imported before any command is asked for. Of these a configuration names the first, and the
others need so much that every fork would take longer."""
ASK = """
import json, os, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect(sys.argv[1])
socket.send_fds(asked, [b"+"], [0, 1, 2])
request = {"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}
asked.sendall(json.dumps(request).encode() + b"\\n")
_, code = asked.makefile()
sys.exit(int(code) if int(code) >= 0 else 128 - int(code))
"""
"""What others start who know commands only: it has a fork do the work and ends as that does."""


class ForkedCommands:
    """Runs commands to their end, each in a fork of a process that is started for the first of them."""

    def __init__(self, program: Path, env: Mapping[str, str]) -> None:
        self._program = program
        self._env = dict(env)
        self._control: socket.socket | None = None
        self._starting = threading.Lock()

    def suit(self, env: Mapping[str, str], cwd: Path) -> bool:
        """Whether a fork is all that a new process would be."""
        return cwd.is_dir() and at_the_start(env) == at_the_start(self._env)

    def run(
        self, words: Sequence[str], *, stdin: bytes, env: Mapping[str, str], cwd: Path, timeout: float
    ) -> tuple[int, bytes, bytes]:
        """The exit code, as `subprocess` tells it, and what was printed."""
        with Conversation(self._connected(), self._request(words, env, cwd)) as command:
            return command.communicate(stdin, timeout)

    def start_on_terminal(
        self, words: Sequence[str], *, terminal: int, env: Mapping[str, str], cwd: Path
    ) -> OnTerminal:
        """One that has a terminal of its own and is not waited for."""
        request = self._request(words, env, cwd) | {"on_terminal": True}
        return OnTerminal(self._connected(), request, [terminal] * 3)

    def _request(self, words: Sequence[str], env: Mapping[str, str], cwd: Path) -> dict[str, Any]:
        return {"argv": [str(self._program), *words], "env": dict(env), "cwd": str(cwd)}

    def _connected(self) -> socket.socket:
        with self._starting:
            if self._control is None:
                self._control = self._start()
            return self._control

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, __file__, str(theirs.fileno())]
        # Pipes, as commands have them, for what Python thinks of its streams does not change with a fork.
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(argv, env=self._env, pass_fds=[theirs.fileno()], **pipes)
        theirs.close()
        atexit.register(end, process, ours)
        return ours


@contextlib.contextmanager
def forked_program(module: str, folder: Path, *, imported: Sequence[str] = ()) -> Iterator[list[str]]:
    """The words by which others start what the `run` of a module does, each time in a fork of one process."""
    place = folder / "program.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(128)
        argv = [sys.executable, __file__, str(listener.fileno()), module, *imported]
        with subprocess.Popen(argv, pass_fds=[listener.fileno()]) as process:
            try:
                yield [sys.executable, "-I", "-S", "-c", ASK, str(place)]
            finally:
                process.kill()


def end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    process.communicate(timeout=60)


def at_the_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_THE_START)}


class Started:
    """A command that was asked for, and the word of its end."""

    def __init__(self, control: socket.socket, request: Mapping[str, Any], standard: Sequence[int]) -> None:
        self._socket, theirs = socket.socketpair()
        socket.send_fds(control, [b"+"], [theirs.fileno(), *standard])
        theirs.close()
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        self._answers = self._socket.makefile("r")
        self.pid = int(self._answers.readline())

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


class OnTerminal(Started):
    """A command as `subprocess` would show it, as far as tests ask."""

    returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._socket], [], [], 0)[0]:
            self._take_end()
        return self.returncode

    def wait(self, timeout: float) -> int:
        if self.returncode is None and not select.select([self._socket], [], [], timeout)[0]:
            raise TimeoutError("the command has not ended")
        return self._take_end() if self.returncode is None else self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _take_end(self) -> int:
        self.returncode = int(self._answers.readline())
        self.close()
        return self.returncode


class Conversation(Started):
    """One command: what it is given, what it prints, and its end."""

    def __init__(self, control: socket.socket, request: Mapping[str, Any]) -> None:
        read_input, self._input = os.pipe()
        self._output, write_output = os.pipe()
        self._errors, write_errors = os.pipe()
        super().__init__(control, request, [read_input, write_output, write_errors])
        for descriptor in (read_input, write_output, write_errors):
            os.close(descriptor)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure:
            os.kill(self.pid, signal.SIGKILL)
        self.close()

    def communicate(self, stdin: bytes, timeout: float) -> tuple[int, bytes, bytes]:
        """Its exit code and what it printed, as soon as nobody holds its output any more."""
        deadline = time.monotonic() + timeout
        printed = {self._output: b"", self._errors: b""}
        with selectors.DefaultSelector() as selector:
            os.set_blocking(self._input, False)
            selector.register(self._input, selectors.EVENT_WRITE)
            for descriptor in printed:
                selector.register(descriptor, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(max(0, deadline - time.monotonic()))
                if not ready:
                    raise TimeoutError("the command has not ended")
                for key, _ in ready:
                    if key.fd == self._input:
                        stdin = give(key.fd, stdin)
                        finished = not stdin
                    else:
                        piece = os.read(key.fd, 1 << 16)
                        printed[key.fd] += piece
                        finished = not piece
                    if finished:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        self._socket.settimeout(max(0.001, deadline - time.monotonic()))
        return int(self._answers.readline()), printed[self._output], printed[self._errors]


def give(descriptor: int, data: bytes) -> bytes:
    """What remains of an input after as much as the pipe takes; nothing if nobody reads it."""
    try:
        return data[os.write(descriptor, data[: 1 << 16]) :] if data else b""
    except BrokenPipeError:
        return b""


def become_a_command(control: socket.socket) -> None:
    """Return in a new process for each request, and never in this one, which tells how they end."""
    running: dict[int, Running] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    is_asked = True
    while is_asked or running:
        for descriptor, _ in poll.poll():
            if ended := running.pop(descriptor, None):
                poll.unregister(descriptor)
                ended.tell()
                continue
            word, descriptors = next_request(control)
            if not word:
                poll.unregister(control)
                is_asked = False
                continue
            started = start(*descriptors)
            if started is None:
                return
            running[started.exit] = started
            poll.register(started.exit, select.POLLIN)
    os._exit(0)


def next_request(control: socket.socket) -> tuple[bytes, list[int]]:
    """Where to answer it, and its standard streams; an empty word when there will be none any more."""
    if not control.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        word, descriptors, *_ = socket.recv_fds(control, 1, 4)
        return word, descriptors
    connection, _ = control.accept()
    word, standard, *_ = socket.recv_fds(connection, 1, 3)
    return word, [connection.detach(), *standard]


class Running:
    """A command that has not ended, and who wants to know of its end."""

    def __init__(self, pid: int, client: socket.socket) -> None:
        self.exit = os.pidfd_open(pid)
        self._pid = pid
        self._client = client

    def tell(self) -> None:
        """Take note of its end; its processor time is ours then."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        os.close(self.exit)
        with self._client, contextlib.suppress(BrokenPipeError):  # who asked has gone
            self._client.sendall(b"%d\n" % code)


def start(answers: int, *standard: int) -> Running | None:
    """A new command; nothing in the process that becomes it."""
    client = socket.socket(fileno=answers)
    request = json.loads(client.makefile("rb").readline())
    pid = os.fork()
    if pid == 0:
        dress(client, standard, **request)
        return None
    for descriptor in standard:
        os.close(descriptor)
    return Running(pid, client)


def dress(
    client: socket.socket,
    standard: Sequence[int],
    *,
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    on_terminal: bool = False,
) -> None:
    """Make this process what a new one would be, and say so: it can be sent signals from now on."""
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    if on_terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[:] = argv
    sys.path[0] = os.path.dirname(argv[0])
    client.sendall(b"%d\n" % os.getpid())
    client.detach()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def modules_of(package: str) -> Iterator[str]:
    """All of a package, of which each command would import a part."""
    path = importlib.import_module(package).__path__
    return (found.name for found in pkgutil.walk_packages(path, f"{package}.") if not found.name.startswith(APART))


if __name__ == "__main__":
    given, *names = sys.argv[1:]
    names = names or [PROGRAM, *modules_of(PACKAGE)]
    for name in names:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or each command would copy what it only looks at for garbage
    become_a_command(socket.socket(fileno=int(given)))
    sys.exit(sys.modules[names[0]].run())

"""Sockets of one's own work inside; those of others are never reached, whatever is tried with them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import shlex
import socket
import sys

import pytest

from boxes import Box
from support import PATIENCE, need, need_backend
from toolyard.app import AgentApplication
from toolyard.process.sandbox.policy import PROPERTIES
from toolyard.process.sandbox.self_test.cache import SelfTest
from toolyard.process.sandbox.self_test.probe import try_backend
from toolyard.process.sandbox.sockets.supervisor import ConnectSupervisor

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
SERVER = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2]))
server.bind(sys.argv[1].replace("@", "\\0"))
server.listen()
if os.fork():
    client = socket.socket(socket.AF_UNIX, getattr(socket, sys.argv[2]))
    client.connect(sys.argv[1].replace("@", "\\0"))
    client.sendall(b"hello")
    print(client.recv(16).decode())
else:
    got, _ = server.accept()
    got.sendall(got.recv(16).upper())
"""
ATTEMPT = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
try:
    client.connect(sys.argv[1])
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""
SWAPPED_MEMORY = """
import ctypes, os, socket, struct, sys, threading
own, theirs = sys.argv[1:3]
server = socket.socket(socket.AF_UNIX); server.bind(own); server.listen(128)
server.setblocking(False)
names = [struct.pack("H", socket.AF_UNIX) + name.encode().ljust(106, b"\\0") for name in (own, theirs)]
address = ctypes.create_string_buffer(names[0], 108)
libc = ctypes.CDLL(None)
done = threading.Event()
def swap():
    while not done.is_set():
        for name in names:
            ctypes.memmove(address, name, 108)
threading.Thread(target=swap, daemon=True).start()
outcomes = set()
for _ in range(200):
    client = socket.socket(socket.AF_UNIX); client.setblocking(False)
    outcomes.add(libc.connect(client.fileno(), address, 108))
    client.close()
    try:
        server.accept()[0].close()
    except BlockingIOError:
        pass
done.set()
print(sorted(outcomes))
"""
SWAPPED_PATH = """
import os, socket, sys, threading
own, theirs, link = sys.argv[1:4]
server = socket.socket(socket.AF_UNIX); server.bind(own); server.listen(512)
done = threading.Event()
def swap():
    while not done.is_set():
        for name in (own, theirs):
            os.symlink(name, link + ".new"); os.rename(link + ".new", link)
os.symlink(own, link)
threading.Thread(target=swap, daemon=True).start()
outcomes = set()
for _ in range(200):
    with socket.socket(socket.AF_UNIX) as client:
        outcomes.add(client.connect_ex(link))
done.set()
print(sorted(outcomes))
"""
SWAPPED_DESCRIPTOR = """
import os, socket, sys, threading
theirs = sys.argv[1]
tcp = socket.socket(); tcp.bind(("127.0.0.1", 0)); tcp.listen(512)
one = socket.socket(); other = socket.socket(socket.AF_UNIX); used = os.dup(one.fileno())
done = threading.Event()
def swap():
    while not done.is_set():
        os.dup2(one.fileno(), used); os.dup2(other.fileno(), used)
threading.Thread(target=swap, daemon=True).start()
for _ in range(200):
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, used).connect(theirs)
    except OSError:
        pass
    used = os.dup(one.fileno())
done.set()
print("tried")
"""
UNTIL_STOPPED = """
import os, socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(); server.settimeout(0.05)
visitors = 0
while not os.path.exists("stop"):
    try:
        server.accept()
        visitors += 1
    except TimeoutError:
        pass
print(visitors)
"""
DATAGRAMS = """
import socket
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        socket.socket(socket.AF_UNIX, kind)
    except OSError as error:
        print(type(error).__name__)
"""
SPEAK_AS_KERNEL = """
import socket
with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
    server.bind("asked.sock")
    server.listen()
    client.connect("asked.sock")
numbers = [int(line.split()[2]) for line in open("/proc/net/netlink").readlines()[1:] if line.split()[1] == "4"]
other = next(number for number in numbers if number)
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as speaker:
    for attempt in (lambda: speaker.connect((other, 0)), lambda: speaker.sendto(bytes(16), (other, 0))):
        try:
            attempt()
            print("spoke")
        except OSError as error:
            print(type(error).__name__)
"""
MANAGER = """
from multiprocessing import Manager
with Manager() as manager:
    print(manager.list([1, 2]))
"""


@pytest.fixture(params=["bubblewrap", "bubblewrap-pids"])
def backend(request):
    return need_backend(request.param)


@pytest.fixture
async def box(tmp_path):
    box = Box(tmp_path.resolve())
    yield box
    for children in box.open:
        await children.aclose()


class Outsider:
    """A server of the owner's, at a path; who came is told afterwards."""

    def __init__(self, path) -> None:
        self.path = str(path)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.path)
        self._server.listen(512)
        self._server.setblocking(False)

    def visitors(self) -> int:
        count = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                self._server.accept()[0].close()
                count += 1
        return count

    def close(self) -> None:
        self._server.close()


@pytest.fixture(params=["work", "home"])
def outsider(request, box):
    server = Outsider((box.workspace if request.param == "work" else box.home) / "owner.sock")
    yield server
    server.close()


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_SEQPACKET"])
@pytest.mark.parametrize("path", ["own.sock", "/tmp/own.sock", "@own"])
async def test_who_is_inside_can_have_sockets_among_themselves(box, backend, kind, path):
    outcome = await box.python(box.children(backend), SERVER, path, kind)
    assert outcome.stdout.text.strip() == "HELLO", outcome.stderr.text


async def test_a_server_of_the_owner_is_not_reached(box, backend, outsider):
    children = box.children(backend)
    outcome = await box.python(children, ATTEMPT, outsider.path)
    assert outcome.stdout.text.strip() == "PermissionError"
    assert children.sandbox.connections.take_refused_sockets() == [outsider.path]
    assert outsider.visitors() == 0


async def test_what_the_owners_variables_name_is_not_reached(tmp_path, monkeypatch):
    """An agent with keys, the daemon of containers, the bus of the desktop: wherever they are."""
    need_backend("bubblewrap", "bubblewrap-pids")
    folder = tmp_path.resolve()
    for name in ("home/.docker/run", "work", "run"):
        (folder / name).mkdir(parents=True)
    named = {
        "SSH_AUTH_SOCK": folder / "run" / "agent.sock",
        "DOCKER_HOST": folder / "home" / ".docker" / "run" / "docker.sock",
        "DBUS_SESSION_BUS_ADDRESS": folder / "work" / "bus",
    }
    owners = [Outsider(path) for path in named.values()]
    for name, path in named.items():
        monkeypatch.setenv(name, f"unix://{path}" if name == "DOCKER_HOST" else str(path))
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.chdir(folder / "work")
    config = {"plugins": ["shell:command"]}
    async with AgentApplication(config, folder / "sessions") as app:
        for path in named.values():
            command = f"{sys.executable} -I -S -c {shlex.quote(ATTEMPT)} {path}"
            result = await app.call_tool("shell", {"command": command, "timeout": 30})
            assert result.data["stdout"].strip() in ("PermissionError", "FileNotFoundError"), result.text
        told = await app.call_tool("shell", {"command": "ssh-add -l; echo agent=$SSH_AUTH_SOCK", "timeout": 30})
    assert "agent=\n" in told.data["stdout"]
    assert [owner.visitors() for owner in owners] == [0, 0, 0]
    for owner in owners:
        owner.close()


@pytest.mark.parametrize("trick", ["ln {path} other", "mv {path} other", "ln -s {path} other", "cp -a {path} other"])
async def test_nor_by_another_name(box, trick):
    outsider = Outsider(box.workspace / "owner.sock")
    children = box.children(need_backend("bubblewrap", "bubblewrap-pids"))
    await box.bash(children, trick.format(path=outsider.path))
    outcome = await box.python(children, ATTEMPT, "other")
    assert outcome.stdout.text.strip() in ("PermissionError", "ConnectionRefusedError"), outcome.stderr.text
    assert outsider.visitors() == 0
    outsider.close()


@pytest.mark.parametrize("path", ["/proc/self/root{path}", "/proc/1/root{path}", "/proc/self/cwd/owner.sock"])
async def test_nor_by_way_of_a_process(box, path):
    outsider = Outsider(box.workspace / "owner.sock")
    outcome = await box.python(box.mounts(), ATTEMPT, path.format(path=outsider.path))
    assert outcome.stdout.text.strip() != "reached"
    assert outsider.visitors() == 0
    outsider.close()


async def test_an_address_that_changes_while_it_is_looked_at_changes_nothing(box, outsider):
    outcome = await box.python(box.mounts(), SWAPPED_MEMORY, "/tmp/own.sock", outsider.path)
    assert outcome.stdout.text.strip() in ("[-1, 0]", "[-1]", "[0]"), outcome.stderr.text
    assert outsider.visitors() == 0


async def test_nor_does_a_link_that_changes_nor_a_descriptor_that_does(box, outsider):
    children = box.mounts()
    outcome = await box.python(children, SWAPPED_PATH, "/tmp/own.sock", outsider.path, "/tmp/link")
    assert outcome.stdout.text, outcome.stderr.text
    outcome = await box.python(children, SWAPPED_DESCRIPTOR, outsider.path)
    assert outcome.stdout.text.strip() == "tried", outcome.stderr.text
    assert outsider.visitors() == 0


async def test_a_socket_that_a_server_left_behind_is_what_it_is_outside(box):
    """Servers that start again rely on being told that nobody listens."""
    left = "import socket; socket.socket(socket.AF_UNIX).bind('left.sock')"
    children = box.mounts()
    await box.python(children, left)
    outcome = await box.python(children, ATTEMPT, "left.sock")
    assert outcome.stdout.text.strip() == "ConnectionRefusedError"
    assert children.sandbox.connections.take_refused_sockets() == []


async def test_a_server_of_another_sandbox_is_one_of_others(box):
    waiting = asyncio.create_task(box.python(box.mounts(), UNTIL_STOPPED, "shared.sock"))
    async with asyncio.timeout(PATIENCE):
        while not (box.workspace / "shared.sock").exists():
            await asyncio.sleep(0.01)
    outcome = await box.python(box.mounts(), ATTEMPT, str(box.workspace / "shared.sock"))
    (box.workspace / "stop").touch()
    assert outcome.stdout.text.strip() == "ConnectionRefusedError"
    assert (await waiting).stdout.text.strip() == "0"


async def test_datagrams_which_need_no_connection_are_off(box):
    outcome = await box.python(box.mounts(), DATAGRAMS)
    assert outcome.stdout.text.split() == ["PermissionError"] * 2


async def test_nobody_can_speak_in_the_place_of_the_kernel(box):
    """We ask it over a socket that whoever is inside can find; it is we who connect theirs, with our rights."""
    children = box.mounts()
    outcome = await box.python(children, SPEAK_AS_KERNEL)
    assert outcome.stdout.text.split() == ["PermissionError"] * 2, outcome.stderr.text


async def test_a_server_that_takes_nobody_stops_nobody_else(box):
    """Those who wait for it wait by themselves; all end with their sandbox."""
    source = """
import os, socket, threading
full = socket.socket(socket.AF_UNIX); full.bind("full.sock"); full.listen(0)
def wait():
    try:
        socket.socket(socket.AF_UNIX).connect("full.sock")
    except OSError:
        pass
for _ in range(20):
    threading.Thread(target=wait, daemon=True).start()
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
socket.create_connection(server.getsockname(), 30).close()
print("connected", flush=True)
os._exit(0)
"""
    outcome = await box.python(box.mounts(), source)
    assert outcome.stdout.text.strip() == "connected", outcome.stderr.text


async def test_names_are_looked_up_and_servers_reached_as_before(box):
    source = """
import errno, socket
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
client = socket.socket(); client.setblocking(False)
print(client.connect_ex(server.getsockname()) in (0, errno.EINPROGRESS))
print(socket.socket().connect_ex(("127.0.0.1", 1)) == errno.ECONNREFUSED)
print(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect_ex(("127.0.0.1", 9)) == 0)
print(socket.socket().connect_ex(("203.0.113.1", 80)) in (errno.ENETUNREACH, errno.EHOSTUNREACH))
"""
    outcome = await box.python(box.mounts(), source)
    assert outcome.stdout.text.split() == ["True"] * 4, outcome.stderr.text


def test_the_self_test_sees_when_the_supervisor_lets_others_be_reached(monkeypatch, backend):
    monkeypatch.setattr(ConnectSupervisor, "_is_inside", lambda *_: True)
    found = try_backend(backend, SelfTest().support)
    assert found.open["sockets"] == ["connect_socket_file"]
    assert set(found.held) == {*PROPERTIES} - {"sockets"}


def test_the_self_test_sees_when_nobody_connects_anything(monkeypatch, backend):
    monkeypatch.setattr(ConnectSupervisor, "_connect", lambda *_: errno.EACCES)
    assert try_backend(backend, SelfTest().support).open["sockets"] == ["cannot_connect_own_socket"]


async def test_programs_that_live_by_sockets_work(box):
    need("tmux")
    need("ssh-agent")
    children = box.mounts()
    script = """
        tmux -L box new -d 'sleep 5' && tmux -L box ls && tmux -L box kill-server
        eval "$(ssh-agent)" >/dev/null && ssh-add -l; kill $SSH_AGENT_PID
    """
    outcome = await box.bash(children, script, env=box.env | {b"TERM": b"xterm", b"SHELL": b"/bin/sh"})
    assert "1 windows" in outcome.stdout.text, outcome.stderr.text
    assert "The agent has no identities" in outcome.stdout.text
    outcome = await box.python(children, MANAGER)
    assert outcome.stdout.text.strip() == "[1, 2]", outcome.stderr.text

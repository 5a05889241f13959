"""Run inside a sandbox: try to get out by every way that a property of it closes, and say which were open.

This is the program of the self-test, so it must itself do what it tries. Nothing it does can harm: it writes only what
the scene of the test holds, signals and reads only the test's own processes, and asks for namespaces in children that
end at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID = 0x10000000, 0x00020000, 0x20000000
NETLINK_CONNECTOR = 11
PATIENCE = 2.0


def main() -> None:
    """Read the scene, confine ourselves as a keeper would, try everything, print what was open."""
    scene: dict[str, Any] = json.loads(sys.argv[-1])
    if options := scene["confine"]:
        from toolyard.process.sandbox.backends.kernel import confine

        encoded = {name: [os.fsencode(path) for path in options[name]] for name in ("readable", "writable")}
        confine(**(options | encoded | {"filter": bytes.fromhex(options["filter"])}))
    libc = ctypes.CDLL(None, use_errno=True)
    sys.stdout.write(json.dumps({name: opened(tries, scene, libc) for name, tries in TRIES.items()}))


def opened(
    tries: list[Callable[[dict[str, Any], ctypes.CDLL], bool]], scene: dict[str, Any], libc: ctypes.CDLL
) -> list[str]:
    """The names of the tries that succeeded."""
    return [each.__name__ for each in tries if succeeds(each, scene, libc)]


def succeeds(attempt: Callable[[dict[str, Any], ctypes.CDLL], bool], scene: dict[str, Any], libc: ctypes.CDLL) -> bool:
    try:
        return attempt(scene, libc)
    except OSError:
        return False


# --- files


def write_new_file_outside(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["outside"], "new"), "w") as file:
        file.write("x")
    return True


def change_file_outside(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["outside"], "file"), "a") as file:
        file.write("x")
    return True


def remove_file_outside(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.unlink(os.path.join(scene["outside"], "file"))
    return True


def link_out_of_the_workspace(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    way = os.path.join(scene["workspace"], "way")
    os.symlink(scene["outside"], way)
    with open(os.path.join(way, "linked"), "w") as file:
        file.write("x")
    return True


def write_into_home(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["home"], ".bashrc"), "w") as file:
        file.write("x")
    return True


def cannot_write_workspace(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    try:
        with open(os.path.join(scene["workspace"], "own"), "w") as file:
            file.write("x")
    except OSError:
        return True
    return False


def change_rights_outside(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.chmod(os.path.join(scene["outside"], "other"), 0o640)
    return True


def change_rights_by_handle(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    fd = os.open(os.path.join(scene["outside"], "other"), os.O_RDONLY)
    try:
        os.fchmod(fd, 0o640)
    finally:
        os.close(fd)
    return True


def change_times_outside(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.utime(os.path.join(scene["outside"], "other"), (1, 1))
    return True


def read_secret(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["home"], ".ssh", "key")) as file:
        return "secret" in file.read()


def read_secret_file(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["home"], ".netrc")) as file:
        return "secret" in file.read()


def read_shadow(_: dict[str, Any], __: ctypes.CDLL) -> bool:
    with open("/etc/shadow") as file:
        return ":" in file.read()


def read_secret_through_a_process(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(f"/proc/{scene['victim']}/root{scene['home']}/.ssh/key") as file:
        return "secret" in file.read()


def write_hook(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.makedirs(os.path.join(scene["repository"], ".git", "hooks"), exist_ok=True)
    with open(os.path.join(scene["repository"], ".git", "hooks", "pre-commit"), "w") as file:
        file.write("x")
    return True


def write_git_config(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["repository"], ".git", "config"), "a") as file:
        file.write("x")
    return True


def put_repository_elsewhere(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    """Git takes hooks and configuration from where this file says."""
    with open(os.path.join(scene["repository"], ".git", "commondir"), "w") as file:
        file.write("../elsewhere")
    return True


def move_repository_away(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    git = os.path.join(scene["repository"], ".git")
    os.rename(git, git + "-old")
    return True


def make_repository(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.makedirs(os.path.join(scene["workspace"], ".git", "hooks"))
    return True


def write_rules(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["repository"], "toolyard.json"), "a") as file:
        file.write("x")
    return True


def replace_rules(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    other = os.path.join(scene["repository"], "other.json")
    with open(other, "w") as file:
        file.write("x")
    os.rename(other, os.path.join(scene["repository"], "toolyard.json"))
    return True


def write_store(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(os.path.join(scene["store"], "audit.ndjson"), "a") as file:
        file.write("x")
    return True


def see_foreign_temporary_file(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(scene["temporary"]) as file:
        return bool(file.read())


def leave_temporary_file(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    """Looked for from outside; here it only has to be possible somewhere, or nothing much works."""
    import tempfile

    tempfile.tempdir = scene["tmp"]
    try:
        with tempfile.NamedTemporaryFile(prefix=scene["mark"], delete=False):
            return False
    except OSError:
        return True


# --- network and sockets


def connect_tcp(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    socket.create_connection(("127.0.0.1", scene["tcp"]), PATIENCE).close()
    return True


def send_udp(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    """Whether it arrives is seen from outside: in a network of its own the sandbox may send what it likes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"udp", ("127.0.0.1", scene["udp"]))
    return False


def open_raw_socket(_: dict[str, Any], __: ctypes.CDLL) -> bool:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True


def open_packet_socket(_: dict[str, Any], __: ctypes.CDLL) -> bool:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


def connect_socket_file(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.path.join(scene["workspace"], "socket"))
    return True


def connect_abstract_socket(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + scene["mark"])
    return True


def send_datagram_from_a_pair(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        one.sendto(b"x", os.path.join(scene["workspace"], "datagrams"))
    return True


def send_datagram_from_a_raw_pair(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    """For the kernel this is a pair of datagrams too."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)
    with one, other:
        one.sendto(b"x", os.path.join(scene["workspace"], "datagrams"))
    return True


def reach_shared_memory(scene: dict[str, Any], libc: ctypes.CDLL) -> bool:
    libc.shmat.restype = ctypes.c_void_p
    place = libc.shmat(scene["memory"], None, 0)
    return place not in (None, ctypes.c_void_p(-1).value)


def hear_of_other_processes(_: dict[str, Any], __: ctypes.CDLL) -> bool:
    """The kernel tells there what is started, to whoever may ask."""
    socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR).close()
    return True


# --- processes


def signal_process(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.kill(scene["victim"], 0)
    return True


def signal_by_handle(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    handle = os.pidfd_open(scene["victim"])
    try:
        signal.pidfd_send_signal(handle, 0)
    finally:
        os.close(handle)
    return True


def limit_process(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    """One on processor time would end it; this one changes nothing."""
    import resource

    resource.prlimit(scene["victim"], resource.RLIMIT_CPU, resource.prlimit(scene["victim"], resource.RLIMIT_CPU))
    return True


def slow_process_down(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.setpriority(os.PRIO_PROCESS, scene["victim"], os.getpriority(os.PRIO_PROCESS, scene["victim"]))
    return True


def bind_process_to_a_processor(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    os.sched_setaffinity(scene["victim"], os.sched_getaffinity(scene["victim"]))
    return True


def read_environment(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(f"/proc/{scene['victim']}/environ", "rb") as file:
        return bool(file.read())


def read_memory_map(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    with open(f"/proc/{scene['victim']}/maps", "rb") as file:
        return bool(file.read())


def attach_debugger(scene: dict[str, Any], libc: ctypes.CDLL) -> bool:
    if libc.ptrace(PTRACE_ATTACH, scene["victim"], None, None) != 0:
        return False
    os.waitpid(scene["victim"], WALL)
    libc.ptrace(PTRACE_DETACH, scene["victim"], None, None)
    return True


# --- privileges


def have_capabilities(_: dict[str, Any], __: ctypes.CDLL) -> bool:
    with open("/proc/self/status") as file:
        lines = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    return any(int(lines[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))


def gain_privileges_by_a_program(_: dict[str, Any], __: ctypes.CDLL) -> bool:
    with open("/proc/self/status") as file:
        return "NoNewPrivs:\t1" not in file.read()


def make_user_namespace(_: dict[str, Any], libc: ctypes.CDLL) -> bool:
    return in_child(lambda: libc.unshare(CLONE_NEWUSER) == 0)


def make_mount_namespace(_: dict[str, Any], libc: ctypes.CDLL) -> bool:
    return in_child(lambda: libc.unshare(CLONE_NEWNS) == 0)


def mount_something(scene: dict[str, Any], libc: ctypes.CDLL) -> bool:
    """Of a kind that there is not: the kernel looks first at who asks."""
    target = os.fsencode(scene["workspace"])
    return libc.mount(b"none", target, b"no-such-kind", 0, None) != 0 and ctypes.get_errno() == errno.ENODEV


def unmount_something(scene: dict[str, Any], libc: ctypes.CDLL) -> bool:
    """What is not mounted: the kernel looks first at who asks."""
    return libc.umount2(os.fsencode(scene["outside"]), 0) != 0 and ctypes.get_errno() == errno.EINVAL


def change_root(scene: dict[str, Any], libc: ctypes.CDLL) -> bool:
    return in_child(lambda: libc.chroot(os.fsencode(scene["workspace"])) == 0)


def type_on_a_terminal(_: dict[str, Any], __: ctypes.CDLL) -> bool:
    import fcntl

    ours, theirs = os.openpty()
    with contextlib.closing(os.fdopen(ours)), contextlib.closing(os.fdopen(theirs)):
        fcntl.ioctl(theirs, 0x5412, b"x")
    return True


def leave_rights_of_the_owner(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    """A program that lends its owner's rights to whoever runs it."""
    path = os.path.join(scene["workspace"], "lent")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o4755))
    return True


def give_rights_of_the_owner(scene: dict[str, Any], _: ctypes.CDLL) -> bool:
    path = os.path.join(scene["workspace"], "given")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755))
    os.chmod(path, 0o4755)  # noqa: S103 - which must fail
    return True


def in_child(attempt: Callable[[], bool]) -> bool:
    """Whether it works, seen in a process that ends at once."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if attempt() else 1)
    return os.waitpid(pid, 0)[1] == 0


TRIES: dict[str, list[Callable[[dict[str, Any], ctypes.CDLL], bool]]] = {
    "writes": [
        *(cannot_write_workspace, write_new_file_outside, change_file_outside, remove_file_outside),
        *(link_out_of_the_workspace, write_into_home),
    ],
    "attributes": [change_rights_outside, change_rights_by_handle, change_times_outside],
    "secrets": [read_secret, read_secret_file, read_shadow, read_secret_through_a_process],
    "protected": [
        *(write_hook, write_git_config, put_repository_elsewhere, move_repository_away, make_repository, write_rules),
        *(replace_rules, write_store),
    ],
    "network": [connect_tcp, send_udp, open_raw_socket, open_packet_socket],
    "sockets": [
        *(connect_socket_file, connect_abstract_socket, send_datagram_from_a_pair, send_datagram_from_a_raw_pair),
        *(reach_shared_memory, hear_of_other_processes),
    ],
    "processes": [
        *(signal_process, signal_by_handle, limit_process, slow_process_down, bind_process_to_a_processor),
        *(read_environment, read_memory_map, attach_debugger),
    ],
    "temporary": [see_foreign_temporary_file, leave_temporary_file],
    "privileges": [
        *(have_capabilities, gain_privileges_by_a_program, make_user_namespace, make_mount_namespace),
        *(mount_something, unmount_something, change_root, type_on_a_terminal),
        *(leave_rights_of_the_owner, give_rights_of_the_owner),
    ],
}
"""Each property and the ways that it closes."""

"""The program that runs inside a sandbox and tries every way out that a property of it closes, and says which are open.

It really does what it tries, but harms nothing: it writes only files of the test, signals and reads only processes of
the test, and asks for namespaces in children that end at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Scene: TypeAlias = dict[str, Any]
    Try: TypeAlias = Callable[[Scene], bool | None]


PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x00020000
NETLINK_CONNECTOR = 11
GET_FLAGS, SET_FLAGS, NO_DUMP = 0x80086601, 0x40086602, 0x40
ACCESS_LIST_NAME = "system.posix_acl_access"
ACCESS_LIST = bytes.fromhex("02000000 01000600ffffffff 04000400ffffffff 20000000ffffffff")
"""The owner may read and write, the group read, others nothing."""
PATIENCE = 2.0


def main() -> None:
    """Read the scene, confine ourselves as a keeper would, try everything, print what was open."""
    with open(0, "rb", closefd=False) as told:
        scene: Scene = json.loads(told.readline())
    if options := scene["confine"]:
        from toolyard.process.sandbox.backends.kernel import confine

        encoded = {name: [os.fsencode(path) for path in options[name]] for name in ("readable", "writable")}
        programs = {name: bytes.fromhex(options[name]) for name in ("filter", "supervised")}
        confined = confine(**(options | encoded | programs))
        hand_out(confined.supervision)
    all_tries = TRIES if scene["reach"] == "work" else LOOKING
    opened = {name: [way for way, each in tries.items() if succeeds(each, scene)] for name, tries in all_tries.items()}
    sys.stdout.write(json.dumps(opened))


def hand_out(supervision: list[int]) -> None:
    """Give what it takes to connect sockets for us to whoever started us, by our standard input."""
    with socket.socket(fileno=0) as starter:
        socket.send_fds(starter, [b"x"], supervision)
        starter.detach()
    for fd in supervision:
        os.close(fd)


IN_GIT_FOLDER = {
    "write_hook": ("hooks", "pre-commit"),
    "write_git_config": ("config",),
    # Git outside writes this file and then moves it into the place of its configuration.
    "write_what_git_moves_into_place": ("config.lock",),
    # Git takes hooks and configuration from where this file says.
    "put_repository_elsewhere": ("commondir",),
}


def succeeds(attempt: Try, scene: Scene) -> bool:
    """Whether a try raises no error, and does not itself say that it failed."""
    try:
        return attempt(scene) is not False
    except OSError:
        return False


def write(*where: str, mode: str = "w") -> None:
    with open(os.path.join(*where), mode) as file:
        file.write("x")


def read(*where: str) -> str:
    with open(os.path.join(*where)) as file:
        return file.read()


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def link_out_of_the_workspace(scene: Scene) -> None:
    way = os.path.join(scene["workspace"], "way")
    os.symlink(scene["outside"], way)
    write(way, "linked")


def other(scene: Scene) -> str:
    """A file outside that belongs to whoever runs the test, and that may be read."""
    return os.path.join(scene["home"], "other")


def by_handle(change: Callable[[int], object], scene: Scene) -> None:
    """Change a file that is open for reading."""
    fd = os.open(other(scene), os.O_RDONLY)
    try:
        change(fd)
    finally:
        os.close(fd)


def change_flags(fd: int) -> None:
    """Set that a file is not to be backed up, if it is not set already."""
    import fcntl

    before = fcntl.ioctl(fd, GET_FLAGS, bytes(8))
    changed = int.from_bytes(before, sys.byteorder) | NO_DUMP
    fcntl.ioctl(fd, SET_FLAGS, changed.to_bytes(8, sys.byteorder))


def write_in_git_folder(scene: Scene, names: tuple[str, ...]) -> bool:
    """It can be done where git inside has a folder of its own; whether it is in the real one is looked for outside."""
    path = os.path.join(scene["repository"], ".git", *names)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, mode="a")
    return False


def make_repository(scene: Scene) -> bool:
    """Looked for from outside, too."""
    os.makedirs(os.path.join(scene["workspace"], ".git", "hooks"))
    return False


def move_repository_away(scene: Scene) -> None:
    git = os.path.join(scene["repository"], ".git")
    os.rename(git, git + "-old")


def replace_rules(scene: Scene) -> None:
    other = os.path.join(scene["repository"], "other.json")
    write(other)
    os.rename(other, os.path.join(scene["repository"], "toolyard.json"))


def lock_what_is_locked_outside(scene: Scene) -> None:
    import fcntl

    with open(os.path.join(scene["state"], "lock")) as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def plant_repository(scene: Scene) -> bool:
    """It can be made; what git would run of it is looked for from outside."""
    git = os.path.join(scene["workspace"], "nested", ".git")
    for name in ("objects", "refs"):
        os.makedirs(os.path.join(git, name))
    for name, text in (("HEAD", "ref: refs/heads/x\n"), ("config", "[core]\n\tfsmonitor = evil\n")):
        with open(os.path.join(git, name), "w") as file:
            file.write(text)
    return False


def leave_rules(scene: Scene) -> bool:
    """Looked for from outside, too."""
    write(scene["workspace"], "toolyard.json")
    return False


def leave_temporary_file(scene: Scene) -> bool:
    """Looked for from outside; here it only has to be possible somewhere, or nothing much works."""
    import tempfile

    tempfile.tempdir = scene["tmp"]
    try:
        with tempfile.NamedTemporaryFile(prefix=scene["mark"], delete=False):
            return False
    except OSError:
        return True


def send_udp(scene: Scene) -> bool:
    """Whether it arrives is seen from outside: in a network of its own the sandbox may send what it likes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"udp", ("127.0.0.1", scene["udp"]))
    return False


def connect(address: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(address)


def is_supervised(scene: Scene) -> bool:
    return bool(scene["confine"] and scene["confine"]["supervised"])


def connect_own(scene: Scene) -> None:
    """Whoever connects sockets for us must do so, or nothing much works."""
    path = os.path.join(scene["tmp"], f"own-{scene['mark']}")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as other:
        socket.create_connection(server.getsockname(), PATIENCE).close()
        other.bind(path)
        other.listen()
        connect(path)
    os.unlink(path)


def send_datagram_from_pair(kind: int, scene: Scene) -> None:
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    with one, other:
        one.sendto(b"x", os.path.join(scene["workspace"], "datagrams"))


def reach_shared_memory(scene: Scene) -> bool:
    shmat = libc().shmat
    shmat.restype = ctypes.c_void_p
    return shmat(scene["memory"], None, 0) not in (None, ctypes.c_void_p(-1).value)


def signal_by_handle(scene: Scene) -> None:
    handle = os.pidfd_open(scene["victim"])
    try:
        signal.pidfd_send_signal(handle, 0)
    finally:
        os.close(handle)


def limit_process(scene: Scene) -> None:
    """One on processor time would end it; this one changes nothing."""
    import resource

    resource.prlimit(scene["victim"], resource.RLIMIT_CPU, resource.prlimit(scene["victim"], resource.RLIMIT_CPU))


def slow_process_down(scene: Scene) -> None:
    os.setpriority(os.PRIO_PROCESS, scene["victim"], os.getpriority(os.PRIO_PROCESS, scene["victim"]))


def look_into_process(scene: Scene, name: str) -> bool:
    with open(f"/proc/{scene['victim']}/{name}", "rb") as file:
        return bool(file.read())


def attach_debugger(scene: Scene) -> bool:
    if libc().ptrace(PTRACE_ATTACH, scene["victim"], None, None) != 0:
        return False
    os.waitpid(scene["victim"], WALL)
    libc().ptrace(PTRACE_DETACH, scene["victim"], None, None)
    return True


def have_capabilities(_: Scene) -> bool:
    lines = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines() if ":\t" in line)
    return any(int(lines[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))


def mount_something(scene: Scene) -> bool:
    """Of a kind that there is not: the kernel looks first at who asks."""
    target = os.fsencode(scene["workspace"])
    return libc().mount(b"none", target, b"no-such-kind", 0, None) != 0 and ctypes.get_errno() == errno.ENODEV


def unmount_something(scene: Scene) -> bool:
    """What is not mounted: the kernel looks first at who asks."""
    return libc().umount2(os.fsencode(scene["outside"]), 0) != 0 and ctypes.get_errno() == errno.EINVAL


def type_on_a_terminal(_: Scene) -> None:
    import fcntl

    ours, theirs = os.openpty()
    with contextlib.closing(os.fdopen(ours)), contextlib.closing(os.fdopen(theirs)):
        fcntl.ioctl(theirs, 0x5412, b"x")


def leave_lent_rights(scene: Scene, mode: int) -> bool:
    """A program that lends its owner's or its group's rights to whoever runs it, made so from its beginning."""
    path = os.path.join(scene["workspace"], f"left{mode:o}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, mode))
    return os.stat(path).st_mode & mode & 0o6000 != 0


def give_lent_rights(scene: Scene, mode: int) -> bool:
    """The same by a change of what is there."""
    path = os.path.join(scene["workspace"], f"given{mode:o}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755))
    os.chmod(path, mode)
    return os.stat(path).st_mode & mode & 0o6000 != 0


def in_child(attempt: Callable[[], bool]) -> bool:
    """Whether it works, seen in a process that ends at once."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if attempt() else 1)
    return os.waitpid(pid, 0)[1] == 0


TRIES: dict[str, dict[str, Try]] = {
    "writes": {
        "cannot_write_workspace": lambda scene: not succeeds(lambda scene: write(scene["workspace"], "own"), scene),
        "write_new_file_outside": lambda scene: write(scene["outside"], "new"),
        "change_file_outside": lambda scene: write(scene["outside"], "file", mode="a"),
        "remove_file_outside": lambda scene: os.unlink(os.path.join(scene["outside"], "file")),
        "link_out_of_the_workspace": link_out_of_the_workspace,
        "write_into_home": lambda scene: write(scene["home"], ".bashrc"),
    },
    "attributes": {
        "change_rights_outside": lambda scene: os.chmod(other(scene), 0o640),
        "change_rights_by_handle": lambda scene: by_handle(lambda fd: os.fchmod(fd, 0o640), scene),
        "change_times_outside": lambda scene: os.utime(other(scene), (1, 1)),
        "change_times_by_handle": lambda scene: by_handle(lambda fd: os.utime(fd, (1, 1)), scene),
        # To ourselves, but to a group of ours it could be another.
        "change_owner_outside": lambda scene: os.chown(other(scene), os.getuid(), os.getgid()),
        "change_owner_by_handle": lambda scene: by_handle(lambda fd: os.fchown(fd, -1, os.getgid()), scene),
        "change_access_list_outside": lambda scene: os.setxattr(other(scene), ACCESS_LIST_NAME, ACCESS_LIST),
        "change_access_list_by_handle": lambda scene: by_handle(
            lambda fd: os.setxattr(fd, ACCESS_LIST_NAME, ACCESS_LIST), scene
        ),
        "set_attribute_outside": lambda scene: os.setxattr(other(scene), "user.made", b"x"),
        "set_attribute_by_handle": lambda scene: by_handle(lambda fd: os.setxattr(fd, "user.made", b"x"), scene),
        "remove_attribute_outside": lambda scene: os.removexattr(other(scene), "user.there"),
        "change_flags_outside": lambda scene: by_handle(change_flags, scene),
    },
    "secrets": {
        "read_secret": lambda scene: "secret" in read(scene["home"], ".ssh", "key"),
        "read_secret_file": lambda scene: "secret" in read(scene["home"], ".netrc"),
        "read_shadow": lambda _: ":" in read("/etc/shadow"),
        "read_secret_through_a_process": lambda scene: (
            "secret" in read(f"/proc/{scene['victim']}/root{scene['home']}/.ssh/key")
        ),
    },
    "protected": {
        **{name: functools.partial(write_in_git_folder, names=path) for name, path in IN_GIT_FOLDER.items()},
        "move_repository_away": move_repository_away,
        "make_repository": make_repository,
        "write_rules": lambda scene: write(scene["repository"], "toolyard.json", mode="a"),
        "replace_rules": replace_rules,
        "write_store": lambda scene: write(scene["store"], "audit.ndjson", mode="a"),
    },
    "obeyed": {
        "plant_program_on_path": lambda scene: write(scene["bin"], "git"),
        "plant_code_for_python": lambda scene: write(scene["environment"], "evil.pth"),
        "move_environment_away": lambda scene: os.rename(scene["environment"], scene["environment"] + "-old"),
        "set_npm_up": lambda scene: write(scene["workspace"], ".npmrc"),
        "set_yarn_up": lambda scene: write(scene["workspace"], ".yarnrc.yml"),
        "set_cargo_up": lambda scene: os.makedirs(os.path.join(scene["workspace"], ".cargo", "config.toml")),
        "lock_what_is_locked_outside": lock_what_is_locked_outside,
        "plant_repository": plant_repository,
        "leave_rules": leave_rules,
    },
    "network": {
        "connect_tcp": lambda scene: socket.create_connection(("127.0.0.1", scene["tcp"]), PATIENCE).close(),
        "send_udp": send_udp,
        "open_raw_socket": lambda _: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close(),
        "open_packet_socket": lambda _: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    },
    "sockets": {
        "connect_socket_file": lambda scene: connect(os.path.join(scene["workspace"], "socket")),
        "cannot_connect_own_socket": lambda scene: is_supervised(scene) and not succeeds(connect_own, scene),
        "connect_abstract_socket": lambda scene: connect("\0" + scene["mark"]),
        "send_datagram_from_a_pair": lambda scene: send_datagram_from_pair(socket.SOCK_DGRAM, scene),
        # For the kernel this is a pair of datagrams too.
        "send_datagram_from_a_raw_pair": lambda scene: send_datagram_from_pair(socket.SOCK_RAW, scene),
        "reach_shared_memory": reach_shared_memory,
        # The kernel tells there what is started, to whoever may ask.
        "hear_of_other_processes": lambda _: socket.socket(
            socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR
        ).close(),
    },
    "processes": {
        "signal_process": lambda scene: os.kill(scene["victim"], 0),
        "signal_by_handle": signal_by_handle,
        "limit_process": limit_process,
        "slow_process_down": slow_process_down,
        "bind_process_to_a_processor": lambda scene: os.sched_setaffinity(
            scene["victim"], os.sched_getaffinity(scene["victim"])
        ),
        "read_environment": lambda scene: look_into_process(scene, "environ"),
        "read_memory_map": lambda scene: look_into_process(scene, "maps"),
        "attach_debugger": attach_debugger,
    },
    "temporary": {
        "see_foreign_temporary_file": lambda scene: bool(read(scene["temporary"])),
        "leave_temporary_file": leave_temporary_file,
    },
    "privileges": {
        "have_capabilities": have_capabilities,
        "gain_privileges_by_a_program": lambda _: "NoNewPrivs:\t1" not in read("/proc/self/status"),
        "make_user_namespace": lambda _: in_child(lambda: libc().unshare(CLONE_NEWUSER) == 0),
        "make_mount_namespace": lambda _: in_child(lambda: libc().unshare(CLONE_NEWNS) == 0),
        "mount_something": mount_something,
        "unmount_something": unmount_something,
        "change_root": lambda scene: in_child(lambda: libc().chroot(os.fsencode(scene["workspace"])) == 0),
        "type_on_a_terminal": type_on_a_terminal,
        "leave_rights_of_the_owner": lambda scene: leave_lent_rights(scene, 0o4755),
        "give_rights_of_the_owner": lambda scene: give_lent_rights(scene, 0o4755),
        "leave_rights_of_the_group": lambda scene: leave_lent_rights(scene, 0o2755),
        "give_rights_of_the_group": lambda scene: give_lent_rights(scene, 0o2755),
    },
}
"""Each property, and the ways out that it closes by their names."""


def kept(scene: Scene) -> str:
    """A file of the workspace."""
    return os.path.join(scene["workspace"], "kept")


def make_temporary_file(scene: Scene) -> None:
    write(scene["tmp"], f"looking-{scene['mark']}")
    os.unlink(os.path.join(scene["tmp"], f"looking-{scene['mark']}"))


LOOKING: dict[str, dict[str, Try]] = {
    "reach": {
        "cannot_make_temporary_files": lambda scene: not succeeds(make_temporary_file, scene),
        "make_file_in_the_workspace": lambda scene: write(scene["workspace"], "made-looking"),
        "make_folder_in_the_workspace": lambda scene: os.mkdir(os.path.join(scene["workspace"], "folder-looking")),
        "make_link_in_the_workspace": lambda scene: os.symlink(
            "kept", os.path.join(scene["workspace"], "link-looking")
        ),
        "change_file_of_the_workspace": lambda scene: write(kept(scene), mode="a"),
        "empty_file_of_the_workspace": lambda scene: os.truncate(kept(scene), 0),
        "change_rights_in_the_workspace": lambda scene: os.chmod(kept(scene), 0o640),
        "change_times_in_the_workspace": lambda scene: os.utime(kept(scene), (1, 1)),
        "rename_file_of_the_workspace": lambda scene: os.rename(kept(scene), kept(scene) + "-renamed"),
        "write_outside_while_looking": lambda scene: write(scene["outside"], "made-looking"),
        "connect_while_looking": lambda scene: socket.create_connection(("127.0.0.1", scene["tcp"]), PATIENCE).close(),
    },
}
"""The same for those who may only look."""

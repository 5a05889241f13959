"""The filter of system calls (seccomp) of a sandbox.

What the other parts of a sandbox rest on is refused here: new namespaces and mounts, which would undo them, and
sockets of families that they do not cover. So is what they leave open: changes to processes outside, and to the keeper.
Of the rest only those calls are refused that serve attacks more than work.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import TYPE_CHECKING

from toolyard.process.sandbox.backends.kernel import FIRST_KEY, KEEPER, KEEPER_GROUP, SECOND_KEY
from toolyard.process.sandbox.backends.system_calls import ARCHITECTURES, numbers_on

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_STREAM, SOCK_SEQPACKET = 1, 5
NETLINK_ROUTE, NETLINK_SOCK_DIAG = 0, 4
NEW_NAMESPACES = 0x7E020000
"""The flags of `clone` for each kind of namespace; the one for time can only be given to `unshare` and `clone3`."""
X32 = 0x40000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
"""Typing on a terminal in somebody's name."""
MAKES_A_FILE = 0o100 | 0o20000000
"""`O_CREAT` and the bit of `O_TMPFILE`: without them, what stands in the place of a mode is left over from before."""
LENT_RIGHTS = 0o4000 | 0o2000
"""A program with one of these runs with the rights of its owner or of its group, whoever starts it. A folder has use
for the second, but a filter cannot tell it from a file."""
RLIMIT_RTTIME = 15
"""The limit that is a mark."""
F_SETSIG = 10
F_SETLEASE, F_SETDELEG = 1024, 1040
"""Whoever has such a hold on a file, for which reading it is enough, lets all others wait who open it."""
UNSTOPPABLE = (9, 19)
"""SIGKILL and SIGSTOP, which nobody can ignore."""
EVERYBODY = 0xFFFFFFFF
"""-1, for `kill`."""

ALLOW, KILL, ASK = 0x7FFF0000, 0x80000000, 0x7FC00000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
UNSUPPORTED = 0x00050000 | errno.EOPNOTSUPP
NO_ACCESS = 0x00050000 | errno.EACCES
NUMBER, ARCHITECTURE = 0, 4
"""Where the kernel puts them; an argument is at 16 and eight times its number."""
LOAD, JUMP_IF, JUMP_IF_ANY, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06

REFUSED = (
    *("acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module"),
    *("fanotify_init", "finit_module", "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load", "keyctl"),
    *("lookup_dcookie", "mount", "open_by_handle_at", "perf_event_open", "pivot_root", "quotactl", "reboot"),
    *("request_key", "setdomainname", "sethostname", "setns", "settimeofday", "swapoff", "swapon", "syslog", "umount2"),
    *("unshare", "userfaultfd", "vhangup", "io_uring_setup", "io_uring_enter", "io_uring_register", "open_tree"),
    *("move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "quotactl_fd", "open_tree_attr"),
)
"""`io_uring` would open sockets past the filter, `open_by_handle_at` files past the mounts."""
SHARED_BY_ALL = (
    *("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl"),
    *("mq_open", "mq_unlink"),
)
"""Shared memory and messages, which have numbers instead of paths; without a namespace they reach other programs."""
EXTENDED_ATTRIBUTES = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr"),
    *("removexattrat", "file_setattr"),
)
FLAG_CHANGES = (0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685, 0x800C6613)
"""Flags, version, project, verity and encryption of a file, for which it need not be open for writing."""
MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
"""Which argument is the mode that a file gets."""
OPENS = {"open": 1, "openat": 2}
"""Which argument tells whether a file is made; its mode is the next."""
OF_ONESELF = {"sched_setaffinity": 0, "sched_setattr": 0, "sched_setparam": 0, "sched_setscheduler": 0}
"""Which argument says whose processor time is changed: zero is our own."""
OF_SOME = {"setpriority": 0, "ioprio_set": 1}
"""The same for calls that can also mean a group or all of a user; the number that means a single process."""


ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat"),
)
"""Changes of rights, owners and times."""


def knows_processor() -> bool:
    """Whether there is a filter for this processor's calls."""
    return platform.machine() in ARCHITECTURES


def filter_program(
    families: Collection[int],
    *,
    own_pids: bool = False,
    own_ipc: bool = False,
    own_mounts: bool = False,
    keeps_attributes: bool = False,
    supervised: bool = False,
) -> bytes | None:
    """The filter that lets sockets of these families pass; None for a processor whose calls we do not know.

    With `keeps_attributes` no file's rights, owner or times can be changed. Where other processes have numbers, other
    programs' shared memory is there and no mount is read-only, it stands before them. With `supervised` there are
    sockets of the file system, too, and whoever listens to the filter connects them.
    """
    if not knows_processor():
        return None
    machine = platform.machine()
    calls = numbers_on(machine)
    refused = [*REFUSED, *(() if own_ipc else SHARED_BY_ALL)]
    unchanged = ATTRIBUTES if keeps_attributes else ()
    program = [
        *returning_unless(ARCHITECTURE, ARCHITECTURES[machine], KILL),
        *returning_if_any(NUMBER, X32, UNKNOWN),
        *(part for name in unchanged if name in calls for part in when(calls[name], [give(REFUSE)])),
        *no_rights_of_owners(calls),
        *(() if own_mounts else no_extended_attributes(calls)),
        *when(calls["ioctl"], [*one_of(argument(1), (TIOCSTI, TIOCLINUX), REFUSE), give(ALLOW)]),
        *when(calls["clone"], [*returning_if_any(argument(0), NEW_NAMESPACES, REFUSE), give(ALLOW)]),
        *when(calls["socket"], [*(streams_of_files() if supervised else ()), *sockets(families)]),
        *(when(calls["connect"], [give(ASK)]) if supervised else ()),
        *when(calls["socketpair"], pairs(families)),
        *when(calls["prlimit64"], [*nobody_changes_marks(), *only_ones_own_limits()]),
        *when(calls["setrlimit"], [*one_of(argument(0), (RLIMIT_RTTIME,), REFUSE), give(ALLOW)]),
        *(() if own_pids else only_ones_own_processor(calls)),
        *(() if own_pids else nobody_ends_the_keeper(calls)),
        *when(calls["fcntl"], nobody_waits_to_open(own_pids=own_pids)),
        # They hide their arguments, and programs do without them: with `clone`, and with `openat`.
        *when(calls["clone3"], [give(UNKNOWN)]),
        *when(calls["openat2"], [give(UNKNOWN)]),
        *(part for name in refused if name in calls for part in when(calls[name], [give(REFUSE)])),
        give(ALLOW),
    ]
    return b"".join(program)


def no_rights_of_owners(calls: dict[str, int]) -> Iterator[bytes]:
    """No program that lends the rights of its owner or group, which may be root's, to whoever runs it outside."""
    for name, where in OPENS.items():
        if name in calls:
            made = [*returning_if_any(argument(where + 1), LENT_RIGHTS, REFUSE), give(ALLOW)]
            yield from when(
                calls[name],
                [step(LOAD, argument(where)), step(JUMP_IF_ANY, MAKES_A_FILE, 0, len(made)), *made, give(ALLOW)],
            )
    for name, where in MODES.items():
        if name in calls:
            yield from when(calls[name], [*returning_if_any(argument(where), LENT_RIGHTS, REFUSE), give(ALLOW)])


def no_extended_attributes(calls: dict[str, int]) -> Iterator[bytes]:
    """As on a disk that has none, which programs can work on; without mounts they could be set on every file."""
    for name in EXTENDED_ATTRIBUTES:
        yield from when(calls[name], [give(UNSUPPORTED)])
    changes = one_of(argument(1), FLAG_CHANGES, UNSUPPORTED)
    yield from [step(LOAD, NUMBER), step(JUMP_IF, calls["ioctl"], 0, len(changes)), *changes]


def streams_of_files() -> list[bytes]:
    """Sockets that reach nobody before they are connected; those of datagrams do."""
    kinds = [part for kind in (SOCK_STREAM, SOCK_SEQPACKET) for part in (step(JUMP_IF, kind, 0, 1), give(ALLOW))]
    which = [step(LOAD, argument(1)), step(AND, 0xF), *kinds]
    return [step(LOAD, argument(0)), step(JUMP_IF, AF_UNIX, 0, len(which)), *which]


def sockets(families: Collection[int]) -> list[bytes]:
    """Of those that speak with the kernel only the kinds that tell of networks: others tell of all processes."""
    if AF_NETLINK not in families:
        return [*one_of(argument(0), families, ALLOW), give(NO_ACCESS)]
    telling = [*one_of(argument(2), (NETLINK_ROUTE, NETLINK_SOCK_DIAG), ALLOW), give(NO_ACCESS)]
    others = one_of(argument(0), [family for family in families if family != AF_NETLINK], ALLOW)
    return [*others, step(LOAD, argument(0)), step(JUMP_IF, AF_NETLINK, 0, len(telling)), *telling, give(NO_ACCESS)]


def pairs(families: Collection[int]) -> list[bytes]:
    """A pair is a pipe with two ends, but one of datagrams, also by its other name, could be sent anywhere."""
    if AF_UNIX in families:
        return [give(ALLOW)]
    kinds = [part for kind in (SOCK_STREAM, SOCK_SEQPACKET) for part in (step(JUMP_IF, kind, 0, 1), give(ALLOW))]
    return [step(LOAD, argument(1)), step(AND, 0xF), *kinds, give(NO_ACCESS)]


def nobody_changes_marks() -> list[bytes]:
    """What tells the keeper whose a process is can only be set by the keeper, which says its keys."""
    low, high = argument(2), argument(2) + 4
    known = [*returning_unless(argument(4), FIRST_KEY, REFUSE), *returning_unless(argument(5), SECOND_KEY, REFUSE)]
    setting = [step(LOAD, low), step(JUMP_IF, 0, 0, 2), step(LOAD, high), step(JUMP_IF, 0, len(known), 0), *known]
    return [step(LOAD, argument(1)), step(JUMP_IF, RLIMIT_RTTIME, 0, len(setting)), *setting]


def only_ones_own_limits() -> list[bytes]:
    """Limits of others can be read, which the keeper does, and not set: one on processor time would end them."""
    low, high = argument(2), argument(2) + 4
    return [
        *one_of(argument(0), (0,), ALLOW),
        *returning_unless(low, 0, REFUSE),
        *returning_unless(high, 0, REFUSE),
        give(ALLOW),
    ]


def only_ones_own_processor(calls: dict[str, int]) -> Iterator[bytes]:
    """Nobody outside is slowed down."""
    for name, where in OF_ONESELF.items():
        yield from when(calls[name], [*one_of(argument(where), (0,), ALLOW), give(REFUSE)])
    for name, single in OF_SOME.items():
        one = returning_unless(argument(0), single, REFUSE)
        yield from when(calls[name], [*one, *one_of(argument(1), (0,), ALLOW), give(REFUSE)])


def nobody_ends_the_keeper(calls: dict[str, int]) -> Iterator[bytes]:
    """Without it nobody would end the others. It ignores what can be ignored, and cannot be sent the rest."""
    keepers = (KEEPER, KEEPER_GROUP, EVERYBODY)
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        yield from when(calls[name], [*one_of(argument(0), keepers, REFUSE), give(ALLOW)])
    # A handle does not show whose it is.
    yield from when(calls["pidfd_send_signal"], [give(UNKNOWN)])


def nobody_waits_to_open(*, own_pids: bool) -> list[bytes]:
    """No leases, for which everybody outside would wait; nor, unless they reach nobody else, unstoppable signals."""
    signals = [] if own_pids else [*one_of(argument(2), UNSTOPPABLE, REFUSE), give(ALLOW)]
    by_signal = [step(LOAD, argument(1)), step(JUMP_IF, F_SETSIG, 0, len(signals)), *signals] if signals else []
    return [*one_of(argument(1), (F_SETLEASE, F_SETDELEG), REFUSE), *by_signal, give(ALLOW)]


def when(number: int, then: list[bytes]) -> list[bytes]:
    """Steps for one call, after which nothing more is decided."""
    return [step(LOAD, NUMBER), step(JUMP_IF, number, 0, len(then)), *then]


def returning_unless(where: int, value: int, what: int) -> list[bytes]:
    return [step(LOAD, where), step(JUMP_IF, value, 1, 0), give(what)]


def returning_if_any(where: int, bits: int, what: int) -> list[bytes]:
    return [step(LOAD, where), step(JUMP_IF_ANY, bits, 0, 1), give(what)]


def one_of(where: int, values: Collection[int], what: int) -> list[bytes]:
    tests = [part for value in sorted(values) for part in (step(JUMP_IF, value, 0, 1), give(what))]
    return [step(LOAD, where), *tests]


def argument(index: int) -> int:
    """Where the lower half of an argument is; the flags and numbers that we look at are no longer."""
    return 16 + 8 * index


def give(what: int) -> bytes:
    return step(RETURN, what)


def step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """One instruction; it may jump over some of the next ones."""
    return struct.pack("HBBI", code, if_so, if_not, value)

"""The system calls that nobody in a sandbox needs, as a program for the kernel's filter (seccomp).

What the other parts of a sandbox rest on is refused here: new namespaces and mounts, which would undo them, and
sockets of families that they do not cover. Of the rest only those calls are refused that serve attacks more than work.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import NamedTuple

TYPE_CHECKING = False  # `typing` does more than this needs, but is cheap beside the application's other imports
if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX", "filter_program"]

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_DGRAM = 2
NEW_NAMESPACES = 0x7E020000
"""The flags of `clone` for each kind of namespace; the one for time can only be given to `unshare` and `clone3`."""
X32 = 0x40000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
"""Typing on a terminal in somebody's name."""

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
NO_ACCESS = 0x00050000 | errno.EACCES
NUMBER, ARCHITECTURE = 0, 4
"""Where the kernel puts them; an argument is at 16 and eight times its number."""
LOAD, JUMP_IF, JUMP_IF_ANY, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06


class Machine(NamedTuple):
    """A processor: its number for the kernel, and those of the calls by name."""

    number: int
    calls: dict[str, int]


MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        {
            **{"ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "syslog": 103, "vhangup": 153},
            **{"pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165},
            **{"umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170},
            **{"setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176},
            **{"quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246, "add_key": 248},
            **{"request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "fanotify_init": 300},
            **{"open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "finit_module": 313},
            **{"kexec_file_load": 320, "bpf": 321, "userfaultfd": 323},
        },
    ),
    "aarch64": Machine(
        0xC00000B7,
        {
            **{"lookup_dcookie": 18, "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51},
            **{"vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105},
            **{"delete_module": 106, "clock_settime": 112, "syslog": 116, "reboot": 142, "sethostname": 161},
            **{"setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "socket": 198, "socketpair": 199},
            **{"add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224, "swapoff": 225},
            **{"perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265, "clock_adjtime": 266},
            **{"setns": 268, "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294},
        },
    ),
}
EVERYWHERE = {
    **{"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429},
    **{"fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "mount_setattr": 442},
    **{"quotactl_fd": 443, "open_tree_attr": 467},
}
"""Calls since Linux 5.1 have the same number on every processor. `io_uring` would open sockets past the filter."""
LOOKED_AT = ("clone", "clone3", "socket", "socketpair", "ioctl")
"""Refused only with some arguments; `clone3` hides its arguments, and without it programs use `clone`."""


def filter_program(families: Collection[int], machine: str | None = None) -> bytes | None:
    """The filter that lets sockets of these families pass; None for a processor whose calls we do not know."""
    known = MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    calls = known.calls | EVERYWHERE
    program = [
        *returning_unless(ARCHITECTURE, known.number, KILL),
        *returning_if_any(NUMBER, X32, UNKNOWN),
        *(step for name, number in calls.items() if name not in LOOKED_AT for step in when(number, [give(REFUSE)])),
        *when(calls["clone3"], [give(UNKNOWN)]),
        *when(calls["clone"], [*returning_if_any(argument(0), NEW_NAMESPACES, REFUSE), give(ALLOW)]),
        *when(calls["ioctl"], [*one_of(argument(1), (TIOCSTI, TIOCLINUX), REFUSE), give(ALLOW)]),
        *when(calls["socket"], [*one_of(argument(0), families, ALLOW), give(NO_ACCESS)]),
        *when(calls["socketpair"], pairs(families)),
        give(ALLOW),
    ]
    return b"".join(program)


def pairs(families: Collection[int]) -> list[bytes]:
    """A pair is a pipe with two ends, but one of datagrams could be sent anywhere."""
    if AF_UNIX in families:
        return [give(ALLOW)]
    masked = [step(LOAD, argument(1)), step(AND, 0xF), step(JUMP_IF, SOCK_DGRAM, 0, 1), give(NO_ACCESS)]
    return [*masked, give(ALLOW)]


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

"""The system calls that nobody in a sandbox needs, as a program for the kernel's filter (seccomp).

What the other parts of a sandbox rest on is refused here: new namespaces and mounts, which would undo them, and
sockets of families that they do not cover. Of the rest only those calls are refused that serve attacks more than work.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import TYPE_CHECKING

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


ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = """
    acct 163 89
    add_key 248 217
    adjtimex 159 171
    bpf 321 280
    chroot 161 51
    clock_adjtime 305 266
    clock_settime 227 112
    clone 56 220
    delete_module 176 106
    fanotify_init 300 262
    finit_module 313 273
    init_module 175 105
    ioctl 16 29
    ioperm 173 -
    iopl 172 -
    kexec_file_load 320 294
    kexec_load 246 104
    keyctl 250 219
    lookup_dcookie 212 18
    mount 165 40
    open_by_handle_at 304 265
    perf_event_open 298 241
    pivot_root 155 41
    quotactl 179 60
    reboot 169 142
    request_key 249 218
    setdomainname 171 162
    sethostname 170 161
    setns 308 268
    settimeofday 164 170
    socket 41 198
    socketpair 53 199
    swapoff 168 225
    swapon 167 224
    syslog 103 116
    umount2 166 39
    unshare 272 97
    userfaultfd 323 282
    vhangup 153 58
    io_uring_setup 425 425
    io_uring_enter 426 426
    io_uring_register 427 427
    open_tree 428 428
    move_mount 429 429
    fsopen 430 430
    fsconfig 431 431
    fsmount 432 432
    fspick 433 433
    clone3 435 435
    mount_setattr 442 442
    quotactl_fd 443 443
    open_tree_attr 467 467
"""
"""The number of each call on both; calls since Linux 5.1 have the same number everywhere.

`io_uring` would open sockets past the filter, `open_by_handle_at` files past the mounts.
"""
LOOKED_AT = ("clone", "clone3", "socket", "socketpair", "ioctl")
"""Refused only with some arguments; `clone3` hides its arguments, and without it programs use `clone`."""


def filter_program(families: Collection[int], machine: str | None = None) -> bytes | None:
    """The filter that lets sockets of these families pass; None for a processor whose calls we do not know."""
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        return None
    calls = numbers_on(machine)
    refused = [number for name, number in calls.items() if name not in LOOKED_AT]
    program = [
        *returning_unless(ARCHITECTURE, ARCHITECTURES[machine], KILL),
        *returning_if_any(NUMBER, X32, UNKNOWN),
        *(part for number in refused for part in when(number, [give(REFUSE)])),
        *when(calls["clone3"], [give(UNKNOWN)]),
        *when(calls["clone"], [*returning_if_any(argument(0), NEW_NAMESPACES, REFUSE), give(ALLOW)]),
        *when(calls["ioctl"], [*one_of(argument(1), (TIOCSTI, TIOCLINUX), REFUSE), give(ALLOW)]),
        *when(calls["socket"], [*one_of(argument(0), families, ALLOW), give(NO_ACCESS)]),
        *when(calls["socketpair"], pairs(families)),
        give(ALLOW),
    ]
    return b"".join(program)


def numbers_on(machine: str) -> dict[str, int]:
    """The calls that we know, by name; some are missing on a processor."""
    column = 1 + list(ARCHITECTURES).index(machine)
    rows = [line.split() for line in CALLS.split("\n") if line.strip()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


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

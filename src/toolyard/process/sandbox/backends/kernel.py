"""Giving up rights for ever, by the kernel's own means: Landlock, a filter of system calls, capabilities.

The keeper does this to itself before it starts anything, and whatever it starts inherits it. This module imports next
to nothing, because the keeper has to start in milliseconds.
"""

from __future__ import annotations

import os
import resource
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_DUMPABLE = 24, 38, 22, 4
CAPSET = {"x86_64": 126, "aarch64": 91}
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION, PATH_BENEATH, SECCOMP_FILTER = 1, 1, 2
LAST_CAPABILITY = 63

EXECUTE, MAKE_LINK = 1 << 0, 1 << 12
READ_ONLY = EXECUTE | 1 << 2 | 1 << 3
"""Execute, read a file, list a folder."""
ON_A_FILE = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14
"""Of all rights those that a single file can have: execute, write, read, truncate."""
RIGHTS = {1: 13, 2: 14, 3: 15}
"""How many rights on files each version knows; later ones add control of devices, which we leave alone."""
SCOPES = 1 << 0 | 1 << 1
"""Abstract sockets and signals reach nobody outside."""
TCP = 1 << 0 | 1 << 1
KEEPER, KEEPER_GROUP = 0x7EE9E500, 0x7EE9E501
"""In a filter: the number of the process that installs it, and that of its group as `kill` takes it. No process has
such a number."""
FIRST_KEY, SECOND_KEY = 0x7EE9E502, 0x7EE9E503
"""In a filter: what its installer alone knows, and says in arguments that a call does not use."""
PRLIMIT = {"x86_64": 302, "aarch64": 261}
UNKNOWN_CALL = -1
"""No number of a system call: the kernel refuses it."""
LIMIT_PAIR, NO_LIMIT = struct.Struct("QQ"), 1 << 64
SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_FILTER, TELL, NOT_INTERRUPTED, NETLINK_SOCK_DIAG = 1, 8, 32, 4


def confine(
    *,
    readable: Iterable[bytes] = (),
    writable: Iterable[bytes] = (),
    files: bool,
    scopes: bool,
    tcp: bool,
    filter: bytes,
    supervised: bytes = b"",
    drop_capabilities: bool,
    processes: int | None = None,
    programs: Iterable[bytes] = (),
) -> Confined:
    """Give up everything but this; OSError when the kernel does not let us.

    The order matters: without `no_new_privs` the kernel refuses Landlock and a filter to an ordinary process. The
    filter `supervised` needs somebody who listens to it; where the kernel knows no such thing, it is `filter`. Where
    there are `programs`, nothing else can be run as one.
    """
    kernel = Kernel()
    first, second = struct.unpack("ii", os.urandom(8))
    keys = (first, second)
    if processes is not None:
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        least = processes if most == resource.RLIM_INFINITY else min(processes, most)
        resource.setrlimit(resource.RLIMIT_NPROC, (least, least))
    if drop_capabilities:
        kernel.drop_capabilities()
    kernel.prctl(PR_SET_NO_NEW_PRIVS, 1)
    if files or scopes or tcp:
        kernel.landlock(readable, writable, files=files, scopes=scopes, tcp=tcp)
    if programs:
        kernel.run_only(programs)
    supervision = kernel.filter_and_tell(with_own_number(supervised, keys)) if supervised else []
    if filter and not supervision:
        kernel.filter_calls(with_own_number(filter, keys))
    # Other processes of our user must not read our memory or take our descriptors, such as the channel.
    kernel.prctl(PR_SET_DUMPABLE, 0)
    return Confined(lambda mark: kernel.set_mark(mark, keys), supervision)


class Confined:
    """What is left to do for who gave up everything else."""

    def __init__(self, set_mark: Callable[[tuple[int, int]], None], supervision: list[int]) -> None:
        self.set_mark = set_mark
        """Sets our mark."""
        self.supervision = supervision
        """Descriptors for whoever connects sockets for us: where the kernel tells, and a netlink socket of ours."""


def with_own_number(program: bytes, keys: tuple[int, int]) -> bytes:
    """The filter with our process number in the place of KEEPER, so that it protects us, and with our keys."""
    pid = os.getpid()
    if os.getpgrp() != pid:
        os.setpgid(0, 0)  # a group of our own, which has our number
    values = {KEEPER: pid, KEEPER_GROUP: -pid, FIRST_KEY: keys[0], SECOND_KEY: keys[1]}
    for placeholder, value in values.items():
        program = program.replace(struct.pack("I", placeholder), struct.pack("i", value))
    return program


def landlock_version() -> int:
    """Which version of Landlock the kernel has; zero when it has none."""
    return max(0, Kernel().call(CREATE_RULESET, None, 0, ASK_VERSION))


class Kernel:
    """Calls into the C library by `_ctypes`, which is imported in half the time of ctypes."""

    def __init__(self) -> None:
        import _ctypes

        library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is the program itself
        self._invoke = _ctypes.call_function
        self._syscall = _ctypes.dlsym(library, "syscall")
        self._prctl = _ctypes.dlsym(library, "prctl")
        self._prlimit = PRLIMIT.get(os.uname().machine, UNKNOWN_CALL)

    def call(self, number: int, *words: int | bytes | None) -> int:
        """A system call; bytes are passed by their address."""
        result: int = self._invoke(self._syscall, (number, *words))
        return result

    def prctl(self, what: int, *words: int | bytes) -> None:
        padded: tuple[Any, ...] = (*words, *(0,) * (4 - len(words)))
        if self._invoke(self._prctl, (what, *padded)) != 0:
            raise OSError(f"prctl {what} is refused")

    def set_mark(self, mark: tuple[int, int], keys: tuple[int, int]) -> None:
        """Set our limit on real-time processor time, which the filter refuses to whoever does not know the keys."""
        soft, hard = mark
        limit = LIMIT_PAIR.pack(soft % NO_LIMIT, hard % NO_LIMIT)
        if self._invoke(self._syscall, (self._prlimit, 0, resource.RLIMIT_RTTIME, limit, None, *keys)) != 0:
            raise OSError("the mark of a child is refused")

    def drop_capabilities(self) -> None:
        """Have none, and get none by any program."""
        for capability in range(LAST_CAPABILITY + 1):
            if self._invoke(self._prctl, (PR_CAPBSET_DROP, capability, 0, 0, 0)) != 0:
                break  # the kernel knows no more of them, or we never had any
        header = struct.pack("Ii", 0x20080522, 0)
        if self.call(CAPSET[os.uname().machine], header, bytes(24)) != 0:
            raise OSError("capabilities cannot be dropped")

    def landlock(
        self, readable: Iterable[bytes], writable: Iterable[bytes], *, files: bool, scopes: bool, tcp: bool
    ) -> None:
        """Let go of all files but these, of processes outside, and of TCP."""
        version = max(0, self.call(CREATE_RULESET, None, 0, ASK_VERSION))
        all_rights = (1 << RIGHTS.get(version, 15)) - 1 if files else 0
        fields = [all_rights, TCP if tcp and version >= 4 else 0, SCOPES if scopes and version >= 6 else 0]
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        if not version or not any(fields):
            raise OSError("the kernel has no Landlock that can do this")
        ruleset = self.call(CREATE_RULESET, struct.pack("3Q", *fields)[:size], size, 0)
        if ruleset < 0:
            raise OSError("Landlock is refused")
        try:
            for rights, paths in ((READ_ONLY, readable), (all_rights, writable)):
                for path in paths:
                    self.allow(ruleset, path, rights & all_rights)
            if self.call(RESTRICT_SELF, ruleset, 0) != 0:
                raise OSError("Landlock is refused")
        finally:
            os.close(ruleset)

    def run_only(self, paths: Iterable[bytes]) -> None:
        """Let go of the right to run what is not below one of these paths, and to make or move links.

        A link among temporary files, which all reaches share, would lead others on.
        """
        ruleset = self.call(CREATE_RULESET, struct.pack("Q", EXECUTE | MAKE_LINK), 8, 0)
        if ruleset < 0:
            raise OSError("Landlock is refused")
        try:
            for path in paths:
                self.allow(ruleset, path, EXECUTE)
            if self.call(RESTRICT_SELF, ruleset, 0) != 0:
                raise OSError("Landlock is refused")
        finally:
            os.close(ruleset)

    def allow(self, ruleset: int, path: bytes, rights: int) -> None:
        """A path and all below it; one that is not there needs no right."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                rights &= ON_A_FILE
            if self.call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, fd), 0) != 0:
                raise OSError(f"Landlock takes no rule for {path!r}")
        finally:
            os.close(fd)

    def filter_calls(self, program: bytes) -> None:
        """From now on the kernel refuses what the program says, for us and all that we start."""
        import array

        steps = array.array("B", program)
        address, size = steps.buffer_info()
        self.prctl(PR_SET_SECCOMP, SECCOMP_FILTER, struct.pack("HxxxxxxQ", size // 8, address))

    def filter_and_tell(self, program: bytes) -> list[int]:
        """The same, with somebody who is told of some calls and answers for the kernel; none where there cannot be."""
        import _socket as socket
        import array

        steps = array.array("B", program)
        address, size = steps.buffer_info()
        described = struct.pack("HxxxxxxQ", size // 8, address)
        number = SECCOMP[os.uname().machine]
        try:
            netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
        except OSError:
            return []
        # First so that no signal interrupts who waits for the answer, which older kernels do not know.
        for flags in (TELL | NOT_INTERRUPTED, TELL):
            listener = self.call(number, SET_FILTER, flags, described)
            if listener >= 0:
                return [listener, netlink.detach()]
        netlink.close()
        return []

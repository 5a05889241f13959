"""Connects sockets for whoever is inside, since only outside can it be seen whether the other end is inside, too.

The filter of system calls cannot look at an address. So the kernel stops each `connect` inside and tells us; we take
the socket and the address, each once, and connect that socket ourselves. Nothing that they change meanwhile matters.
A socket of the file system is connected only if the file was bound in the sandbox's own network.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import select
import socket
import stat
import struct
import threading
from typing import TYPE_CHECKING

from toolyard.process.sandbox.backends.kernel import Kernel
from toolyard.process.sandbox.backends.system_calls import numbers_on
from toolyard.process.sandbox.sockets.listing import SOCK_DIAG, bound_in, bound_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from toolyard.process.sandbox.sockets.listing import Bound


log = logging.getLogger("toolyard.sockets")
RECEIVE, ANSWER, IS_WAITING = 0xC0502100, 0xC0182101, 0x40082102
NOTICE, REPLY = struct.Struct("QIIiIQ6Q"), struct.Struct("QqiI")
LONGEST_ADDRESS = 128
MOST_AT_ONCE = 32
"""Each that waits for a server takes a thread and two descriptors."""
CONNECTED = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
"""Families of sockets for which we have no more rights than whoever is inside."""
IN_ROOT, NO_MAGIC_LINKS = 0x10, 0x02
"""For `openat2`: an absolute path, and a link to one, begins at the folder that is given."""


class ConnectSupervisor:
    """Answers the kernel for one keeper's sandbox, in a thread of its own, until nobody is inside or it is closed."""

    def __init__(self, listener: int, netlink: int, on_refused: Callable[[str], None]) -> None:
        """Takes over both descriptors: that at which the kernel tells, and a netlink socket of the inside."""
        self._listener = listener
        self._netlink = socket.socket(fileno=netlink)
        self._on_refused = on_refused
        self._listing = threading.Lock()
        self._asked = 0
        self._free = threading.Semaphore(MOST_AT_ONCE)
        self._calls = numbers_on(os.uname().machine)
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._serve, name="toolyard-connect", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no more; who still waits inside is told that there is no such call."""
        os.close(self._stop)

    def _serve(self) -> None:
        poll = select.poll()
        for fd in (self._listener, self._stopped):
            poll.register(fd, select.POLLIN)
        try:
            while all(what == select.POLLIN and fd == self._listener for fd, what in poll.poll()):
                self._receive()
        except OSError:
            log.exception("sockets are connected no more")
        finally:
            for fd in (self._listener, self._stopped):
                os.close(fd)
            self._netlink.close()

    def _receive(self) -> None:
        notice = bytearray(NOTICE.size)
        try:
            fcntl.ioctl(self._listener, RECEIVE, notice)
        except OSError as error:
            if error.errno not in (errno.EINTR, errno.ENOENT):  # whoever asked does so no more
                raise
            return
        id, pid, _, _, _, _, *arguments = NOTICE.unpack(notice)
        if not self._free.acquire(blocking=False):
            self._reply(id, errno.EAGAIN)
            return
        try:
            threading.Thread(target=self._answer, args=(id, pid, arguments), daemon=True).start()
        except RuntimeError:  # there can be no more threads just now
            self._free.release()
            self._reply(id, errno.EAGAIN)

    def _answer(self, id: int, pid: int, arguments: Sequence[int]) -> None:
        try:
            self._reply(id, self._connect(id, pid, *arguments[:3]))
        except OSError as error:
            self._reply(id, error.errno or errno.EACCES)
        finally:
            self._free.release()

    def _reply(self, id: int, error: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._listener, ANSWER, REPLY.pack(id, 0, -error, 0))

    def _connect(self, id: int, pid: int, number: int, address: int, size: int) -> int:
        """Connect the socket of a process inside; returns what went wrong, or zero."""
        if size > LONGEST_ADDRESS:
            return errno.EINVAL
        with self._taken(id, pid, number) as taken:
            if taken.family not in CONNECTED:
                return errno.EPERM
            told = read_memory(pid, address, size)
            is_file = taken.family == socket.AF_UNIX and len(told) > 2 and told[2] != 0
            if not is_file or int.from_bytes(told[:2], "little") != socket.AF_UNIX:
                return connect(taken.fileno(), told)
            return self._connect_file(pid, taken, told[2:].split(b"\0")[0])

    @contextlib.contextmanager
    def _taken(self, id: int, pid: int, number: int) -> Iterator[socket.socket]:
        """A socket of a process that waits for our answer, as one of ours."""
        process = os.pidfd_open(thread_group(pid))
        try:
            fcntl.ioctl(self._listener, IS_WAITING, struct.pack("Q", id))  # so that it is not another by now
            fd = Kernel().call(self._calls["pidfd_getfd"], process, number, 0)
        finally:
            os.close(process)
        if fd < 0:
            raise OSError(errno.EBADF, "no such descriptor")
        try:
            taken = socket.socket(fileno=fd)
        except OSError:
            os.close(fd)
            raise
        with taken:
            yield taken

    def _connect_file(self, pid: int, taken: socket.socket, path: bytes) -> int:
        handle = self._open(pid, path)
        try:
            if not stat.S_ISSOCK(os.fstat(handle).st_mode):
                return errno.ECONNREFUSED
            file = self._bound(pid, handle)
            if file is None or not self._is_inside(file):
                return self._why_not(file, path)
            # By the handle: the path may lead elsewhere by now.
            name = f"/proc/self/fd/{handle}".encode()
            return connect(taken.fileno(), struct.pack("H", socket.AF_UNIX) + name + b"\0")
        finally:
            os.close(handle)

    def _open(self, pid: int, path: bytes) -> int:
        """A handle on a file, which is looked for where the process inside would find it."""
        begin = os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
        root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, IN_ROOT | NO_MAGIC_LINKS)
            place = os.path.join(begin, path) + b"\0"
            handle = Kernel().call(self._calls["openat2"], root, place, how, len(how))
        finally:
            os.close(root)
        if handle < 0:
            raise FileNotFoundError(errno.ENOENT, "no such socket")
        return handle

    def _bound(self, pid: int, handle: int) -> Bound | None:
        with open(f"/proc/{pid}/mountinfo") as mounts:
            return bound_to(handle, mounts.read())

    def _is_inside(self, file: Bound) -> bool:
        """Whether a file was bound by somebody in the same network, which nobody else is in."""
        with self._listing:
            self._asked += 1
            return file in bound_in(self._netlink, self._asked)

    def _why_not(self, file: Bound | None, path: bytes) -> int:
        """What is told of a socket that is not connected: nobody may listen at it any more, as servers leave them."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as outside:
            if file is not None and file not in bound_in(outside, 1):
                return errno.ECONNREFUSED
        self._on_refused(os.fsdecode(path))
        return errno.EACCES


def thread_group(pid: int) -> int:
    """The process that a thread belongs to."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("Tgid:"))


def read_memory(pid: int, address: int, size: int) -> bytes:
    """What a process has at an address; its file in /proc would be root's if it keeps its memory from being dumped."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    found = ctypes.create_string_buffer(size)
    ours, theirs = struct.pack("PN", ctypes.addressof(found), size), struct.pack("PN", address, size)
    if libc.process_vm_readv(pid, ours, ctypes.c_ulong(1), theirs, ctypes.c_ulong(1), ctypes.c_ulong(0)) < 0:
        raise OSError(ctypes.get_errno(), "the address cannot be read")
    return found.raw


def connect(fd: int, address: bytes) -> int:
    """Connect by an address as the kernel takes it; returns what went wrong, or zero."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return 0 if libc.connect(fd, address, len(address)) == 0 else ctypes.get_errno()

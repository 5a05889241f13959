"""Which sockets of the file system were bound in a network, as the kernel tells."""

from __future__ import annotations

import os
import re
import socket
import struct
from typing import TypeAlias

from toolyard.core.regexes import late_pattern

Bound: TypeAlias = tuple[int, int]
"""The number of the file that a socket is bound to, of which the kernel tells 32 bits, and the device that it is on."""
REQUEST, DUMP, DONE, ERROR, BY_FAMILY = 0x1, 0x300, 3, 2, 20
HEADER, FAMILY_REQUEST, ATTRIBUTE = struct.Struct("IHHII"), struct.Struct("BBHIIIII"), struct.Struct("HH")
FAMILY_ANSWER = 16
EVERY_STATE, SHOW_FILE, OF_FILE = 0xFFFFFFFF, 2, 1
MOST_RECEIVED = 1 << 16
SOCK_DIAG = 4
"""The netlink protocol that tells of sockets."""
KERNEL = 0
"""Its number among those who send."""
MOUNT = late_pattern(r"^mnt_id:\s*(\d+)", re.MULTILINE)


def bound_in(netlink: socket.socket, number: int) -> set[Bound]:
    """The files of all sockets in the network of a netlink socket; OSError when the kernel does not tell.

    With a number that no question had before, so that what is left of another's answer does not count; nor does what
    anybody but the kernel says.
    """
    asked = FAMILY_REQUEST.pack(socket.AF_UNIX, 0, 0, EVERY_STATE, 0, SHOW_FILE, 0, 0)
    netlink.send(HEADER.pack(HEADER.size + len(asked), BY_FAMILY, REQUEST | DUMP, number, 0) + asked)
    found: set[Bound] = set()
    while True:
        data, (sender, _) = netlink.recvfrom(MOST_RECEIVED)
        while data and sender == KERNEL:
            size, kind, _, answers, _ = HEADER.unpack_from(data)
            if size < HEADER.size or (kind == ERROR and answers == number):
                raise OSError("the kernel does not list sockets")
            if kind == DONE and answers == number:
                return found
            if answers == number:
                found.update(files_in(data[HEADER.size + FAMILY_ANSWER : size]))
            data = data[padded(size) :]


def files_in(attributes: bytes) -> list[Bound]:
    """The file among the attributes of one socket, if it is bound to one."""
    found: list[Bound] = []
    while len(attributes) >= ATTRIBUTE.size:
        size, kind = ATTRIBUTE.unpack_from(attributes)
        if size < ATTRIBUTE.size:
            break
        if kind == OF_FILE:
            number, device = struct.unpack_from("II", attributes, ATTRIBUTE.size)
            found.append((number, device))
        attributes = attributes[padded(size) :]
    return found


def bound_to(handle: int, mounts: str) -> Bound | None:
    """A file as the kernel lists it, by a handle on it; `mounts` are those where the handle came from.

    The device is that of the mount: some file systems tell another one to whoever asks about a file. Nobody inside can
    have bound what is on a mount that cannot be written.
    """
    with open(f"/proc/self/fdinfo/{handle}") as facts:
        mount = MOUNT.search(facts.read())
    line = mount and re.search(rf"^{mount[1]} \d+ (\d+):(\d+) \S+ \S+ rw\b", mounts, re.MULTILINE)
    if not line:
        return None
    return os.fstat(handle).st_ino & 0xFFFFFFFF, int(line[1]) << 20 | int(line[2])


def padded(size: int) -> int:
    return (size + 3) & ~3

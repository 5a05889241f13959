"""Being somebody else: an ordinary user, or a process under a filter like that of a container.

python tests/users.py [--uid UID] [--contained] PROGRAM [ARGUMENT…]
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

ORDINARY = 1001
CLONE_NEWNS = 0x20000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
REFUSED_IN_CONTAINERS = (
    *("mount", "umount2", "pivot_root", "unshare", "setns", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount"),
    *("open_tree", "mount_setattr", "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"),
    *("open_by_handle_at", "kexec_load", "init_module", "finit_module", "delete_module", "io_uring_setup"),
)
"""What Docker's default filter refuses to whoever has no capabilities, as far as it matters to a sandbox."""
ROOT = Path(__file__).parent.parent


def as_other(*, ordinary: bool = False, contained: bool = False) -> list[str]:
    """What to put before a command line. Who is an ordinary user already stays who they are."""
    words = [sys.executable, str(Path(__file__))]
    if ordinary and os.geteuid() == 0:
        words += ["--uid", str(ORDINARY)]
    return [*words, "--contained"] if contained else words


def main(words: list[str]) -> None:
    if words[0] == "--uid":
        become(int(words[1]))
        words = words[2:]
    if words[0] == "--contained":
        contain()
        words = words[1:]
    os.execv(words[0], words)


def become(uid: int) -> None:
    """An ordinary user who can reach our interpreter and our code, wherever root keeps them."""
    libc = ctypes.CDLL(None, use_errno=True)
    open_up(libc, [sys.prefix, sys.base_prefix, str(ROOT)])
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def open_up(libc: ctypes.CDLL, needed: list[str]) -> None:
    """In mounts of our own, put a folder that lets everybody pass in the place of one that does not."""
    closed = {above for path in needed for above in Path(path).parents if above.stat().st_mode & 0o001 == 0}
    if not closed:
        return
    check(libc.unshare(CLONE_NEWNS))
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    for folder in closed:
        below = [path for path in dict.fromkeys(needed) if folder in Path(path).parents]
        handles = {path: os.open(path, os.O_PATH) for path in below}
        check(libc.mount(b"none", os.fsencode(folder), b"tmpfs", 0, b"mode=755"))
        for path, handle in handles.items():
            os.makedirs(path, exist_ok=True)
            check(libc.mount(f"/proc/self/fd/{handle}".encode(), os.fsencode(path), None, MS_BIND | MS_REC, None))
            os.close(handle)


def contain() -> None:
    """A filter like that of a container."""
    sys.path.insert(0, str(ROOT / "src"))
    from toolyard.process.sandbox.backends import seccomp as filters
    from toolyard.process.sandbox.backends.kernel import PR_SET_NO_NEW_PRIVS, Kernel
    from toolyard.process.sandbox.backends.system_calls import numbers_on

    calls = numbers_on(os.uname().machine)
    program = [
        *(step for name in REFUSED_IN_CONTAINERS for step in filters.when(calls[name], [filters.give(filters.REFUSE)])),
        *filters.when(calls["clone3"], [filters.give(filters.UNKNOWN)]),
        *filters.when(
            calls["clone"],
            [
                *filters.returning_if_any(filters.argument(0), filters.NEW_NAMESPACES, filters.REFUSE),
                filters.give(filters.ALLOW),
            ],
        ),
        filters.give(filters.ALLOW),
    ]
    kernel = Kernel()
    kernel.prctl(PR_SET_NO_NEW_PRIVS, 1)
    kernel.filter_calls(b"".join(program))


def check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main(sys.argv[1:])

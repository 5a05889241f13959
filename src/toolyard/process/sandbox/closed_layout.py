"""The layout of a closed look: nothing of its owner's can be seen but the workspace, and what programs need to run.

Lines that nobody vouches for run in it unasked. What they may read is decided here, by what is there to see, and not by
reading their options.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from toolyard.core.regexes import late_pattern
from toolyard.files.inside import is_inside
from toolyard.process.sandbox.layout import HOMES
from toolyard.process.sandbox.roots import interpreter, program_folders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.process.sandbox.draft import Access
    from toolyard.process.sandbox.layout import Layout, SandboxPaths


OF_SYSTEM = frozenset({"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu"})
"""Folders below the root that hold programs."""
KEPT = OF_SYSTEM | {"proc", "sys", "dev", "tmp", "run"}
"""And those where the kernel shows something, or that are the sandbox's own."""
NOBODYS = (
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/nsswitch.conf"),
    *("/etc/os-release", "/etc/debian_version", "/etc/lsb-release", "/etc/localtime", "/etc/timezone"),
    *("/etc/locale.conf", "/etc/default/locale", "/etc/terminfo", "/etc/mime.types", "/etc/magic", "/etc/magic.mime"),
    *(
        "/etc/perl",
        "/etc/ssl/certs",
        "/etc/ca-certificates",
        "/etc/pki/tls/certs",
        "/etc/manpath.config",
        "/etc/man_db.conf",
    ),
    *("/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman", "/var/cache/man"),
)
"""What is everybody's to read, and programs ask for; in other folders of the system there may be names and keys."""
OF_PREFIX = ("bin", "sbin", "shims")
"""How folders with programs are called that belong to a folder of one installation."""
INSTALLED_BELOW = ("/opt", "/usr", "/nix", "/gnu")
"""Where each folder is an installation."""
INSTALLED_AS = late_pattern(
    r"/(?:\.(?:asdf|bun|cabal|cargo|deno|dotnet|fnm|ghcup|goenv|jenv|juliaup|krew|linuxbrew|nodenv|nvm|opam|phpenv|plenv|pyenv"
    r"|rbenv|rustup|rvm|sdkman|tfenv|volta)|(?:ana|mini)conda3|mambaforge|miniforge3|share/(?:fnm|mise|pipx|pnpm|uv))(?:/|\Z)"
)
"""How folders are called into which those who manage tools install them, or keep each version of one."""
OF_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
"""What an environment of Python's is known by."""
SHARED_HOME = "/.linuxbrew"
"""What lies in a home, and is everybody's."""


def close(layout: Layout, paths: SandboxPaths) -> Layout:
    """The same layout without all that is not named here."""
    rules: dict[str, Access] = dict(layout.rules)
    home = os.path.realpath(paths.home)
    workspace = [os.path.realpath(path) for path in paths.workspace]
    hidden = [path for path in (*others_below_root(), home) if not any(is_inside(path, root) for root in workspace)]
    rules |= dict.fromkeys(hidden, "hidden")
    programs = list(program_prefixes(home, workspace))
    shown = [*workspace, *programs]
    shown += [path for one in layout.repositories for path in (one.git, *one.shown())]
    shown += [path for path in NOBODYS if is_everybodys(path)]
    for path in shown:
        if (path not in rules or path in hidden) and os.path.lexists(path):
            rules[path] = "read"
    return replace(layout, rules=rules, programs=[*(f"/{name}" for name in sorted(OF_SYSTEM)), *programs])


def others_below_root() -> Iterator[str]:
    """What lies in the root folder and is no folder of programs; links lead to what has a rule of its own."""
    with contextlib.suppress(OSError), os.scandir("/") as entries:
        yield from (entry.path for entry in entries if entry.name not in KEPT and not entry.is_symlink())


def program_prefixes(home: str, workspace: list[str]) -> Iterator[str]:
    """Where programs and our own Python are, each with the installation that it plainly belongs to.

    What lies beside a folder of programs may be a project, or all of somebody's home.
    """
    kept = (home, os.path.join(home, ".local"), *workspace)
    for path in (*interpreter(), *program_folders()):
        real = os.path.realpath(path)
        prefix = os.path.dirname(real)
        is_whole = os.path.basename(real) in OF_PREFIX and is_installation(prefix, home)
        for folder in (prefix, real) if is_whole else (real,):
            if folder not in ("/", *HOMES) and not any(is_inside(one, folder) for one in kept):
                yield folder
                break


def is_installation(folder: str, home: str) -> bool:
    """Whether a folder plainly is nothing but what was installed, and not by another user for himself."""
    is_others = any(is_inside(folder, homes) for homes in HOMES) and not is_inside(folder, home)
    if is_others:
        return SHARED_HOME in folder
    if any(folder != top and is_inside(folder, top) for top in INSTALLED_BELOW) or INSTALLED_AS.search(folder):
        return True
    return any(os.path.lexists(os.path.join(folder, name)) for name in OF_ENVIRONMENT)


def is_everybodys(path: str) -> bool:
    """Whether anybody may read it: what is mounted here is not looked at once more."""
    try:
        return bool(os.stat(path).st_mode & 0o004)
    except OSError:
        return False

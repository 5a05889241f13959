"""The caches of package managers inside: a folder for each workspace, which nobody outside obeys.

The user's own caches can be read by nobody but the user, and an application outside installs from them: what is inside
must not write there. Nor do workspaces share one: what one left in it would run in another.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import TYPE_CHECKING

from toolyard.files.removal import remove_tree
from toolyard.files.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CACHES = {
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    # `uvx` locks it before it runs anything. `uv tool install` still ends at the folder of programs, outside.
    "UV_TOOL_DIR": "uv-tools",
    "POETRY_CACHE_DIR": "poetry",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "YARN_GLOBAL_FOLDER": "yarn-global",
    "PNPM_HOME": "pnpm",
    "pnpm_config_store_dir": "pnpm/store",
    "pnpm_config_cache_dir": "pnpm/cache",
    "COREPACK_HOME": "corepack",
    "BUN_INSTALL_CACHE_DIR": "bun",
    "CARGO_HOME": "cargo",
    "GOMODCACHE": "go/mod",
    "GOCACHE": "go/build",
}
"""Which variable says where a package manager keeps what it fetched, and the folder for it."""
SETTINGS = {
    # A file in the cache is on another mount than the workspace, so that it cannot be linked there.
    "UV_LINK_MODE": "copy",
    "YARN_ENABLE_TELEMETRY": "0",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    # Whom the proxy does not find now it will not find in a minute either, and npm would wait as long.
    **dict.fromkeys(("npm_config_fetch_retry_mintimeout", "pnpm_config_fetch_retry_mintimeout"), "500"),
    **dict.fromkeys(("npm_config_fetch_retry_maxtimeout", "pnpm_config_fetch_retry_maxtimeout"), "1000"),
    **dict.fromkeys(("CARGO_NET_RETRY", "YARN_HTTP_RETRY"), "1"),
}
"""What they do otherwise than usual."""
KEPT_FOR = 30 * 24 * 3600.0
"""After so many seconds without use a workspace's caches are removed."""
CARGO_SETTINGS = ("config.toml", "config")


def cache_folder(workspace: Sequence[str]) -> str:
    """Where the caches of a workspace are."""
    folders = sorted({os.path.realpath(path) for path in workspace})
    name = hashlib.sha256(os.fsencode("\0".join(folders))).hexdigest()
    return os.path.join(os.path.realpath(user_folder("cache")), "sandboxes", name[:20])


def make_cache_folder(folder: str) -> bool:
    """Make it, and remove those that were not used for long; False where nothing can be written."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.utime(folder)
    except OSError:
        return False
    remove_unused(os.path.dirname(folder))
    show_cargo_settings(folder)
    return True


def remove_unused(folder: str) -> None:
    now = time.time()
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if now - entry.stat(follow_symlinks=False).st_mtime > KEPT_FOR:
                remove_tree(entry.path)


def show_cargo_settings(folder: str) -> None:
    """Let cargo find its owner's settings, which name mirrors, where it looks for them inside."""
    own = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    with contextlib.suppress(OSError):
        os.makedirs(os.path.join(folder, CACHES["CARGO_HOME"]), exist_ok=True)
        # Whoever is inside may have put a link in its place.
        cargo = os.open(os.path.join(folder, CACHES["CARGO_HOME"]), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for name in CARGO_SETTINGS:
                if os.path.exists(os.path.join(own, name)):
                    os.symlink(os.path.join(own, name), name, dir_fd=cargo)
        finally:
            os.close(cargo)


def cache_variables(folder: str, given: Mapping[bytes, bytes], can_write: Callable[[str], bool]) -> dict[bytes, bytes]:
    """The variables for package managers inside; one that already names a folder that can be written stays."""
    caches = {os.fsencode(name): os.fsencode(os.path.join(folder, below)) for name, below in CACHES.items()}
    wanted = {
        name: path for name, path in caches.items() if name not in given or not can_write(os.fsdecode(given[name]))
    }
    return wanted | {os.fsencode(k): os.fsencode(v) for k, v in SETTINGS.items() if os.fsencode(k) not in given}

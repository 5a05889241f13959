"""Where package managers of this machine are set up to get packages from, as its owner and its system say.

Only files outside of any workspace are read: what a project says of itself could have been written by anybody, and
must not open a way out. Credentials stay where they are.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolyard.core.regexes import late_pattern
from toolyard.files.plain_text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
UV_FILES = ("/etc/uv/uv.toml", "~/.config/uv/uv.toml")
NPM_FILES = ("/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc", "~/.npmrc")
CARGO_FILES = ("~/.cargo/config.toml", "~/.cargo/config")
URL = late_pattern(r"(?:https?|file)://[^\s\"'|,\]]+")
SETTING = late_pattern(r"^\s*[\"']?([@\w:./-]+)[\"']?\s*=\s*(.+(?:\n[ \t]+\S.*)*)", re.MULTILINE)
"""A line of an INI or TOML file, with those that go on with its value."""
PIP_SETTINGS = {"index-url": "PIP_INDEX_URL", "extra-index-url": "PIP_EXTRA_INDEX_URL", "find-links": "PIP_FIND_LINKS"}
UV_SETTINGS = {"index-url": "UV_INDEX_URL", "extra-index-url": "UV_EXTRA_INDEX_URL", "url": "UV_INDEX"}
NPM_SETTINGS = {"registry": "npm_config_registry"}
CARGO_SETTINGS = {"registry": "", "index": ""}
"""Which setting is which variable; none for those that a variable cannot say."""
VARIABLES = {
    "python": (
        *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"),
        *("UV_DEFAULT_INDEX", "UV_INDEX"),
    ),
    "node": (
        *("npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_REGISTRY", "YARN_NPM_REGISTRY_SERVER"),
        "COREPACK_NPM_REGISTRY",
    ),
    "go": ("GOPROXY",),
}
"""The variables that name mirrors."""


def configured_mirrors(kind: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """The addresses that packages of a kind come from; of those in files, none that a placeholder is part of."""
    given = os.environ if environ is None else environ
    named = [url for name in VARIABLES.get(kind, ()) for url in URL.findall(given.get(name, ""))]
    return [*named, *(url for _, url in settings_in_files(kind) if "$" not in url)]


def mirror_variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What is said in files that are hidden inside, or with a password, as variables without any credentials."""
    given = os.environ if environ is None else environ
    found: dict[str, list[str]] = {}
    for kind in ("python", "node"):
        for name, url in settings_in_files(kind):
            if name and name not in given and "$" not in url:
                found.setdefault(name, []).append(without_credentials(url))
        for name in VARIABLES[kind]:
            if "@" in given.get(name, ""):
                found[name] = [without_credentials(url) for url in URL.findall(given[name])]
    # The file that is read last decides, but of a list all count.
    single = ("PIP_INDEX_URL", "UV_INDEX_URL", *NPM_SETTINGS.values())
    return {name: urls[-1] if name in single else " ".join(dict.fromkeys(urls)) for name, urls in found.items()}


def settings_in_files(kind: str) -> Iterator[tuple[str, str]]:
    """Each address in the settings of the owner and of the system, with the variable that means the same, if any."""
    match kind:
        case "python":
            yield from addresses(PIP_FILES, PIP_SETTINGS)
            yield from addresses(UV_FILES, UV_SETTINGS)
        case "node":
            yield from addresses(NPM_FILES, NPM_SETTINGS, ending=":registry")
        case "rust":
            yield from addresses(CARGO_FILES, CARGO_SETTINGS)


def addresses(files: Sequence[str], settings: Mapping[str, str], *, ending: str = "=") -> Iterator[tuple[str, str]]:
    """The addresses that some settings of files have; also of settings whose names end so, for which is no variable."""
    for file in files:
        for name, value in SETTING.findall(text_of(os.path.expanduser(file))):
            if name in settings or name.endswith(ending):
                yield from ((settings.get(name, ""), url) for url in URL.findall(value))


def host_of(url: str) -> str | None:
    """The host of an address as `sandbox.hosts` spells it; None where there is none."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme == "file":
        return None
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{port}" if port else name


def without_credentials(url: str) -> str:
    """An address without what stands before an @ in it, and without what follows a question mark."""
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", parts.fragment))

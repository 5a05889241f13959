"""Variables by their names: which only the line itself looks at, and which programs obey the others."""

from __future__ import annotations

import re

from toolyard.bash.own_variables import is_own_variable, is_safe_variable
from toolyard.permissions.programs.categories import each_name, names

__all__ = ["is_harmless", "is_own_variable", "is_safe_variable", "obeyed_by"]

LOCALE = re.compile(r"[A-Za-z0-9_.@-]*")
SWITCH = re.compile(r"[A-Za-z0-9_-]{0,32}")
COUNT = re.compile(r"\d{0,6}")
ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z][A-Za-z0-9_+-]*){0,2}|")
HARMLESS = each_name(
    {
        "LANG LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME": LOCALE,
        "COLUMNS LINES PYTHONHASHSEED SOURCE_DATE_EPOCH": COUNT,
        "CI CLICOLOR CLICOLOR_FORCE FORCE_COLOR NO_COLOR CARGO_TERM_COLOR PY_COLORS TERM": SWITCH,
        "NODE_ENV PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED RUST_BACKTRACE": SWITCH,
        "TZ": ZONE,
        "GOPROXY GONOSUMDB": re.compile(r"off|direct"),
        "GIT_TRACE GIT_TRACE_SETUP GIT_TRACE_PERFORMANCE": re.compile(r"[012]|true|false"),
        "LESS": re.compile(r"-?[FRXSNiMeq]{0,12}"),
    }
)
"""Variables by which programs only print otherwise, each with the values that mean no more than that."""
WHO_OBEYS = each_name(
    {
        "PAGER EDITOR VISUAL LESS LESSOPEN LESSCLOSE MANPAGER BROWSER EMAIL": names("git gh man less svn hg"),
        "RIPGREP_CONFIG_PATH": names("rg"),
        "JQ_COLORS JQ_LIBRARY_PATH": names("jq"),
        "GREP_OPTIONS GREP_COLORS GREP_COLOR": names("grep egrep fgrep rg"),
        "LS_COLORS": names("ls tree fd"),
        "FCEDIT HISTFILE HISTCONTROL PS1 PS2 TMOUT": names("fc history"),
        "VIRTUAL_ENV VIRTUAL_ENV_PROMPT CONDA_PREFIX": names("python python3 pip pip3 uv poetry pytest"),
    }
)
"""Of single variables, the programs that look at them."""
WHO_OBEYS_FAMILY = {
    "GIT_": names("git gh hub tig"),
    "PYTHON": names("python python3 pip pip3 uv pytest poetry tox nox mypy ruff"),
    "PYTEST": names("pytest python python3"),
    "NODE_": names("node npm npx pnpm yarn tsx ts-node"),
    "NPM_": names("npm npx"),
    "npm_": names("npm npx"),
    "PIP_": names("pip pip3 python python3"),
    "UV_": names("uv uvx"),
    "CARGO": names("cargo rustc"),
    "RUST": names("cargo rustc rustup"),
    "JAVA": names("java javac mvn gradle"),
    "MAKE": names("make gmake cmake ninja"),
    "DOCKER": names("docker docker-compose"),
    "KUBE": names("kubectl helm"),
    "AWS_": names("aws"),
}


def is_harmless_assignment(name: str | None, value: str | None) -> bool:
    """Whether a program does nothing else for a variable than it would without."""
    pattern = HARMLESS.get(name or "")
    return pattern is not None and value is not None and bool(pattern.fullmatch(value))


def is_harmless(name: str | None, value: str | None) -> bool:
    """Whether setting a variable to a value, where programs see it, changes nothing but how they print."""
    if name in ("GIT_PAGER", "PAGER", "MANPAGER"):
        return value in ("cat", "")
    if name in ("GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"):
        return value == "0"
    return is_harmless_assignment(name, value)


def obeyed_by(name: str) -> frozenset[str] | None:
    """The programs that obey a variable; None when it may be any."""
    if name in WHO_OBEYS:
        return WHO_OBEYS[name]
    return next((programs for start, programs in WHO_OBEYS_FAMILY.items() if name.startswith(start)), None)

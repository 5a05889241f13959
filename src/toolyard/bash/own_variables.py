"""Variables by their names: those that nobody looks at but the line itself, neither bash nor a program."""

from __future__ import annotations

import re

from toolyard.core.regexes import late_pattern

SAFE_VARIABLE = late_pattern(r"[a-z][a-z0-9_]{0,31}")
OWN_NAME = late_pattern(r"[A-Z][A-Z0-9_]{0,39}", re.ASCII)
OBEYED = late_pattern(
    r"(?:^|_)(?:PATH|HOME|DIR|DIRS|CONFIG|CONF|OPTIONS?|OPTS?|FLAGS|ARGS|EDITOR|PAGER|VISUAL|SHELL|BROWSER|VIEWER|PROXY|PRELOAD|AUDIT"
    r"|COMMAND|CMD|PROMPT|HOOKS?|RC|INIT|STARTUP|PLUGINS?|EXEC|RUNNER|WRAPPER|LAUNCHER|ASKPASS|SSH|ENV|TERM|TOKEN|KEY"
    r"|SECRET|PASSWORD|PASS|USER|HOST|URL|URI|SERVER|SOCK|SOCKET|DISPLAY|LOG|TRACE|DEBUG|LEVEL|MODE|PYTHON|PERL|RUBY|LUA"
    r"|NODE|JAVA|CC|CXX|CPP|LD|AR|AS|NM|CONFIGURATION|PROFILE|LOCALE|LOAD|MODULE|MODULES|TZ|TMP|TEMP|CACHE|CERT|CA|INDEX)(?:_|$)"
    r"|(?:PATH|RC|HOME|DIR|OPTS?|OPTIONS|FLAGS|CONFIG|CONF|PRELOAD|PAGER|EDITOR|SHELL)$"
)
"""Words in the names of variables that programs obey."""
FAMILIES = late_pattern(
    r"(?:BASH|PYTHON|PERL|RUBY|JAVA|DYLD|HIST|PS[0-9]|POSIX|GLOB|TERM|MAIL|LESS|XDG|MAN|NLS|LOC|GCONV|CARGO|RUST|KUBE|GREP"
    r"|(?:GIT|LD|PYTEST|NODE|NPM|PNPM|YARN|PIP|UV|GO|GEM|BUNDLE|JDK|MAVEN|GRADLE|DOCKER|AWS|AZURE|GOOGLE|LC|RIPGREP|FZF|FD|BAT|JQ|TAR"
    r"|GZIP|XZ|ZSTD|ZIP|MAKE|CMAKE|PKG|HTTP|HTTPS|ALL|NO|FTP|SSL|CURL|MALLOC|GLIBC|COMP|READLINE|PROMPT|CHILD|LS|TREE|SED|AWK|DIFF|COLOR"
    r"|BLOCK|QUOTING|VIM|DEB|APT|RES|KRB|GPG|SSH|FUNC|EXEC|TOOLYARD|AGENT|TMUX|WSL|VSCODE|CLAUDE|OPENSSL)_)"
)
"""How the names of variables begin that belong to a program."""
SHELL_OWN = late_pattern(
    r"IFS|PATH|HOME|CDPATH|ENV|PWD|OLDPWD|SHLVL|UID|EUID|PPID|GROUPS|RANDOM|SRANDOM|SECONDS|LINENO|OSTYPE|MACHTYPE"
    r"|HOSTTYPE|REPLY|MAPFILE|COPROC|FCEDIT|INPUTRC|LOGNAME|USER|USERNAME|IGNOREEOF|PIPESTATUS|DISPLAY|CI|EDITOR"
    r"|VISUAL|PAGER|BROWSER|SHELL|SHELLOPTS|FUNCNEST|EXECIGNORE|TIMEFORMAT|TMOUT|TMPDIR|TMP|TEMP|TZ|LANG|LANGUAGE"
    r"|COLUMNS|LINES|FIGNORE|OPTIND|OPTARG|OPTERR|DIRSTACK|WGETRC|HOSTALIASES|GNUPGHOME|MAKEFLAGS|MAKELEVEL|MFLAGS"
    r"|GZIP|MAGIC|TAPE|RSH|CLASSPATH|GOPATH|GOFLAGS|GOROOT|GOBIN|GOENV|GOPROXY|RSYNC_RSH|CVS_RSH|SUDO_ASKPASS"
    r"|UNZIP|UNZIPOPT|ZIPOPT|ZIPINFO|ZIPINFOOPT"
)
"""Variables that bash or a program of everyday use looks at."""


def is_safe_variable(name: str | None) -> bool:
    """Whether no program and no part of bash looks at a variable of that name."""
    if name is None or not SAFE_VARIABLE.fullmatch(name):
        return False
    return not (name.endswith("_proxy") or name.startswith(("npm_", "pip_", "git_", "auto_")) or name == "histchars")


def is_own_variable(name: str | None, *, exported: bool = False) -> bool:
    """Whether nobody looks at a variable of that name but the line itself; programs see only exported ones."""
    if name is None:
        return False
    if is_safe_variable(name):
        return True
    is_plain = OWN_NAME.fullmatch(name) is not None and not SHELL_OWN.fullmatch(name) and not FAMILIES.match(name)
    return is_plain and not (exported and OBEYED.search(name))

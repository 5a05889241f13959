"""The state of a shell as data, so that a shell of another reach can go on with it.

What a shell says of itself is never run elsewhere: whoever controls a shell that may only look could write anything
into it. It is read strictly, and each value is written anew as a quoted word. Functions, aliases and traps are code and
stay behind, and so do variables that make programs or bash itself run something else. From a shell that reaches less
far, where lines run that nobody vouches for, only that comes back which nobody obeys.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from toolyard.bash.own_variables import is_own_variable
from toolyard.bash.session.command_text import quoted
from toolyard.bash.session.dump_syntax import Variable, odd_names, read_declarations
from toolyard.core.regexes import late_pattern
from toolyard.process.process_tree import line_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


DUMP = rb"""\unset -f builtin
{
\builtin umask
\builtin declare -p
\builtin declare -F
\builtin alias -p
\builtin trap -p
} >|@FILE@ 2>/dev/null
"""
"""What a shell prints of itself; only the first part is taken over, the rest is told to people."""
OF_BASH = late_pattern(
    rb"_|BASH.*|COMP_.*|COPROC|DIRSTACK|EPOCH.*|EUID|FUNCNAME|GROUPS|HIST.*|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|MAIL.*"
    rb"|MAPFILE|OLDPWD|OPT(?:ARG|ERR|IND)|OSTYPE|PIPESTATUS|PPID|PS\d|PWD|RANDOM|READLINE_.*|REPLY|SECONDS|SHELLOPTS"
    rb"|SHLVL|SRANDOM|UID|COLUMNS|LINES|TERM|IGNOREEOF|TIMEFORMAT|TMOUT|POSIXLY_CORRECT|FUNCNEST|CHILD_MAX|GLOBSORT"
    rb"|EMACS|TEXTDOMAIN.*|histchars|auto_resume"
)
"""Variables that every bash has of its own."""
OBEYED = late_pattern(
    rb"PATH|CDPATH|ENV|IFS|PROMPT_COMMAND|FIGNORE|GLOBIGNORE|EXECIGNORE|INPUTRC|FPATH|FCEDIT|HOME|SHELL|TMPDIR|XDG_.*"
    rb"|GIT_.*|SSH_.*|LD_.*|DYLD_.*|GLIBC_.*|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|PYTHON.*|PYTEST_.*|PIP_.*|UV_.*"
    rb"|POETRY_.*|NODE_.*|NPM_.*|npm_.*|PNPM_.*|pnpm_.*|YARN_.*|COREPACK_.*|DENO_.*|BUN_.*"
    rb"|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|JAVA_.*|_JAVA_.*|JDK_.*|MAVEN_.*"
    rb"|GRADLE_.*|CARGO_.*|RUST.*|GO[A-Z]+|GCC_.*|COMPILER_PATH|LIBRARY_PATH|CPATH|C_INCLUDE_PATH|CC|CXX|CPP|LD|AR"
    rb"|(?:C|CXX|CPP|LD)FLAGS|MAKE.*|MFLAGS|CMAKE_.*|.*PAGER|.*EDITOR|VISUAL|BROWSER|LESS.*|MORE|MANOPT|MANPATH"
    rb"|RIPGREP_CONFIG_PATH|GREP_.*|TAR_.*|ZIPOPT|UNZIP|RSYNC_.*|CURL_.*|WGETRC|[A-Za-z_]*_?(?:proxy|PROXY)"
    rb"|DOCKER_.*|KUBECONFIG|AWS_.*|TERMINFO.*|TERMCAP|LUA_.*|R_.*|JULIA_.*|PHP.*|AWKPATH|AWKLIBPATH|SED_.*|OPENSSL_.*|SSL_.*"
)
"""Variables that make a program, or bash, run or load something else; those of the shell's own beginning stay."""
SET_BY_BASH = frozenset({b"PATH", b"SHELL"})
"""Those of them that bash sets, for itself alone, where its environment has none."""
OPTIONS = frozenset({"allexport", "errexit", "noclobber", "noglob", "nounset", "physical", "pipefail", "xtrace"})
SHELL_OPTIONS = frozenset({
    "dotglob", "extglob", "failglob", "globstar", "inherit_errexit", "lastpipe", "nocaseglob", "nocasematch",
    "nullglob", "xpg_echo",
})  # fmt: skip
"""Options that only change how a line is read, of `set -o` and of `shopt`."""
UMASK = late_pattern(rb"0?[0-7]{3,4}")
FUNCTION = late_pattern(rb"^declare -f\S* (\S+)$", re.MULTILINE)
ALIAS = late_pattern(rb"^alias (?:-- )?([^=\s]+)=", re.MULTILINE)
TRAP = late_pattern(rb"^trap -- (.*) (\S+)$", re.MULTILINE)
WORD = late_pattern(rb"\w+")
NAME = late_pattern(rb"[A-Za-z_][A-Za-z0-9_]*")
MOST_TOLD = 1 << 20
"""Whoever runs beside a shell can write what it tells, and we have better things to do than to read it."""
MOST_SHOWN, LONGEST_SHOWN = 24, 200


class CarriedState(msgspec.Struct, frozen=True, kw_only=True):
    """What of a shell's state goes along to another."""

    cwd: str
    variables: Mapping[bytes, Variable]
    options: frozenset[str] = frozenset()
    shell_options: frozenset[str] = frozenset()
    umask: bytes = b""
    odd: frozenset[bytes] = frozenset()
    """Variables that are more than a text of the shell's own: exported, readonly, numbers, lists, references."""
    left: tuple[str, ...] = ()
    """What stays behind, in words."""
    is_told: bool = True
    """Whether the shell said it; of one that did not, only the beginning is known."""

    def startup_lines(self, env: Mapping[bytes, bytes]) -> bytes:
        """What makes a fresh shell with these variables go on with the state."""
        return b"\n".join((*assignments(self._changed(env), self._gone(env)), *self._option_lines())) + b"\n"

    def lines_since(self, before: CarriedState) -> bytes:
        """What makes a shell that had the state from before go on with this one."""
        if not self.is_told:
            return b""
        changed = {name: each for name, each in self.variables.items() if before.variables.get(name) != each}
        gone = [name for name in before.variables if name not in self.variables]
        folder = [] if self.cwd == before.cwd else [b"\\builtin cd -- " + quoted(self.cwd)]
        return b"\n".join((*folder, *assignments(changed, gone), *self._option_lines(before))) + b"\n"

    def without_obeyed(self, before: CarriedState, here: CarriedState, line: str) -> CarriedState:
        """What of it a shell that reaches further goes on with, after a line that nobody vouches for.

        The folder, and texts that the line names, that no program gets, and that are nobody's but the line's; `here` is
        what that shell holds itself.
        """
        changed = {name: each for name, each in self.variables.items() if before.variables.get(name) != each}
        named, odd = {*WORD.findall(os.fsencode(line))}, self.odd | here.odd
        is_plain = here.is_told and "allexport" not in here.options
        taken = {
            name: each
            for name, each in changed.items()
            if is_plain and name in named and name not in odd and is_own_variable(name.decode(), exported=True)
        }
        left = [name.decode() for name in changed if name not in taken]
        if self._settings != before._settings:
            left.append("options")
        state = replace(self, variables={**before.variables, **taken}, left=(*left, *self.left))
        return state._with_settings_of(before)

    def shown_for(self, command: str, env: Mapping[bytes, bytes]) -> CarriedState:
        """What a question about a command shows of it, in full: what programs get, and what the command names.

        Of what changed since `env`, nothing else goes along; options and umask do, and are shown as well.
        """
        changed, gone = self._changed(env), self._gone(env)
        wanted = {name: None for name, each in changed.items() if each.exported} | named_by(command, changed)
        fitting = [name for name in wanted if len(changed[name].shown()) <= LONGEST_SHOWN][:MOST_SHOWN]
        kept = {name: each for name, each in self.variables.items() if name not in changed or name in fitting}
        left = [name.decode() for name in wanted if name not in fitting]
        as_begun = begun({name: env[name] for name in (*changed, *gone[MOST_SHOWN:]) if name in env})
        return replace(self, variables=as_begun | kept, left=(*self.left, *left))

    def unseen(
        self, env: Mapping[bytes, bytes], command: str | None = None, *, keeps_options: bool = False
    ) -> CarriedState:
        """What goes along where nobody has looked at it: no program gets what changed; only what a command names.

        Options and umask are those of a fresh shell, unless they may be kept: where nothing more can be done by them.
        """
        changed = self._changed(env)
        named = changed if command is None else {word for word in WORD.findall(os.fsencode(command)) if word in changed}
        kept = {
            name: replace(each, exported=False) if name in changed else each
            for name, each in self.variables.items()
            if name not in changed or (name in named and name not in env)
        }
        left = [f"{name.decode()} for programs" for name, each in changed.items() if each.exported or name in env]
        state = replace(self, variables=kept | begun({name: env[name] for name in env if name not in kept}))
        if keeps_options or not self._told_settings():
            return replace(state, left=(*self.left, *left))
        return replace(state, left=(*self.left, *left, "options"))._with_settings_of(fresh_state(self.cwd))

    def described(self, env: Mapping[bytes, bytes]) -> str:
        """What a person has to know of it before saying yes; empty when there is nothing."""
        shown = [f"{name.decode()}={each.shown()}" for name, each in self._changed(env).items()]
        parts = (
            ("with", ", ".join((*self._told_settings(), *shown))),
            ("unset", ", ".join(name.decode() for name in self._gone(env))),
            ("without", listed(list(self.left))),
        )
        return "; ".join(f"{word} {items}" for word, items in parts if items)

    def _changed(self, env: Mapping[bytes, bytes]) -> dict[bytes, Variable]:
        return {name: each for name, each in self.variables.items() if not each.is_in(env, name)}

    def _gone(self, env: Mapping[bytes, bytes]) -> list[bytes]:
        """What such a shell began with and has no more."""
        return [name for name in env if name not in self.variables and is_carried(name) and NAME.fullmatch(name)]

    @property
    def _settings(self) -> tuple[frozenset[str], frozenset[str], bytes]:
        """The options that go along, and the umask."""
        return self.options & OPTIONS, self.shell_options & SHELL_OPTIONS, self.umask

    def _with_settings_of(self, other: CarriedState) -> CarriedState:
        return replace(self, options=other.options, shell_options=other.shell_options, umask=other.umask)

    def _told_settings(self) -> list[str]:
        """Options that a fresh shell has not, and a umask that is not ours; each in words."""
        options = sorted((self.options & OPTIONS) | (self.shell_options & SHELL_OPTIONS))
        umask = [f"umask {self.umask.decode()}"] if self.umask and int(self.umask, 8) != usual_umask() else []
        return [*umask, *([f"options {' '.join(options)}"] if options else [])]

    def _option_lines(self, before: CarriedState | None = None) -> Iterator[bytes]:
        """All options and the umask, or those that are others than before."""
        if self.umask and (before is None or before.umask not in (b"", self.umask)):
            yield b"\\builtin umask " + self.umask
        for name in sorted(SHELL_OPTIONS & (self.shell_options ^ before.shell_options) if before else SHELL_OPTIONS):
            # Some are younger than the oldest bash.
            yield b"\\builtin shopt %b %b 2>/dev/null" % (
                b"-s" if name in self.shell_options else b"-u",
                name.encode(),
            )
        for name in sorted(OPTIONS & (self.options ^ before.options) if before else OPTIONS):
            yield b"\\builtin set %bo %b" % (b"-" if name in self.options else b"+", name.encode())


def read_state(dump: bytes, cwd: str, *, env: Mapping[bytes, bytes], own_folder: str) -> CarriedState:
    """The state that a shell told which began with `env`; our own traps, in `own_folder`, are nobody's business."""
    if not dump or len(dump) > MOST_TOLD:
        return untold_state(cwd, env)
    mask, _, rest = dump.partition(b"\n")
    variables, told = read_declarations(rest)
    carried = {name: each for name, each in variables.items() if is_carried(name)}
    traps = [
        name.decode(errors="replace")
        for text, name in TRAP.findall(told)
        if own_folder.encode() not in text and b"kill -s INT $$" not in text
    ]
    changed = [name for name, each in variables.items() if is_obeyed(name) and not is_as_begun(name, each, env)]
    left = (
        *(name.decode() for name in changed),
        *(f"function {name.decode(errors='replace')}" for name in FUNCTION.findall(told)),
        *(f"alias {name.decode(errors='replace')}" for name in ALIAS.findall(told)),
        *(f"trap {name}" for name in traps),
    )
    return CarriedState(
        cwd=cwd,
        variables=carried,
        options=option_names(variables, b"SHELLOPTS"),
        shell_options=option_names(variables, b"BASHOPTS"),
        umask=mask if UMASK.fullmatch(mask) else b"",
        odd=odd_names(rest),
        left=left,
    )


def untold_state(cwd: str, env: Mapping[bytes, bytes]) -> CarriedState:
    """What is known of a shell that tells nothing, or too much to be read at once."""
    return CarriedState(cwd=cwd, variables=begun(env), left=("variables and options",), is_told=False)


def fresh_state(cwd: str) -> CarriedState:
    """That of a shell in which nothing has run; what it begins with is for its environment to say."""
    return CarriedState(cwd=cwd, variables={}, umask=b"%04o" % usual_umask())


def begun(env: Mapping[bytes, bytes]) -> dict[bytes, Variable]:
    """The variables that a shell begins with, and that may go along."""
    given = ((name, value) for name, value in env.items() if is_carried(name) and NAME.fullmatch(name))
    return {name: Variable(kind="text", exported=True, readonly=False, value=value) for name, value in given}


def usual_umask() -> int:
    """Ours, which every shell begins with. To ask for it by setting another would be seen by other threads."""
    told = line_of("/proc/self/status", b"Umask:")
    if told:
        return int(told[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def is_obeyed(name: bytes) -> bool:
    return bool(OBEYED.fullmatch(name)) and not OF_BASH.fullmatch(name)


def is_as_begun(name: bytes, variable: Variable, env: Mapping[bytes, bytes]) -> bool:
    """Whether a variable is what it is in a fresh shell, which gives itself some that its environment lacks."""
    if name == b"IFS":
        return variable.value == b" \t\n"
    is_of_bash = name in SET_BY_BASH and name not in env and variable.kind == "text" and not variable.exported
    return is_of_bash or variable.is_in(env, name)


def is_carried(name: bytes) -> bool:
    return not OF_BASH.fullmatch(name) and not OBEYED.fullmatch(name)


def option_names(variables: Mapping[bytes, Variable], name: bytes) -> frozenset[str]:
    found = variables.get(name)
    return frozenset(found.value.decode(errors="replace").split(":")) if found and found.kind == "text" else frozenset()


def assignments(variables: Mapping[bytes, Variable], gone: Iterable[bytes]) -> Iterator[bytes]:
    for name in gone:
        yield b"\\builtin unset -v " + name
    for name, variable in variables.items():
        yield from variable.lines(name)


def named_by(command: str, variables: Mapping[bytes, Variable]) -> dict[bytes, None]:
    """The variables that a command names, and those that their values name: bash may take a value for a name."""
    found: dict[bytes, None] = {}
    waiting = [os.fsencode(command)]
    while waiting:
        words = [word for word in WORD.findall(waiting.pop()) if word in variables and word not in found]
        found |= dict.fromkeys(words)
        waiting += [variables[word].text() for word in dict.fromkeys(words)]
    return found


def listed(items: list[str]) -> str:
    more = len(items) - MOST_SHOWN
    return ", ".join(items[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")

"""How a shell that ends hands its state to the next: variables, functions, aliases, options, traps, directory."""

from __future__ import annotations

import re

WHOLE = b"# this is all of it\n"
"""The last line of a state; one without it was cut short and is not used."""

ENDS_SHELLS = re.compile(rb"^(?:set -o onecmd|declare -\S+ PROMPT_COMMAND=.*)\n", re.MULTILINE)
"""With that the next shell might end as the last one did, before it has run anything."""

STATE = rb"""\unset -f builtin
{
\builtin printf 'cd -- %q\n' "${PWD-/}"
\builtin shopt -p
\builtin declare -p
@TRAPS@
\builtin umask -p
\builtin printf 'set --'
\builtin [ $# = 0 ] || \builtin printf ' %q' "$@"
\builtin printf '\n'
\builtin set +o
\builtin declare -f
\builtin declare -F
\builtin alias -p
\builtin printf '%s\n' '@WHOLE@'
} >@FILE@ 2>/dev/null
"""
"""Every line prints what bash itself can read: what needs a word before the functions that may take it away, functions
before the aliases that would change their words. A function named `builtin` is the one that cannot be handed on."""


def leave_script(file: bytes) -> bytes:
    """What a shell runs last of all. Its EXIT trap is over by then, or is the one that runs this."""
    return fill(file, traps=b"\\builtin trap - EXIT\n\\builtin trap -p")


def snapshot_script(file: bytes) -> bytes:
    """The same before a command, when the shell goes on; its traps stay its own."""
    return fill(file, traps=b"")


def takes_over(state: bytes) -> bytes | None:
    """What the next shell runs first; None when there is nothing whole."""
    if not state.endswith(WHOLE):
        return None
    return ENDS_SHELLS.sub(b"", state)


def fill(file: bytes, *, traps: bytes) -> bytes:
    return STATE.replace(b"@TRAPS@", traps).replace(b"@WHOLE@", WHOLE.strip()).replace(b"@FILE@", file)

"""Code that a line brings along for an interpreter: whether it plainly does more than to compute and to print.

It is asked only of code that runs where it can neither change nor see anything but the workspace: what is overlooked
here fails there.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import each_name, names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.reading import SimpleCommand


CODE_OF = each_name({
    "perl": r"-[a-zA-Z0-9]*[eE]",
    "ruby": r"-[a-zA-Z0-9]*e",
    "node nodejs": r"-(?:e|p|pe)|--(?:eval|print)",
    "php": r"-r",
    "lua luajit": r"-e",
    "python": r"-[bBdEIOPqsSuvx]*c",
})  # fmt: skip
"""The option behind which each language has its code, where that stands in the line."""
TAKES_INPUT = names("python perl ruby node nodejs php lua luajit sqlite bc")
"""Languages whose code may stand in a here-document."""
CHANGES = re.compile(
    r"\bunlink\w*\b|\brmdir\w*\b|\bmk(?:dir|dirs|fifo)\w*\b|\bmakedirs\b|\brename\w*\b|\brmtree\b|\bfs\.(?:rm|cp|promises)\w*|(?i:write_?(?:file|text|bytes))"
    r"|(?i:append_?file)|createWriteStream|\bFile\.(?:write|delete)|\bos\.(?:remove|replace|chmod|symlink|link|truncate)\b|\bshutil\b"
    r"|\bopen\b[^)\n]*?,\s*(?:mode\s*=\s*)?['\"](?:[wax]b?t?\+?|r\+b?|>>?|\+<)(?::[\w-]+)?['\"]|\bextractall?\b"
)
"""What says that it changes files."""
TEMPORARY_SCRIPT = re.compile(r"/(?:var/)?tmp/[\w-]+\.(?:py|js|mjs|pl|rb)", re.ASCII)
REACHES = re.compile(
    r"\bfetch\s*\(|require\(\s*['\"](?:node:)?(?:https?|net|tls|dgram)['\"]|\bsocket\b|urlopen|\brequests\.(?:get|post|put|patch|delete|head|request|Session)\b|http\.client|Net::HTTP"
)
"""What says that it wants to speak to others."""
ACTING_MODULES = names("""
    compileall cProfile doctest ensurepip http.server idlelib lib2to3 pdb pip profile py_compile pydoc runpy smtpd test
    trace turtledemo unittest venv webbrowser xmlrpc.server zipapp
""")
"""Modules of Python's own that are run to change something, to serve or to run code of others; all others look."""
MANNER = re.compile(r"-[bBdEIOPqsSuv]+|-W\w+")
EXTRACTS = names("-e -c --extract --create")
PIP_LOOKS = names("list freeze show check --version -V config debug inspect")


def has_plain_code(language: str, rest: Sequence[str | None], fed_by: SimpleCommand | None) -> bool:
    """Whether a language is given code in the line itself, and that does not plainly want more than to look.

    What it loads or runs besides, be it of the workspace, looks no further than it does.
    """
    if language == "python" and (at := module_at(rest)):
        return is_looking_module(rest[at:])
    if rest and TEMPORARY_SCRIPT.fullmatch(rest[0] or ""):  # of its own, and none of the workspace's
        return True
    code = code_of(language, rest, fed_by)
    return code is not None and not any(each.search(code) for each in (CHANGES, REACHES))


def module_at(rest: Sequence[str | None]) -> int:
    """Where the module stands that Python runs, behind options that only say how it is run; 0 where there is none."""
    for at, value in enumerate(rest):
        if value == "-m":
            return at + 1
        if not MANNER.fullmatch(value or ""):
            break
    return 0


def is_looking_module(rest: Sequence[str | None]) -> bool:
    """Whether `python -m` is given a module that only looks."""
    module, *words = (value or "" for value in rest) if rest else ("",)
    if module == "pip":
        return bool(words) and words[0] in PIP_LOOKS and not {"set", "edit", "unset"}.intersection(words)
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return False
    unpacks = module in ("tarfile", "zipfile") and EXTRACTS.intersection(words)
    is_acting = unpacks or not ACTING_MODULES.isdisjoint((module, module.partition(".")[0]))
    return words in (["--help"], ["-h"]) or not is_acting


def code_of(language: str, rest: Sequence[str | None], fed_by: SimpleCommand | None) -> str | None:
    """The code that a language is given; empty where it reads what another command prints, None where it is a file."""
    pattern = CODE_OF.get(language, r"(?!)")
    at = next((at for at, value in enumerate(rest) if re.fullmatch(pattern, value or "")), None)
    if at is not None:
        return rest[at + 1] if at + 1 < len(rest) else None
    is_read = "-" in rest or not any(value and value[0] not in "-+" for value in rest)
    if language not in TAKES_INPUT or not (is_read or language in ("sqlite", "bc")):
        return None
    return here_document(fed_by) or ""


def here_document(fed_by: SimpleCommand | None) -> str | None:
    """What a command reads that stands in the line, as bash leaves it."""
    bodies = [each for each in (fed_by.redirections if fed_by else ()) if each.operator.startswith("<")]
    return bodies[0].body if len(bodies) == 1 and bodies[0].is_literal else None

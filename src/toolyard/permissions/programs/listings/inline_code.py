"""Code that a line brings along for an interpreter: whether it plainly does more than to compute and to print.

It is asked only of code that runs where it can neither change nor see anything but the workspace: what is overlooked
here fails there.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from toolyard.permissions.programs.categories import each_name, names
from toolyard.permissions.programs.listings.python_code import shadows_modules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.reading import SimpleCommand


CODE_OF = each_name({
    "perl": r"-[a-zA-Z0-9]*[eE]",
    "ruby": r"-[a-zA-Z0-9]*e",
    "node nodejs": r"-(?:e|p|pe)|--(?:eval|print)",
    "php": r"-r",
    "lua luajit": r"-e",
    "python": r"-c",
})  # fmt: skip
"""The option behind which each language has its code, where that stands in the line."""
TAKES_INPUT = names("python perl ruby node nodejs php lua luajit sqlite bc")
"""Languages whose code may stand in a here-document."""
PLAIN_OPTION = re.compile(
    r"-[a-hj-zA-HJ-Z0-9]{0,6}|-F.*|-M[\w:]+(?:=[\w,:]+)?|-r[a-z][\w/]*|--input-type=\w+|--no-warnings|-[0-9]+"
)
"""Options of languages that load nothing of the workspace, and change no file in its place."""
RUNS = re.compile(
    r"child_process|\bsubprocess\b|\bos\.(?:system|exec\w*|spawn\w*|fork|kill)|(?<![.\w])(?:system|exec|fork|kill)\b\s*[('\"{]|popen|spawn\w*\s*\("
    r"|\bexec(?:Sync|File|FileSync)\b|`(?![^`]*\$\{)|%x\W|\bqx\W|ctypes|__import__|import_module|worker_threads|\bpty\b"
    r"|require_relative|(?<![.\w])load\s*[('\"]|\bdo\s*['\"(]|\brequire\s*\(?\s*['\"](?:\.{1,2}/|/)(?![^'\"]*\.json['\"])|\bimport\s*\("
)
"""What says that code runs something else, or code of the workspace."""
CHANGES = re.compile(
    r"\bunlink\w*\b|\brmdir\w*\b|\bmk(?:dir|dirs|fifo)\w*\b|\bmakedirs\b|\brename\w*\b|\brmtree\b|\bfs\.(?:rm|cp|promises)\w*|(?i:write_?(?:file|text|bytes))"
    r"|(?i:append_?file)|createWriteStream|\bFile\.(?:write|delete)|\bos\.(?:remove|replace|chmod|symlink|link|truncate)\b|\bshutil\b"
    r"|\bopen\b[^)\n]*?,\s*(?:mode\s*=\s*)?['\"](?:[wax]b?t?\+?|r\+b?|>>?|\+<)(?::[\w-]+)?['\"]|\bextractall?\b"
)
"""What says that it changes files."""
TEMPORARY_SCRIPT = re.compile(r"/(?:var/)?tmp/[\w-]+\.(?:py|js|mjs|pl|rb)", re.ASCII)
REACHES = re.compile(
    r"\bfetch\s*\(|require\(\s*['\"](?:node:)?(?:https?|net|tls|dgram)['\"]|\bsocket\b|urlopen|\brequests\.|http\.client|Net::HTTP"
)
"""What says that it wants to speak to others."""
IMPORTS = re.compile(r"(?m)(?:^|[;:])[ \t]*(?:import|from)[ \t]+([\w., \t]+)")
LOOKING_MODULES = names("""
    ast base64 calendar dis inspect json.tool pickletools platform site symtable sysconfig tabnanny tarfile timeit
    tokenize zipfile
""")
"""Modules of Python's own that are run to look at something."""
EXTRACTS = names("-e -c --extract --create")
PIP_LOOKS = names("list freeze show check --version -V config debug inspect")


def has_plain_code(language: str, rest: Sequence[str | None], cwd: str, fed_by: SimpleCommand | None) -> bool:
    """Whether a language is given code in the line itself, and that does not plainly want more than to look."""
    if language == "python" and shadows_modules(cwd):
        return False
    if language == "python" and rest[:1] == ["-m"]:
        return is_looking_module(rest[1:])
    if rest and TEMPORARY_SCRIPT.fullmatch(rest[0] or ""):  # of its own, and none of the workspace's
        return True
    found = code_and_options(language, rest, fed_by)
    if found is None or any(each.search(found[0]) for each in (RUNS, CHANGES, REACHES)):
        return False
    code, options = found
    is_plain = all(value is not None and PLAIN_OPTION.fullmatch(value) for value in options)
    return is_plain and (language != "python" or imports_nothing_from(cwd, code))


def is_looking_module(rest: Sequence[str | None]) -> bool:
    """Whether `python -m` is given a module that only looks."""
    module, *words = (value or "" for value in rest) if rest else ("",)
    if module == "pip":
        return bool(words) and words[0] in PIP_LOOKS and not {"set", "edit", "unset"}.intersection(words)
    asks = words in (["--help"], ["-h"]) and module.partition(".")[0] in sys.stdlib_module_names
    return asks or (module in LOOKING_MODULES and not EXTRACTS.intersection(words))


def code_and_options(
    language: str, rest: Sequence[str | None], fed_by: SimpleCommand | None
) -> tuple[str, Sequence[str | None]] | None:
    """The code, and what comes before it; None where it is not in the line."""
    pattern = CODE_OF.get(language, r"(?!)")
    at = next((at for at, value in enumerate(rest) if re.fullmatch(pattern, value or "")), None)
    if at is not None:
        code = rest[at + 1] if at + 1 < len(rest) else None
        return None if code is None else (code, rest[:at])
    body = here_document(fed_by)
    if language == "sqlite" and fed_by and all(each.operator == "<" for each in fed_by.redirections):
        body = ""  # the file is judged by itself
    if body is None or language not in TAKES_INPUT:
        return None
    options = rest[: rest.index("-")] if "-" in rest else rest
    return body, options if language not in ("sqlite", "bc") else ()


def here_document(fed_by: SimpleCommand | None) -> str | None:
    """What a command reads that stands in the line, as bash leaves it."""
    bodies = [each for each in (fed_by.redirections if fed_by else ()) if each.operator.startswith("<")]
    return bodies[0].body if len(bodies) == 1 and bodies[0].is_literal else None


def imports_nothing_from(cwd: str, code: str) -> bool:
    """Whether no import is of a file in the folder, where Python looks first."""
    rows = [name.split() for row in IMPORTS.findall(code) for name in row.split(",")]
    found = {row[0].partition(".")[0] for row in rows if row}
    return not any(os.path.lexists(os.path.join(cwd, name + end)) for name in found for end in ("", ".py", ".so"))

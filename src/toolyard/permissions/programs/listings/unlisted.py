"""Commands that no rule of a preset spells out, and that only look where a sandbox wholly keeps them in.

They get the reach `look`: whatever they turn out to do, nothing can be changed. What names a file outside of the
workspace is asked about all the same, and so is what is known to want more than to look.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from toolyard.bash.syntax.words import literal_word
from toolyard.permissions.programs.categories import (
    CHANGES_THE_SHELL,
    DESTRUCTIVE,
    ONLY_LOOKS,
    PRIVILEGED,
    SETTINGS_OF_THE_FOLDER,
    is_interpreter,
    names,
)
from toolyard.permissions.programs.guards import concerns_about, is_known
from toolyard.permissions.programs.listings.help_texts import asks_for_help, found_inside
from toolyard.permissions.programs.listings.inline_code import here_document
from toolyard.permissions.programs.listings.python_code import computes, shadows_modules
from toolyard.permissions.programs.operands import Operands
from toolyard.permissions.programs.options import Operand
from toolyard.permissions.rules import PRESET, Rule, RuleOrigin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolyard.bash.syntax.reading import SimpleCommand
    from toolyard.bash.syntax.words import Word
    from toolyard.core.reach import Reach
    from toolyard.permissions.file_access import FileAccess, WorkingFolder


def looking_rule(text: str, label: str, *, reach: Reach = "look") -> Rule:
    return Rule(decision="allow", text=text, origin=RuleOrigin(label=PRESET + label), confined=True, reach=reach)


HELP = looking_rule("PROGRAM --help", "help")
PYTHON = looking_rule("python3 -c", "python")
OTHERS = looking_rule("programs of the system", "programs")
JSON_TOOL = ("--sort-keys", "--compact", "--no-ensure-ascii", "--json-lines", "--tab", "--no-indent")
WANTS_MORE = names("""
    adduser ansible-lint autopep8 bundler chezmoi chsh clang-tidy convert crontab dconf defaults doxygen ffmpeg
    gdbtool gsettings iconv inkscape ldconfig magick make mkfifo mknod mogrify nox pandoc pdflatex protoc psql
    rdfind rename rsync shred sphinx-build split sponge stow swag sync tox truncate unoconv update-alternatives
    vagrant wipe xelatex yapf
""")
"""Programs that are not known otherwise, and are hardly ever called to look: they want to write, or to change."""
NEW_FILE = re.compile(r"[\w./-]*[\w-]\.[A-Za-z]\w{0,5}", re.ASCII)
"""What looks like the name of a file; one that is not there yet may be what is to be written."""


def rule_for_help(words: Sequence[Word], folder: WorkingFolder, files: FileAccess) -> Rule | None:
    """For a program that only prints how it is used, or its version, and is none of the workspace's own.

    Many obey files of the folder even then, such as a toolchain that it names: those get a closed look or none.
    """
    name = words[0].value or ""
    if not asks_for_help([word.value for word in words]) or folder.leaves or is_of_workspace(name, folder):
        return None
    if name in SETTINGS_OF_THE_FOLDER - {"git"} or is_interpreter(name) or not is_known(name):
        return None
    return None if name == "git" and files.why_repository(words) else HELP


def rule_for_code(
    words: Sequence[Word], folder: WorkingFolder, files: FileAccess, fed_by: SimpleCommand | None
) -> Rule | None:
    """For Python that only computes and prints what files of the workspace hold."""
    name, rest = words[0].value or "", [word.value for word in words[1:]]
    if name not in ("python", "python3") or None in rest or is_of_workspace(name, folder):
        return None
    if folder.leaves or folder.moves or shadows_modules(folder.cwd):
        return None
    reads = files_read([word for word in rest if word is not None], fed_by)
    if reads is None:
        return None
    operands = Operands(tuple(Operand(literal_word(path), path, "read") for path in reads))
    return None if files.why_outside(words, operands) else PYTHON


def files_read(rest: Sequence[str], fed_by: SimpleCommand | None) -> Sequence[str] | None:
    """The files that python reads; None where it does more."""
    if list(rest[:2]) == ["-m", "json.tool"]:
        named = [word for word in rest[2:] if not word.startswith("-")]
        is_plain = all(word in JSON_TOOL for word in rest[2:] if word.startswith("-"))
        return named if is_plain and len(named) <= 1 else None
    code = code_in(rest, fed_by)
    found = computes(code) if code is not None else None
    return found.reads if found is not None else None


def code_in(rest: Sequence[str], fed_by: SimpleCommand | None) -> str | None:
    """The code that python is given in the line: behind `-c`, or in a here-document that bash leaves as it is."""
    if len(rest) == 2 and rest[0] == "-c":
        return rest[1]
    return here_document(fed_by) if list(rest) in ([], ["-"]) else None


def rule_for_others(words: Sequence[Word], folder: WorkingFolder, files: FileAccess) -> Rule | None:
    """For a program of which nothing is known but that it is the system's, or is not there at all.

    What it is given is spelled out, lies in the workspace, and is no file that does not exist yet.
    """
    name = words[0].value or ""
    if not is_nothing_known(name) or folder.leaves or folder.moves or is_of_workspace(name, folder):
        return None
    if any(word.value is None and not word.inside for word in words) or any(concerns_about(words, folder, 1)):
        return None
    if any(is_new_file(word, folder) for word in words[1:]) or files.why_of_process(words):
        return None
    return None if files.why_outside(words) else OTHERS


def is_nothing_known(name: str) -> bool:
    if not re.fullmatch(r"[a-z][\w+.-]*", name, re.ASCII) or name in WANTS_MORE:
        return False
    is_more = name in PRIVILEGED | DESTRUCTIVE | CHANGES_THE_SHELL | SETTINGS_OF_THE_FOLDER
    return not is_more and (name in ONLY_LOOKS or not is_known(name))


def is_of_workspace(name: str, folder: WorkingFolder) -> bool:
    return found_inside(name, folder.workspace, os.environ.get("PATH", ""))


def is_new_file(word: Word, folder: WorkingFolder) -> bool:
    value = (word.value or "").rpartition("=")[2]
    return bool(NEW_FILE.fullmatch(value)) and not os.path.lexists(os.path.join(folder.cwd, value))

"""Whether a line may run outside of the sandbox although nobody is asked about it just now.

A rule was given for the words of a line. What a program does is said by what lies in its folder as well: a repository's
configuration, a Makefile, a script. So before such a line runs it is looked whether a tool may have changed that since,
and whether something runs inside that could do so meanwhile. What is guarded from inside need not be looked at.
"""

from __future__ import annotations

import fnmatch
import os
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.bash.syntax.parse import read_line
from toolyard.core.visible_text import escaped
from toolyard.files.accepted import accepted, digest_now
from toolyard.files.inside import is_inside
from toolyard.files.write_times import may_be_from_tools, spans_above
from toolyard.permissions.expansion.line import ExpandedLine
from toolyard.permissions.file_access import WorkingFolder
from toolyard.permissions.offers import RUNS_TARGETS
from toolyard.permissions.paths import entries_of
from toolyard.permissions.programs.categories import (
    ONLY_LOOKS,
    SETTINGS_OF_THE_FOLDER,
    SPEAKS_ONLY,
    is_carrier,
    is_interpreter,
    is_shell,
    names,
    program_name,
    unversioned,
)
from toolyard.permissions.repositories.obeyed_files import NotLookedOver, obeyed_files

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from toolyard.bash.syntax.words import Word
    from toolyard.permissions.file_access import CallSite


OF_GIT = names("git gh hub glab git-lfs")
NODE = "package.json .npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.* pnpm-workspace.yaml bunfig.toml"
PYTHON = "pyproject.toml setup.py setup.cfg tox.ini noxfile.py uv.toml poetry.toml pip.conf .pypirc"
OBEYED = {
    **dict.fromkeys(names("make gmake bmake remake"), "Makefile makefile GNUmakefile *.mk"),
    **dict.fromkeys(names("npm npx pnpm yarn bun bunx pnpx corepack"), NODE),
    **dict.fromkeys(names("cargo"), "Cargo.toml .cargo build.rs rust-toolchain*"),
    **dict.fromkeys(names("docker podman nerdctl docker-compose"), "Dockerfile* *compose*.y*ml .env docker-bake.*"),
    **dict.fromkeys(names("terraform tofu"), "*.tf *.tf.json *.tfvars *.tfvars.json .terraform* .tofurc"),
    **dict.fromkeys(names("pip pip3 uv uvx poetry pdm hatch pipenv rye twine tox nox"), PYTHON),
    **dict.fromkeys(names("just"), "justfile .justfile Justfile"),
    **dict.fromkeys(names("go"), "go.mod go.work"),
}
"""For programs that do what files of their folder say, or of one above it: the names of those. Of others that do so,
and stand in no row, all files of the folder count."""
CHANGES_WHAT_IT_NAMES = names("cp curl date hostname kill mkdir mv popd pushd rm rmdir touch")
SAYS_ALL_ITSELF = (ONLY_LOOKS | SPEAKS_ONLY | CHANGES_WHAT_IT_NAMES) - {"command"}
"""Programs that do what their words say, and nothing that lies in the folder."""
GIT_SAYS_ALL = names("branch commit diff fetch log ls-remote pull push remote show status tag")
"""The commands of git of which all that they obey is looked at."""
ANY_FILE = "*"
MOST_ENTRIES = 10_000
TOKEN = re.compile(r"[\w.+-]+")
IN_OPTION = re.compile(r"-[A-Za-z]|--[\w-]+=|[\w-]+=")
"""What may stand before a path in its word."""


def why_answer_is_not_enough(command: str, site: CallSite) -> str | None:
    """Why an answer to the question about a line holds for that call alone, when it is to run outside.

    What most programs do is said by files, which tools can write, and no table of them comes to an end. So it is the
    other way round: an answer is kept for lines of which all that they obey is known.
    """
    line = ExpandedLine(read_line(command), site.cwd, site.workspace, site.shell)
    for each in line.reading().commands:
        if each.assignments or each.wrapped or not says_all_itself([word.value or "" for word in each.words]):
            return f"what '{shown(each.name or each.text)}' does outside may be said by files that tools can write"
    return None


def says_all_itself(told: Sequence[str]) -> bool:
    """Whether nothing but a command's words, or what is looked at, says what it does."""
    program, rest = program_name(told[0]) if told else "", list(told[1:])
    if not program or ("/" in told[0] and not os.path.isabs(told[0])):
        return False
    while program == "git" and rest[:1] == ["-C"]:
        rest = rest[2:]
    return program in SAYS_ALL_ITSELF or (program == "git" and bool(GIT_SAYS_ALL.intersection(rest[:1])))


async def why_not_unasked(command: str, site: CallSite, works_inside: Callable[[], Awaitable[bool]]) -> str | None:
    """Why a line that a rule lets run outside is asked about all the same; None when it is not."""
    line = ExpandedLine(read_line(command), site.cwd, site.workspace, site.shell)
    commands = line.reading().commands
    whole = WorkingFolder(line, site)
    folders = dict.fromkeys(folder for each in commands for folder in whole.at(each.start).folders)
    changing = [folder for folder in folders or {site.cwd: None} if can_be_changed_now(folder)]
    if changing and await works_inside():
        return f"something still runs inside that could change '{shown(changing[0])}' meanwhile"
    for each in commands:
        for folder in whole.at(each.start).folders:
            if why := why_changed(each.words, folder, site.workspace):
                return why
    return None


def why_changed(words: Sequence[Word], folder: str, workspace: str) -> str | None:
    """Why a command may do something else in a folder than when it was allowed there."""
    told = [word.value if word.value is not None else word.prefix for word in words]
    programs = list(programs_in(told))
    if told and "/" not in told[0]:
        for path in found_from_folder(told[0], folder):
            return f"'{shown(path)}' would run, since PATH has '{shown(os.path.dirname(path))}' by a relative name"
    for path in run_by(told, folder):
        if is_from_tools(path):
            return f"'{shown(path)}' was changed while tools could write it"
    for link in links_named(told[1:], folder):
        return f"'{shown(link)}' is a link that was made while tools could"
    for place in dict.fromkeys((folder, *folders_named(told, folder))):
        for program in programs:
            if why := why_obeys_other(program, place, workspace):
                return why
    return None


def programs_in(told: Sequence[str]) -> Iterator[str]:
    """The names of the programs that a command may start, as far as its words tell."""
    first = program_name(told[0]) if told else ""
    yield first
    if is_carrier(first) or is_shell(first) or is_interpreter(first):
        yield from dict.fromkeys(program_name(token) for text in told[1:] for token in TOKEN.findall(text))


def run_by(told: Sequence[str], folder: str) -> Iterator[str]:
    """The files that a command itself runs: a program by its path, and what interpreters and shells are given."""
    first = program_name(told[0]) if told else ""
    is_reader = first in (".", "source") or is_carrier(first) or is_shell(first) or is_interpreter(first)
    for text in told if is_reader else told[:1]:
        path = os.path.normpath(os.path.join(folder, text))
        if ("/" in text or is_reader) and text and os.path.isfile(path):
            yield path


def found_from_folder(name: str, folder: str) -> Iterator[str]:
    """The program that is found by an entry of PATH that is another folder wherever one stands."""
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.normpath(os.path.join(folder, entry, name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            if not os.path.isabs(entry) and is_from_tools(path):
                yield path
            return


def links_named(told: Sequence[str], folder: str) -> Iterator[str]:
    """The links on the way to what a command is given, and in its place, that a tool may have made."""
    for text in told:
        for name in (text, IN_OPTION.sub("", text, count=1)):
            path = os.path.normpath(os.path.join(os.path.realpath(folder), name))
            if name and os.path.realpath(path) != path:
                yield from filter(is_link_from_tools, (path, *map(str, Path(path).parents)))


def is_link_from_tools(path: str) -> bool:
    return os.path.islink(path) and may_be_from_tools(path, os.lstat(path))


def folders_named(told: Sequence[str], folder: str) -> Iterator[str]:
    """The folders among the words of a command, in which it may do its work instead."""
    for text in told[1:]:
        for name in (text, IN_OPTION.sub("", text, count=1)):
            if name and os.path.isdir(path := os.path.normpath(os.path.join(folder, name))):
                yield path


def why_obeys_other(program: str, folder: str, workspace: str) -> str | None:
    name = unversioned(program)
    if program in OF_GIT:
        try:
            changed = next(filter(is_from_tools, obeyed_files(folder, workspace)), None)
        except NotLookedOver as error:
            return str(error)
        return changed and f"git obeys '{shown(changed)}', which was changed while tools could write it"
    patterns = OBEYED.get(program) or OBEYED.get(name)
    if patterns is None and not {program, name} & (SETTINGS_OF_THE_FOLDER | RUNS_TARGETS):
        return None
    for path in files_of(folder, (patterns or ANY_FILE).split(), workspace):
        if is_from_tools(path):
            return f"'{program}' may obey '{shown(path)}', which was changed while tools could write it"
    return None


def files_of(folder: str, patterns: Sequence[str], workspace: str) -> Iterator[str]:
    """The files of such names in a folder, and in those above it that are of the workspace."""
    place, top = os.path.realpath(folder), os.path.realpath(workspace)
    while True:
        for entry in islice(entries_of(place), MOST_ENTRIES):
            if any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in patterns):
                yield entry.path
        if place == top or not is_inside(place, top) or patterns == [ANY_FILE]:
            return
        place = os.path.dirname(place)


def is_from_tools(path: str) -> bool:
    """Whether a tool may have made what lies at a path, by whichever of its names, and no person accepted it."""
    for name in dict.fromkeys((path, os.path.realpath(path))):
        try:
            if may_be_from_tools(name, os.lstat(name)) and not is_accepted(name):
                return True
        except OSError:
            continue
    return False


def is_accepted(path: str) -> bool:
    """Whether a person looked at what a file says now, and took it as their own."""
    try:
        digest = digest_now(path)
    except OSError:
        return False
    return any((one.path, one.digest) == (os.path.realpath(path), digest) for one in accepted())


def can_be_changed_now(folder: str) -> bool:
    """Whether tools that run now could write in a folder."""
    return any(span.until is None for span in spans_above(os.path.join(os.path.realpath(folder), "any")))


def shown(path: str) -> str:
    return escaped(path)

"""What the presets allow, run for real: no row of options that a table lets pass reads, writes or runs elsewhere."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from permissions.hostile_lines import REST, SPELLED, lay_out, tables
from support import need
from toolyard.permissions.file_access import CallSite
from toolyard.permissions.judge import judge_line
from toolyard.permissions.presets import make_book
from toolyard.permissions.programs.files.find import ALONE, HARMFUL, WITH_FILE, WITH_TEXT
from toolyard.permissions.programs.options import Options
from toolyard.permissions.section import Section

PATIENCE = 20
LINES = 1200
SECRET = "what only the neighbour knows"
HIDDEN = "name-that-only-a-listing-shows"
OUTSIDE = ("../neighbour/x", "link", "way/x", "../neighbour", "way", "sub/way/x")
INSIDE = (
    "src/a.py",
    "README.md",
    "src",
    ".",
    "-",
    "1",
    "x",
    ":",
    "p",
    "names",
    "b.txt",
    "sub",
    "data.json",
    "HEAD",
    "2",
)
PAYLOADS = (
    "touch",
    "./run",
    "marker",
    "../neighbour/marker",
    "-exec",
    "-delete",
    "--",
    "exec",
    "{}",
    ";",
    "+",
    "@names",
)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> Path:
    """A workspace beside a neighbour: what is read there shows in the output, and what is written in its files."""
    parent = tmp_path_factory.mktemp("presets")
    workspace = lay_out(parent)
    (parent / "neighbour" / "x").write_text(f"{SECRET}\n")
    (parent / "neighbour" / HIDDEN).write_text(f"{SECRET}\n")
    (workspace / "names").write_text("../neighbour/x\n")
    (workspace / "run").write_text(f"#!/bin/sh\ntouch {parent}/marker\ncat\n")
    (workspace / "run").chmod(0o755)
    (workspace / "way").unlink()
    (workspace / "sub").mkdir()
    for link in (workspace / "way", workspace / "sub" / "way"):
        link.symlink_to(parent / "neighbour")
    subprocess.run([need("git"), "init", "-q", "."], cwd=workspace, check=True)
    return workspace


class LineMaker:
    """Makes up lines from the tables of options, with paths inside and outside among them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._tables = [(name, table) for name, table in tables() if shutil.which(name.split()[0])]

    def line(self) -> str:
        if self._random.random() < 0.1:
            return shlex.join(["find", *(self._predicate() for _ in range(self._random.randint(1, 6)))])
        program, table = self._random.choice(self._tables)
        words = [word for _ in range(self._random.randint(1, 4)) for word in self._words(table)]
        rest = REST.get(program, "src/a.py").split() if self._random.random() < 0.6 else []
        return f"{SPELLED.get(program, program)} {shlex.join([*words, *rest])}"

    def _predicate(self) -> str:
        return self._random.choice([*ALONE, *WITH_TEXT, *WITH_FILE, *HARMFUL, *(self._value() for _ in range(20))])

    def _value(self) -> str:
        return self._random.choice(self._random.choice([OUTSIDE, OUTSIDE, INSIDE, INSIDE, PAYLOADS]))

    def _words(self, table: Options) -> list[str]:
        chance = self._random.random()
        if chance < 0.3:
            return [self._value()]
        if chance < 0.35:
            return ["-" + "".join(self._random.choices(LETTERS, k=self._random.randint(1, 3)))]
        return self._option(table)

    def _option(self, table: Options) -> list[str]:
        """An option, whole or cut short, alone or in a row, with a value behind it, glued to it or not at all."""
        name = self._random.choice(sorted(table.named))
        takes_next = [self._value()] if table.named[name].takes == "next" and self._random.random() < 0.8 else []
        is_glued = self._random.random() < 0.4
        if len(name) > 1 and table.style == "gnu":
            cut = name if self._random.random() < 0.6 else name[: self._random.randint(1, len(name))]
            return [f"--{cut}={self._value()}"] if is_glued else [f"--{cut}", *takes_next]
        letters = sorted(each for each in table.named if len(each) == 1)
        row = "".join(self._random.choices(letters, k=self._random.choice([0, 0, 1, 2]))) if letters else ""
        return [f"-{row}{name}{self._value()}"] if is_glued else [f"-{row}{name}", *takes_next]


@pytest.mark.parametrize("preset", ["read-only", "workspace"])
def test_what_a_preset_allows_neither_reads_nor_writes_elsewhere(workspace, preset):
    book = make_book(Section(is_configured=True, preset=preset), [])
    site = CallSite(tool="bash", cwd=str(workspace), workspace=str(workspace))
    maker = LineMaker(seed=1)
    lines = [maker.line() for _ in range(LINES)]
    allowed = [line for line in lines if judge_line(line, book, site).decision == "allow"]
    assert len(allowed) > LINES / 10
    before = state_of(workspace, preset)
    for line in allowed:
        output = run_for_real(line, workspace)
        assert SECRET not in output, line
        assert HIDDEN not in output, line
        assert state_of(workspace, preset) == before, line


def state_of(workspace: Path, preset: str) -> dict[str, tuple[int, int]]:
    """Every file with its size and time; of the workspace itself only where nothing may be written."""
    found: dict[str, tuple[int, int]] = {}
    for folder, folders, files in os.walk(workspace.parent):
        folders[:] = [name for name in folders if name != ".git"]
        if Path(folder).is_relative_to(workspace) and preset == "workspace":
            continue
        for name in files:
            status = os.lstat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns)
    return found


def run_for_real(line: str, workspace: Path) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(workspace.parent), "PAGER": "cat", "GIT_PAGER": "cat"}
    command = ["timeout", "-s", "KILL", str(PATIENCE), "bash", "--norc", "-c", "--", line]
    done = subprocess.run(command, cwd=workspace, env=env, input=b"a\nHEAD\n../neighbour/x\n", capture_output=True)
    return (done.stdout + done.stderr).decode(errors="replace")

#!/usr/bin/env python3
"""Puts small faults into the code by chance, one at a time, and tells which of them no test notices.

    scripts/sample_faults.py --count 100 --seed 1          # in a clean work tree, since files are changed in place
    scripts/sample_faults.py --count 20 --only 'permissions/**' --report faults.jsonl

For each fault the tests that mirror its module run first, then those that name it, then its folder's. The same seed
over the same code makes the same faults. It takes a long time and is no part of CI.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = ROOT / "src" / "toolyard", ROOT / "tests"
LEFT_OUT = ("builtin_plugins/*", "__init__.py", "*/__init__.py", "__main__.py", "testing.py", "cli/tour.py")
"""What is no code of ours to test here, or only hands on what others do."""
FLIPPED = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
TOO_LONG = 124
NO_TESTS = 5
QUIET_CALLS = re.compile(r"^(log|logging|asyncio\.sleep|warnings)\b")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One change of one file."""

    file: Path
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        shown = [" ".join(text.split())[:70] for text in (self.before, self.after)]
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.kind}: {shown[0]} → {shown[1]}"


class Faults(ast.NodeVisitor):
    """Finds every place of a module where a small fault fits."""

    def __init__(self, file: Path, text: str) -> None:
        self._file, self._text = file, text
        self._starts = [0]
        for line in text.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.found: list[Fault] = []

    def _add(self, node: ast.AST, kind: str, after: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        before = self._text.encode()[start:end].decode()
        fault = Fault(
            file=self._file, line=node.lineno, kind=kind, start=start, end=end, before=before, after=f"({after})"
        )
        if kind == "statement":
            fault = Fault(**{**fault.__dict__, "after": after})
        self.found.append(fault)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """What a class is made with, such as `frozen`, is for the type checker, too."""
        for part in node.body:
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Types are for the type checker."""
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            self._add(node, "comparison", f"({left}) {FLIPPED[type(node.ops[0])]} ({right})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = " and " if isinstance(node.op, ast.And) else " or "
        for left_out in range(len(node.values)):
            kept = [f"({ast.unparse(value)})" for index, value in enumerate(node.values) if index != left_out]
            if not any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.values[left_out])):
                self._add(node, "condition", word.join(kept))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, "condition", ast.unparse(node.operand))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, "truth", str(not node.value))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._off_by_one(node.slice)
        self.generic_visit(node)

    def visit_Slice(self, node: ast.Slice) -> None:
        for bound in (node.lower, node.upper):
            self._off_by_one(bound)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add | ast.Sub):
            self._off_by_one(node.right)
        self.generic_visit(node)

    def _off_by_one(self, node: ast.AST | None) -> None:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            self._add(node, "off by one", str(node.value + 1))

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not QUIET_CALLS.match(ast.unparse(node.value)):
            self._add(node, "statement", "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "statement", "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "statement", "pass")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Places inside of texts are not told by all versions of Python."""


def all_faults(only: str) -> list[Fault]:
    found: list[Fault] = []
    for file in sorted(SOURCE.rglob("*.py")):
        name = str(file.relative_to(SOURCE))
        if fnmatch(name, only) and not any(fnmatch(name, pattern) for pattern in LEFT_OUT):
            text = file.read_text()
            faults = Faults(file, text)
            faults.visit(ast.parse(text))
            found += faults.found
    return found


def tests_for(file: Path) -> Iterator[list[Path]]:
    """Which tests to run, the likeliest first: named alike, naming the module, in the mirrored folder, and below it."""
    below = file.relative_to(SOURCE)
    module = "toolyard." + ".".join(below.with_suffix("").parts)
    folder = TESTS / below.parent
    while not folder.is_dir():
        folder = folder.parent
    alike = [*folder.glob(f"test_{below.stem}*.py"), *folder.glob(f"test_*{below.stem}.py")]
    named = [test for test in sorted(TESTS.rglob("test_*.py")) if module in test.read_text()]
    seen: set[Path] = set()
    for step in (
        alike,
        named[:6],
        sorted(folder.glob("test_*.py")),
        sorted(folder.rglob("test_*.py")),
        spec_for(below),
    ):
        fresh = [test for test in dict.fromkeys(step) if test not in seen]
        seen.update(fresh)
        if fresh:
            yield fresh


def spec_for(below: Path) -> list[Path]:
    """The promises, for what they are about: all of them, where no folder mirrors the module."""
    words = {"manifest": "manifest", "node_module": "node", "bash_script": "bash_tools", "permissions": "permissions"}
    about = [word for part, word in words.items() if part in below.parts]
    return sorted(
        test for test in (TESTS / "spec").glob("test_*.py") if not about or any(w in test.name for w in about)
    )


def is_noticed(fault: Fault, seconds: float) -> tuple[str, str]:
    """How a fault was noticed, and by which test; nothing when it was not."""
    deadline = time.monotonic() + seconds
    for tests in tests_for(fault.file):
        left = deadline - time.monotonic()
        if left <= 0:
            return "", "no time left"
        code, said = run_tests(tests, left)
        if code == TOO_LONG:
            return "", "no time left"
        if code not in (0, NO_TESTS):
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
            return "fails", failed[1] if failed else said.strip().splitlines()[-1][:200]
    return "", ""


def run_tests(tests: list[Path], seconds: float) -> tuple[int, str]:
    argv = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *map(str, tests)]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        argv, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as running:
        try:
            said, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            return TOO_LONG, ""
        return running.returncode, said


@contextlib.contextmanager
def in_place(fault: Fault) -> Iterator[None]:
    """The file with its fault; whatever happens, it is put back, with its time."""
    before, facts = fault.file.read_bytes(), fault.file.stat()
    try:
        fault.file.write_bytes(before[: fault.start] + fault.after.encode() + before[fault.end :])
        yield
    finally:
        fault.file.write_bytes(before)
        os.utime(fault.file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def compiles(fault: Fault) -> bool:
    text = fault.file.read_bytes()
    try:
        compile(text[: fault.start] + fault.after.encode() + text[fault.end :], str(fault.file), "exec")
    except SyntaxError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="Begin with this one of the sample.")
    parser.add_argument("--only", default="*", help="A pattern of modules below src/toolyard.")
    parser.add_argument("--seconds", type=float, default=300, help="The most that the tests of one fault may take.")
    parser.add_argument("--report", type=Path, help="A file for the outcomes, a JSON object a line.")
    parser.add_argument("--list", action="store_true", help="Only tell the faults.")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    places = [fault for fault in all_faults(given.only) if compiles(fault)]
    chosen = random.Random(given.seed).sample(places, min(given.count, len(places)))
    noticed = 0
    for number, fault in enumerate(chosen[given.first :], start=given.first):
        if given.list:
            print(number, fault)
            continue
        with in_place(fault):
            how, by = is_noticed(fault, given.seconds)
        noticed += bool(how)
        print(f"{number:3} {how or 'UNNOTICED':9} {fault}  {by}", flush=True)
        if given.report:
            with given.report.open("a") as report:
                report.write(json.dumps({"fault": str(fault), "noticed": how, "by": by}) + "\n")
    if not given.list:
        print(f"{noticed} of {len(chosen) - given.first} noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())

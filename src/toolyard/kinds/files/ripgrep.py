"""Searching by ripgrep, where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolyard.process.child import ChildRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolyard.core.reach import Reach
    from toolyard.core.tool import JsonObject
    from toolyard.process.runner import Runner

OUTPUT_LIMIT = 8 << 20
LONGEST_LINE = 500
FAILED = 2
UNREADABLE = "\ufffd"
"""What stands in the place of a byte that is no text."""
STANDARD_INPUT = "/proc/self/fd/0"
"""Where it reads what git ignores everywhere: the file itself need not be seen inside the sandbox."""
ALWAYS = (
    *("--no-config", "--color=never", "--no-messages", "--no-heading", "--with-filename", "--null", "--line-number"),
    *("--crlf", "--hidden", "--no-require-git", "--no-ignore-global", "--no-ignore-dot"),
    *(f"--max-columns={LONGEST_LINE}", "--max-columns-preview"),
)
MODES = {"content": (), "files_with_matches": ("--files-with-matches",), "count": ("--count",)}


async def search(
    runner: Runner, program: str, where: JsonObject, wanted: JsonObject, *, reach: Reach, timeout: float
) -> dict[str, Any] | None:
    """The matches; None where it cannot read a pattern, or a name that is no text: we can.

    TimeoutError when it takes too long.
    """
    argv = [program, *options(wanted), "--", wanted["pattern"], where["path"] or "."]
    if any("\0" in word for word in argv) or not knows_glob(wanted.get("glob") or ""):
        return None
    request = ChildRequest(
        argv=argv,
        cwd=where["top"],
        env=runner.environment.current(),
        stdin=wanted["excludes"].encode("latin-1") or None,
        timeout=timeout,
        limits=runner.limits,
        output_limit=OUTPUT_LIMIT,
    )
    outcome = await runner.children[reach].run(request)
    if outcome.timed_out:
        raise TimeoutError
    if outcome.exit_code >= FAILED:
        return None
    limit: int = wanted["limit"]
    lines: list[str] = []
    for line in shown_lines(outcome.stdout.text, wanted["output_mode"]):
        if line is None:
            return None
        lines.append(line)
        if len(lines) > limit:
            break
    is_full = len(lines) > limit
    if not wanted["context"]:
        lines = sorted(lines[:limit], key=by_path)
    return {"lines": lines[:limit], "more": is_full}


def options(wanted: JsonObject) -> list[str]:
    given = [*ALWAYS, *MODES[wanted["output_mode"]]]
    given += ["--ignore-case"] if wanted["ignore_case"] else []
    given += ["--fixed-strings"] if wanted["fixed_strings"] else []
    given += ["--multiline", "--multiline-dotall"] if wanted["multiline"] else []
    given += ["--no-ignore"] if wanted["no_ignore"] else []
    given += [f"--ignore-file={STANDARD_INPUT}"] if wanted["excludes"] else []
    given += [f"--context={wanted['context']}"] if wanted["context"] else []
    if (glob := wanted.get("glob") or "").startswith("!"):
        given.append(f"--glob={glob}")
    elif glob:
        # `--glob` would also find what git ignores. A type of files does not, but knows only their last names.
        given += [f"--type-add=wanted:{glob}", "--type=wanted"]
    return [*given, "--glob=!.git"]


def knows_glob(glob: str) -> bool:
    """Whether it takes a pattern of files as we do; one with folders it would look at from the top on."""
    return "/" not in glob and not glob.startswith("include:")


def shown_lines(text: str, mode: str) -> Iterator[str | None]:
    """Its lines in our form; None for one whose path cannot be told."""
    if mode == "files_with_matches":
        for path in text.split("\0")[:-1]:
            yield None if UNREADABLE in path else path.removeprefix("./")
        return
    for line in text.split("\n"):
        path, parted, rest = line.partition("\0")
        if UNREADABLE in path and parted:
            yield None
        elif parted:
            # A line of a match has a colon after its number, one around it a dash.
            sign = rest[len(rest) - len(rest.lstrip("0123456789")) :][:1] if mode == "content" else ":"
            yield f"{path.removeprefix('./')}{sign}{rest.removesuffix(chr(13))}"
        elif line == "--":
            yield line


def by_path(line: str) -> tuple[str, int]:
    path, _, rest = line.partition(":")
    number = rest.partition(":")[0]
    return path, int(number) if number.isdecimal() else 0

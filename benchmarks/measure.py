"""How everything here is measured: alternately, often, and by the median."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

TEMPLATE = Path(__file__).parent.parent / "src/toolyard/builtin_plugins/template-bash-tool/template_bash_echo.bash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    what: str
    ours: str
    floor: str
    figure: str
    promise: str
    kept: bool | None
    """None where nothing was promised."""

    def __str__(self) -> str:
        kept = {True: "yes", False: "NO", None: "-"}[self.kept]
        return f"| {self.what} | {self.ours} | {self.floor} | {self.figure} | {self.promise} | {kept} |"


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence below the table."""

    text: str

    def __str__(self) -> str:
        return self.text


HEADER = "| what | ours | floor | figure | promise | kept |\n|---|---|---|---|---|---|"


async def interleave(
    rounds: int, ours: Callable[[], Awaitable[object]], floor: Callable[[], object]
) -> tuple[float, float]:
    """The medians of two things done in turn, in seconds."""
    mine, theirs = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        await ours()
        between = time.perf_counter()
        floor()
        mine.append(between - started)
        theirs.append(time.perf_counter() - between)
    return statistics.median(mine), statistics.median(theirs)


def write_tools(folder: Path, count: int, body: str | None = None) -> Path:
    """A configuration with `count` tools of their own names."""
    text = body or TEMPLATE.read_text()
    names = [f"tool_{number:03}" for number in range(count)]
    for name in names:
        (folder / f"{name}.bash").write_text(text.replace("template_bash_echo", name))
    config = folder / "toolyard.json"
    plugins = [f"bash:{name}.bash" for name in names]
    config.write_text(json.dumps({"plugins": plugins, "plugin_policy": {"allow_bash_tools": True}}))
    return config


def compiling_environment() -> dict[str, str]:
    """Our variables, but Python may keep what it compiled, as it does of every package that was used once."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def resident_mib(pid: int | str = "self") -> float:
    """The memory a process holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"

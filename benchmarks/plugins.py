"""An application with twenty plugins of mixed kinds, all in the cache: its start, and what it weighs while idle."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.measure import TEMPLATE, Row, compiling_environment, milliseconds

ROUNDS = 9
LIBRARIES = (
    *("asyncio, sqlite3", "http.server, email.message", "xml.dom.minidom, decimal", "csv, zipfile, tarfile"),
    *("unittest, difflib", "ssl, http.client", "concurrent.futures, logging.handlers", "statistics, fractions, random"),
)
"""What each Python plugin imports, as plugins do that use more than the language."""
IMPORT_ALONE = "import sys; sys.path[:0] = sys.argv[1:]; import {modules}"
OPEN = """
import asyncio, sys
from toolyard import AgentApplication
async def main():
    async with AgentApplication(sys.argv[1], sys.argv[2]) as app:
        assert not app.get_config_errors(), app.get_config_errors()
        assert len(app.tools()) == 20, len(app.tools())
        print(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
asyncio.run(main())
"""
PYTHON = """
import {libraries}
from toolyard.plugins.contract import tool

@tool
def python_{number}(text: str) -> str:
    "Say it again."
    return text
"""
NODE = """
export default {
  description: "Say it again.",
  parameters: { type: "object", properties: { text: { type: "string" } } },
  run: ({ text }) => text,
};
"""


async def rows() -> AsyncIterator[Row]:
    """Whole processes in turn: one that opens the application, one that only imports its Python plugins."""
    if shutil.which("node") is None:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config, roots = write_plugins(folder)
        environment = compiling_environment() | {"XDG_CACHE_HOME": str(folder / "cache")}
        modules = ", ".join(f"python_{number}" for number in range(len(LIBRARIES)))
        ours = [sys.executable, "-c", OPEN, str(config), str(folder / "sessions")]
        alone = [sys.executable, "-c", IMPORT_ALONE.format(modules=modules), *roots]
        run(ours, environment)  # which fills the caches
        times: list[tuple[float, float, int]] = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            weight = int(run(ours, environment))
            between = time.perf_counter()
            run(alone, environment)
            times.append((between - started, time.perf_counter() - between, weight))
        mine, imports, weight = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = mine / imports
    yield Row(
        what="start with 20 cached plugins",
        ours=milliseconds(mine),
        floor=f"{milliseconds(imports)} (a process that imports the Python ones)",
        figure=f"{ratio:.2f} ×",
        promise="≤ 2 ×",
        kept=ratio <= 2,
    )
    yield Row(
        what="memory of that application, idle",
        ours=f"{weight / 1024:.0f} MiB",
        floor="-",
        figure=f"{weight / 1024:.0f} MiB",
        promise="≤ 60 MiB",
        kept=weight <= 60 * 1024,
    )


def run(argv: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout


def write_plugins(folder: Path) -> tuple[Path, list[str]]:
    """Eight Python plugins, six bash tools, three commands of a manifest and three Node modules."""
    roots = []
    for number, libraries in enumerate(LIBRARIES):
        root = folder / f"py{number}"
        root.mkdir()
        (root / f"python_{number}.py").write_text(PYTHON.format(libraries=libraries, number=number))
        entry = f"python_{number}.python_{number}"
        (root / "agent_plugin.json").write_text(json.dumps({"entries": [entry]}))
        roots.append(str(root))
    for number in range(6):
        (folder / f"bash_{number}.bash").write_text(
            TEMPLATE.read_text().replace("template_bash_echo", f"bash_{number}")
        )
    for number in range(3):
        (folder / f"node_{number}.mjs").write_text(NODE)
    commands = [{"name": f"command_{number}", "command": ["/bin/cat"]} for number in range(3)]
    (folder / "tools.json").write_text(json.dumps({"tools": commands}))
    plugins = [
        *(f"path:{root}" for root in roots),
        *(f"bash:bash_{number}.bash" for number in range(6)),
        *(f"node:node_{number}.mjs" for number in range(3)),
        "manifest:tools.json",
    ]
    config = folder / "toolyard.json"
    config.write_text(json.dumps({"plugins": plugins, "plugin_policy": {"allow_bash_tools": True}}))
    return config, roots

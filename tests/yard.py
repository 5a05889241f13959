"""A yard: a folder with tool files and a configuration that loads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from toolyard.app import AgentApplication
from toolyard.core.events import OutputChunk


class Yard:
    """Writes tools and configurations, and opens applications on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Any] = []

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def tool(
        self, name: str = "probe", *, run: str = "", cases: str = "", file: str | None = None, **schema: Any
    ) -> Path:
        """A tool file with a schema made of the given parts; `cases` are further subcommands."""
        return self.file(file or f"{name}.bash", script(name, run=run, cases=cases, **schema))

    def manifest(self, *entries: Any, file: str = "tools.json") -> Path:
        """A manifest of these entries."""
        return self.file(file, json.dumps({"tools": list(entries)}, indent=2))

    def program(self, name: str, text: str, *, interpreter: str = "/usr/bin/env bash") -> str:
        """A script in `tools/bin`; the spelling by which a manifest names it."""
        self.file(f"tools/bin/{name}", f"#!{interpreter}\n{text}\n").chmod(0o755)
        return f"./tools/bin/{name}"

    def config(self, *plugins: Any, policy: dict[str, Any] | None = None, **rest: Any) -> Path:
        value = {"plugins": list(plugins), "plugin_policy": {"allow_bash_tools": True, **(policy or {})}, **rest}
        return self.file("toolyard.json", json.dumps(value, indent=2))

    def app(self, *plugins: Any, policy: dict[str, Any] | None = None, **rest: Any) -> AgentApplication:
        return self.open(self.config(*plugins, policy=policy, **rest))

    def open(self, config: Path, **options: Any) -> AgentApplication:
        return AgentApplication(config, self.folder / "sessions", **options)

    def watch(self, event: Any) -> None:
        self.events.append(event)

    def streamed(self, stream: str = "stdout") -> str:
        return "".join(e.text for e in self.events if isinstance(e, OutputChunk) and e.stream == stream)

    def log(self) -> list[str]:
        """What tools wrote to the file `log` of the yard, line by line."""
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def audit(self) -> list[dict[str, Any]]:
        files = sorted((self.folder / "sessions" / "audit").glob("*.ndjson"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


STRING = {"type": "string"}
ANYTHING = shutil.which("true") or "/bin/true"


def named(name: str = "probe", **fields: Any) -> dict[str, Any]:
    """An entry of a manifest."""
    return {"name": name, "description": "A probe.", "command": [ANYTHING], **fields}


def schema_text(name: str, **parts: Any) -> str:
    """A schema object; parts replace its fields, and a part of None leaves the field out."""
    function = {
        "name": name,
        "description": "A probe.",
        "parameters": {"type": "object", "properties": parts.pop("properties", {"value": STRING})},
    }
    function["parameters"].update({"required": parts.pop("required")} if "required" in parts else {})
    function.update(parts.pop("function", {}))
    value = {
        "id": name,
        "version": "1.0.0",
        "args_mode": "flags",
        "tools": [{"type": "function", "function": function}],
        **parts,
    }
    return json.dumps({key: part for key, part in value.items() if part is not None}, indent=1)


def script(name: str, *, run: str = "", cases: str = "", **schema: Any) -> str:
    return f"""#!/usr/bin/env bash
set -euo pipefail
command=${{1:-}}
shift || true
case $command in
  schema) cat <<'JSON'
{schema_text(name, **schema)}
JSON
  ;;
  run) {run or ":"}
  ;;
  {cases}
  *) exit 2 ;;
esac
"""


def inhabit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a home that has a secret in it, a directory to work in, and a project."""
    folder = tmp_path.resolve()
    for name in ("home/.ssh", "work", "project"):
        (folder / name).mkdir(parents=True)
    (folder / "home" / ".ssh" / "key").write_text("secret")
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.chdir(folder / "work")
    return folder

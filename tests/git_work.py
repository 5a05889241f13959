"""Runs lines through an application, one call each, as whoever starts it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def work(
    folder: Path, workspace: Path, lines: list[str], *, ordinary: bool = False, contained: bool = False
) -> list[Any]:
    """What an application answers to these lines in a workspace: exit code and text of each.

    Contained, as in a container without namespaces, it has Landlock alone.
    """
    from users import as_other

    argv = [
        *as_other(ordinary=ordinary, contained=contained),
        sys.executable,
        str(Path(__file__)),
        str(folder),
        str(workspace),
    ]
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run([*argv, json.dumps(lines)], capture_output=True, text=True, timeout=240, env=env)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


async def main(folder: Path, workspace: Path, lines: list[str]) -> None:
    from toolyard import AgentApplication

    for name in ("state", "config", "data", "cache"):
        os.environ[f"XDG_{name.upper()}_HOME"] = str(folder / name)
    os.environ |= {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    os.chdir(workspace)
    config = {"plugins": ["shell:command"], "permissions": {"preset": "trusted"}}
    (folder / "app.json").write_text(json.dumps(config))
    answers = []
    async with AgentApplication(folder / "app.json", folder / "sessions") as app:
        for line in lines:
            result = await app.call_tool("shell", {"command": line, "reach": "work", "timeout": 60})
            answers.append([result.exit_code, result.text])
    print(json.dumps(answers))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])))

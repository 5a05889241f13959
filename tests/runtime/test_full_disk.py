"""What is not run because a disk is full is refused in the same words by every kind of tool, and is no crash."""

from __future__ import annotations

import json
from pathlib import Path

from small_disk import run_on_small_disk
from support import need_backend

CALLS = """
import asyncio, json
from toolyard.app import AgentApplication
from toolyard.permissions.verdict import answer_always
from yard import named, script

(disk / "state").mkdir()
os.environ["XDG_STATE_HOME"] = str(disk / "state")
project = disk.parent / "project"
(project / "tools/bin").mkdir(parents=True)
os.chdir(project)
(project / "probe.bash").write_text(script("probe_bash", run="echo ran"))
(project / "tools/bin/probe").write_text("#!/bin/sh\\necho ran\\n")
(project / "tools/bin/probe").chmod(0o755)
(project / "tools.json").write_text(json.dumps({"tools": [named("probe", command=["./tools/bin/probe"])]}))
plugins = ["shell:command", "shell:session", "bash:probe.bash", "manifest:tools.json", "files:all"]
config = {"plugins": plugins, "plugin_policy": {"allow_bash_tools": True}, "permissions": {"preset": "workspace"}}
calls = {"shell": {"command": "touch ran"}, "bash": {"command": "touch ran"}, "probe_bash": {}, "probe": {},
         "write": {"file_path": "ran", "content": "x"}}

async def main():
    options = {"approver": answer_always(allowed=True, reason="yes")}
    async with AgentApplication(config, disk.parent / "sessions", **options) as app:
        assert app.get_config_errors() == [], app.get_config_errors()
        fill()
        said = {}
        for name, arguments in calls.items():
            result = await app.call_tool(name, arguments)
            said[name] = [result.failure, result.text]
        print(json.dumps(said))
        assert not (project / "ran").exists()

asyncio.run(main())
"""


def test_every_kind_of_tool_is_refused_in_the_same_words_when_it_cannot_be_written_down_that_it_runs(tmp_path: Path):
    need_backend("bubblewrap", "bubblewrap-pids")
    said = json.loads(run_on_small_disk(tmp_path, CALLS))
    assert {failure for failure, _ in said.values()} == {"denied"}, said
    assert len({text for _, text in said.values()}) == 1, said
    text = said["shell"][1]
    assert text.startswith("The call was not run: it cannot be written down in ")
    assert "make room there" in text

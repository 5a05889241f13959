"""A call can have another time limit than such tools usually have."""

from __future__ import annotations

import sys

import pytest

from support import need
from yard import Yard, named, script

pytestmark = pytest.mark.anyio

SLOW = "import time\nfrom toolyard import tool\n@tool\ndef probe() -> str:\n    '''Wait.'''\n    time.sleep(300)\n"
NODE = "export default {name: 'probe', description: '', parameters: {}, run: () => new Promise(() => {})}"


@pytest.fixture
def yard(tmp_path) -> Yard:
    return Yard(tmp_path)


@pytest.mark.parametrize("kind", ["bash", "manifest", "node", "python"])
async def test_the_limit_of_a_call_holds_instead_of_the_usual_one_and_is_told(yard, kind):
    if kind == "bash":
        error = 'error) echo "$2 after $AGENT_TOOL_TIMEOUT_SECONDS seconds" ;;'
        yard.file("probe.bash", script("probe", run="sleep 300", cases=error, properties={}))
        plugin = "bash:probe.bash"
    elif kind == "manifest":
        yard.manifest(named(command=[sys.executable, "-c", "import time; time.sleep(300)"]))
        plugin = "manifest:tools.json"
    elif kind == "node":
        need("node")
        yard.file("code/probe.mjs", NODE)
        plugin = "node:code/probe.mjs"
    else:
        yard.file("code/probe.py", SLOW)
        plugin = "path:code/probe.py"
    async with yard.app(plugin) as app:
        result = await app.call_tool("probe", {}, timeout=0.5)
    assert result.failure == "timeout", result.text
    told = {"manifest": '{"error": "tool timed out"}', "bash": "after 0.5 seconds"}.get(kind, "after 0.5 s")
    assert told in result.text

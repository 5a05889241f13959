"""Other frameworks with our tools, each as its example has it, with the framework itself, against a fake server."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

FRAMEWORKS = ROOT / ".venv-frameworks"
PATIENCE = 100.0
COMMAND = "x=42; echo the answer is $x"
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo still $x"


class FakeModel(ThreadingHTTPServer):
    """Answers with a call of `bash` first, and then as it is told to, from what the tool said."""

    daemon_threads = True

    def __init__(self, *, submits: bool) -> None:
        super().__init__(("127.0.0.1", 0), FakeModelHandler)
        self.submits = submits
        self.requests: list[dict[str, Any]] = []

    def message(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        said = [one["content"] for one in request["messages"] if one["role"] == "tool"]
        if said and not self.submits:
            return {"role": "assistant", "content": f"It said: {said[-1]}"}
        arguments = json.dumps({"command": SUBMIT if said else COMMAND})
        call = {"id": f"call_{len(said)}", "type": "function", "function": {"name": "bash", "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}


class FakeModelHandler(BaseHTTPRequestHandler):
    server: FakeModel

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = self.server.message(request)
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5-mini"}
        body = json.dumps({**about, "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests need no log."""


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[FakeModel]:
    with FakeModel(submits=request.param) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("model", "name", "said"),
    [
        (False, "pydantic_ai", "It said: the answer is 42"),
        (False, "openai_agents", "It said: the answer is 42"),
        (True, "mini_swe_agent", "'submission': 'still 42\\n'}"),
    ],
    indirect=["model"],
)
def test_T13_a_framework_works_with_our_tools_as_its_example_has_it(tmp_path: Path, model: FakeModel, name, said):
    if not (FRAMEWORKS / ".frameworks-ready").exists() and not os.environ.get("CI"):
        pytest.skip("the frameworks are not installed: make .venv-frameworks/.frameworks-ready")
    example = ROOT / "examples" / "frameworks" / f"with_{name}.py"
    assert len(example.read_text().splitlines()) < 40
    base = f"http://127.0.0.1:{model.server_address[1]}/v1"
    settings = {"OPENAI_BASE_URL": base, "OPENAI_API_BASE": base, "OPENAI_API_KEY": "none", "MSWEA_SILENT_STARTUP": "1"}
    offline = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path / "mswea")}
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    ran = subprocess.run(
        [FRAMEWORKS / "bin" / "python", example, "What is the answer?"],
        env={**os.environ, **settings, **offline, "HOME": str(tmp_path / "home")},
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.stdout.strip().endswith(said), (ran.stdout, ran.stderr)
    (audit,) = (tmp_path / "work" / "sessions" / "audit").glob("*.ndjson")
    assert COMMAND in [json.loads(line).get("command") for line in audit.read_text().splitlines()], "it is on record"

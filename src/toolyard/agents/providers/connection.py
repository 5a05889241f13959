"""The way to a service: one request, and the events of its answer."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec

from toolyard.agents.providers.event_stream import EventStream
from toolyard.agents.providers.faults import failure, refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    import httpx2

    from toolyard.core.model import ProviderFault

CONNECT_SECONDS = 15.0
AnswerStage = Literal["coming", "whole", "over"]
"""How far an answer is: `whole` when only what it took may follow, `over` when the service said that this was all."""
REST_SECONDS: dict[AnswerStage, float] = {"whole": 5.0, "over": 0.25}
"""How long the end of a stream is waited for then; at its end, the connection can be used again."""
LONGEST_BODY = 1 << 26
LONGEST_ERROR = 1 << 16


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it goes out."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    service: str
    """What messages call the other side."""
    first_byte_seconds: float = 300
    idle_seconds: float = 120


class Connection:
    """Keeps connections between requests; the proxies and certificates are those of the environment."""

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

    async def events(self, sent: Sent, stage: Callable[[], AnswerStage]) -> AsyncGenerator[list[bytes], None]:
        """The data of the answer's events as they come.

        `stage` says how far the answer is; what happens to the connection when it is whole does not matter. Raises
        `TryAgain` or `ProviderError`.
        """
        import httpx2

        client = self._open(sent.service)
        limits = httpx2.Timeout(CONNECT_SECONDS, read=sent.first_byte_seconds, pool=None)
        try:
            async with client.stream(
                "POST", parsed(sent.url), content=sent.body, headers=dict(sent.headers), timeout=limits
            ) as response:
                if response.status_code != 200:
                    body = await start_of(response, LONGEST_ERROR)
                    raise refusal(response.status_code, body, response.headers, service=sent.service)
                kind = response.headers.get("content-type", "")
                if "html" in kind:
                    raise failure("setup", f"{sent.service} answered with a page for people, not as a model's API does")
                if "json" in kind:
                    yield [await start_of(response, LONGEST_BODY)]
                    return
                async with aclosing(batches(response.aiter_bytes(), sent, stage)) as found:
                    async for batch in found:
                        yield batch
        except (httpx2.TransportError, TimeoutError) as error:
            if stage() == "coming":
                raise broken(error, sent.service) from None
        except httpx2.InvalidURL:
            raise failure("setup", f"no request to {sent.service} can be made") from None

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client:
            await client.aclose()

    def _open(self, service: str) -> httpx2.AsyncClient:
        import httpx2

        if self._client is None:
            # A redirect would take the key elsewhere; the number of sessions at once is not ours to bound.
            limits = httpx2.Limits(max_connections=None, keepalive_expiry=60)
            try:
                self._client = httpx2.AsyncClient(limits=limits)
            except (ImportError, ValueError, OSError, httpx2.InvalidURL):
                # The error may have the proxy's password in it.
                message = f"{service} cannot be asked by the proxy or the certificates that the environment names"
                raise failure("setup", message) from None
        return self._client


@lru_cache(maxsize=32)
def parsed(url: str) -> httpx2.URL:
    """An address, which is the same for every request to a service."""
    import httpx2

    return httpx2.URL(url)


def broken(error: Exception, service: str) -> Exception:
    """What to raise for a connection that does not come about, or does not last."""
    import httpx2

    match error:
        case httpx2.TimeoutException() | TimeoutError():
            return failure("network", f"{service} is silent for too long")
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            return failure("setup", f"no request to {service} can be made")
        case httpx2.ConnectError():
            fault: ProviderFault = "setup" if "CERTIFICATE" in str(error).upper() else "network"
            return failure(fault, f"{service} cannot be reached: {error}")
    return failure("network", f"the connection to {service} broke: {error}")


async def batches(
    chunks: AsyncIterator[bytes], sent: Sent, stage: Callable[[], AnswerStage]
) -> AsyncGenerator[list[bytes], None]:
    """The events of each chunk; each read has its limit, and whoever takes the events has all the time they want."""
    stream, limit = EventStream(), sent.first_byte_seconds
    while True:
        async with asyncio.timeout(min(limit, REST_SECONDS.get(stage(), limit))):
            chunk = await anext(chunks, None)
        if chunk is None:
            break
        limit = sent.idle_seconds
        try:
            if found := stream.feed(chunk):
                yield found
        except ValueError as error:
            raise failure("answer", f"{sent.service} sent what makes no sense: {error}") from None
    if found := stream.end():
        yield found


async def start_of(response: httpx2.Response, most: int) -> bytes:
    """A body, or as much of it as one wants to have."""
    read = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(CONNECT_SECONDS):
            async for chunk in response.aiter_bytes():
                read += chunk
                if len(read) >= most:
                    break
    return bytes(read[:most])

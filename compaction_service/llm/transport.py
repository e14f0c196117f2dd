"""The only way out to a model: one guarded HTTP transport under every client that litellm makes.

It holds a call to what `complete` promises, whatever library is on top: one attempt on the wire, one deadline for all
of it (also against a server that drips bytes), a bounded answer, no redirects, no proxies, no cookies. Whoever chose
the URL (a tenant, litellm for a provider, the environment): only HTTPS to public addresses, checked for the very
connection, and only the call's own headers.

Every call has its own connection, closed at its end: a kept one would outlive the check of its address, and a new one
costs little beside seconds of generation.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpcore
import httpx

from compaction_service.llm import urls

CONNECT_TIMEOUT = 5.0  # seconds
MAX_ANSWER = 8 * 1024 * 1024  # bytes; the longest outputs of today are under one
MAX_REFUSAL = 64 * 1024  # bytes of an error looked at
_OWN_HEADERS = [
    (b"accept-encoding", b"identity"),  # a few compressed kilobytes can hold gigabytes
    (b"connection", b"close"),
]


# What a server gets to see besides the call's own extra headers. Libraries add others from the environment
# (OPENAI_CUSTOM_HEADERS, an organisation's id), and those are the operator's.
_HEADERS = frozenset(
    (
        "host",
        "accept",
        "content-type",
        "content-length",
        "user-agent",
        "authorization",
        "x-api-key",
        "x-goog-api-key",
        "anthropic-version",
        "anthropic-beta",
    )
)


@dataclass(slots=True)
class Exchange:
    """One call on the wire: what it may do, and what came of it."""

    deadline: float  # on time.monotonic
    allow_local: bool = False  # loopback may be connected to as well, over plain HTTP too
    headers: frozenset[str] = frozenset()  # the call's extra ones, lower case
    posted: set[str] = field(default_factory=set, repr=False)  # URLs; some providers' hold the key
    timed_out: bool = False
    refused: bool = False  # by urls
    status: int | None = None  # of a complete answer
    retry_after: str | None = None  # the header as it came
    refusal: str = field(default="", repr=False)  # the text of an answer that is no success

    def remaining(self, error: type[Exception]) -> float:
        """Seconds left; raises `error` when there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.timed_out = True
            raise error("deadline")
        return left


_current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


@contextmanager
def on_the_wire(exchange: Exchange) -> Iterator[None]:
    """Requests of this thread belong to `exchange`. Outside of one, the transport sends nothing."""
    token = _current.set(exchange)
    try:
        yield
    finally:
        _current.reset(token)


class GuardedTransport(httpx.BaseTransport):
    """Sends what the current `Exchange` allows. Has no state, so all threads and clients share one."""

    def __init__(self) -> None:
        self._ssl_context = httpx.create_ssl_context()  # once: loading the authorities takes 10 ms

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        exchange = _current.get()
        if exchange is None:
            raise httpx.UnsupportedProtocol("no call in progress")
        if request.method == "POST":
            if str(request.url) in exchange.posted:
                return _once_more(request, exchange)
            exchange.posted.add(str(request.url))
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        plain = request.url.scheme != "https"
        if plain and not exchange.allow_local:
            exchange.refused = True
            raise httpx.UnsupportedProtocol("not https", request=request)
        backend = _GuardedBackend(exchange, loopback_only=plain)
        try:
            with (
                httpcore.ConnectionPool(ssl_context=self._ssl_context, network_backend=backend) as pool,
                pool.stream(request.method, url, headers=_headers(request, exchange), content=request.read()) as answer,
            ):
                body = _read(answer)
        except httpcore.TimeoutException:
            exchange.timed_out = True
            raise httpx.ReadTimeout("deadline", request=request) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError):
            raise httpx.ConnectError("connection failed", request=request) from None
        received = httpx.Headers(answer.headers)
        exchange.status = answer.status
        exchange.retry_after = received.get("retry-after")
        if received.get("content-encoding", "identity") != "identity":
            body = b""  # not what was asked for: an answer that cannot be read
        if answer.status >= 400:
            exchange.refusal = body[:MAX_REFUSAL].decode("utf-8", "replace")
        for name in ("location", "set-cookie", "content-encoding"):
            received.pop(name, None)
        return httpx.Response(answer.status, headers=received, content=body, request=request)


def _once_more(request: httpx.Request, exchange: Exchange) -> httpx.Response:
    """For a library that tries again by itself: what the first attempt came to, without another one."""
    if exchange.status is None:
        raise httpx.ConnectError("one attempt per call", request=request)
    return httpx.Response(exchange.status, text=exchange.refusal, request=request)


def _headers(request: httpx.Request, exchange: Exchange) -> list[tuple[bytes, bytes]]:
    allowed = (_HEADERS | exchange.headers) - {name.decode() for name, _ in _OWN_HEADERS}
    kept = [(name, value) for name, value in request.headers.raw if name.decode("ascii", "replace").lower() in allowed]
    return kept + _OWN_HEADERS


def _read(answer: httpcore.Response) -> bytes:
    """The body; nothing of one that is too long."""
    parts: list[bytes] = []
    size = 0
    for part in answer.iter_stream():
        size += len(part)
        if size > MAX_ANSWER:
            return b""
        parts.append(part)
    return b"".join(parts)


class _GuardedBackend(httpcore.NetworkBackend):
    """Connects to vetted addresses within the deadline. TLS still names and checks the host, not the address."""

    def __init__(self, exchange: Exchange, *, loopback_only: bool) -> None:
        self._exchange = exchange
        self._loopback_only = loopback_only
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # the exchange's deadline counts, here and below
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        exchange = self._exchange
        try:
            addresses = urls.vetted_addresses(
                host, port, allow_local=exchange.allow_local, loopback_only=self._loopback_only
            )
        except urls.UrlRefused:
            exchange.refused = True
            raise httpcore.ConnectError("refused") from None
        give_up = time.monotonic() + CONNECT_TIMEOUT
        for address in addresses:
            left = min(exchange.remaining(httpcore.ConnectTimeout), give_up - time.monotonic())
            try:
                stream = self._sockets.connect_tcp(address, port, max(left, 0.001), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if address == addresses[-1]:
                    raise
            else:
                return _GuardedStream(stream, exchange)
        raise httpcore.ConnectError("no address")


class _GuardedStream(httpcore.NetworkStream):
    """A stream whose every operation may take what is left of the call's time."""

    def __init__(self, stream: httpcore.NetworkStream, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, self._exchange.remaining(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        # In pieces: the deadline of one write starts again with every part the peer takes.
        for start in range(0, len(buffer), 65536):
            self._stream.write(buffer[start : start + 65536], self._exchange.remaining(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = min(self._exchange.remaining(httpcore.ConnectTimeout), CONNECT_TIMEOUT)
        return _GuardedStream(self._stream.start_tls(ssl_context, server_hostname, left), self._exchange)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

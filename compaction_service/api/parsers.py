"""Bodies of requests: bounded before they are read, then JSON that keeps whatever a client may send."""

from __future__ import annotations

from contextlib import suppress
from typing import IO, Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from compaction_service.api.errors import body_too_large
from compaction_service.engine import jsontext

MOST_DRAINED = 256 * 1024 * 1024  # bytes; who sends more has a broken connection


def read_body(request: HttpRequest, limit: int | None = None) -> bytes:
    """The whole body; the same bytes again when asked again. 413 if it is longer than the service's limit or `limit`.

    A declared length is refused before a byte is read. Bodies sent in chunks are read up to the limit.
    """
    limit = min(limit or settings.MAX_BODY_BYTES, settings.MAX_BODY_BYTES)
    if (body := getattr(request, "_body", None)) is not None:
        return bytes(body)
    try:
        declared = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        raise ParseError("Content-Length is not a number.") from None
    if declared > limit:
        raise body_too_large(limit)
    chunked = "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower()
    try:
        # Django's stream ends at Content-Length, which a chunked request does not have; the server's ends by itself.
        body = request.META["wsgi.input"].read(limit + 1) if chunked else request.read(declared)
    except OSError:
        raise ParseError("The body ended early.") from None
    if len(body) > limit:
        raise body_too_large(limit)
    if not chunked and len(body) < declared:
        raise ParseError("The body ended early.")
    request._body = body  # noqa: SLF001  (where Django keeps a body that was read)
    return bytes(body)


def drain(request: HttpRequest) -> None:
    """Throw away a body that nobody read, within reason: what is left of it would stand before the next request on the
    same connection, whose client would wait for its answer in vain."""
    if hasattr(request, "_body"):
        return
    left = MOST_DRAINED
    with suppress(OSError):
        # Django's stream ends at Content-Length; without one there is nothing, or chunks, which the server ends itself.
        while left > 0 and (chunk := request._stream.read(1 << 16)):  # noqa: SLF001
            left -= len(chunk)


class JSONParser(BaseParser):
    """Any JSON text, lone surrogates and NUL escapes included; 400 `parse_error` for anything else."""

    media_type = "application/json"

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:  # noqa: ARG002
        context = parser_context or {}
        body = read_body(context["request"]._request, context["view"].body_limit())  # noqa: SLF001
        try:
            return jsontext.loads(body)
        except UnicodeDecodeError:
            raise ParseError("The body is not UTF-8.") from None
        except ValueError as exc:
            # Positions and expectations only; what json and orjson say never quotes the text.
            raise ParseError(f"The body is not JSON: {exc}") from None

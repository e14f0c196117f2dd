"""Django's handler, but for two things: what a hostile request can make it fail on before any code of ours is asked,
and bodies where HTTP has none, which Django leaves to a server that sends what it is given.
"""

from __future__ import annotations

from typing import Any, cast

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.http import parse_header_parameters


class Request(WSGIRequest):
    """Text is UTF-8, whatever charset the Content-Type names.

    Django takes such a charset by looking at the query at once, where a query of too many parameters raises: outside of
    all that turns exceptions into answers.
    """

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        self.content_type, self.content_params = parse_header_parameters(meta.get("CONTENT_TYPE", ""))


class Handler(WSGIHandler):
    request_class = Request

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """The answer; without its body where the client reads none, and would take it for the next answer's beginning.

        To a HEAD the length stays, since it is that of the GET's body (RFC 9110 8.6, 9.3.2).
        """
        response: Any = super().get_response(request)
        bodiless = response.status_code in (204, 304)
        if bodiless:
            response.headers.pop("Content-Length", None)
        if bodiless or request.method == "HEAD":
            if response.streaming:
                response.streaming_content = ()
            else:
                response.content = b""
        return cast("HttpResponseBase", response)

"""Django's handler, but for one thing that a hostile request can make it fail on before any code of ours is asked."""

from __future__ import annotations

from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
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

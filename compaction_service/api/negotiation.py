"""JSON in, JSON out, whatever Accept says: there is nothing to negotiate, so nothing is spent on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class JSONOnly(BaseContentNegotiation):
    """The view's first renderer; its parser for `application/json` or no type at all, else 415."""

    def select_parser(self, request: Request, parsers: Sequence[BaseParser]) -> BaseParser | None:  # type: ignore[override]
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return parsers[0] if media_type in {"application/json", ""} else None

    def select_renderer(  # type: ignore[override]
        self, _request: Request, renderers: Sequence[BaseRenderer], _format_suffix: Any = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], str(renderers[0].media_type)

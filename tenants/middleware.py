"""The admin and /v1/admin run under the platform role."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from compaction_service.routers import current_alias

PATHS = ("/admin/", "/v1/admin/")


class PlatformMiddleware:
    """Sends the queries of requests below PATHS to the `platform` alias (sessions and users included)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PATHS):
            return self.get_response(request)
        token = current_alias.set("platform")
        try:
            return self.get_response(request)
        finally:
            current_alias.reset(token)

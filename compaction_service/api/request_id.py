"""The request's id: taken from X-Request-Id if it is sane, else made; returned, logged, and handed to the worker."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from compaction_service import logs
from compaction_service.api.metrics import REQUESTS
from compaction_service.api.parsers import drain
from compaction_service.ids import uuid7

_SANE = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)

logger = logging.getLogger("compaction_service.request")


class RequestIdMiddleware:
    """Outermost: everything a request logs carries its id, and one line and one measurement are made of each."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        given = request.headers.get("X-Request-Id", "")
        request_id = given if _SANE.fullmatch(given) else uuid7().hex
        token = logs.request_id.set(request_id)
        try:
            response = self.get_response(request)
            drain(request)  # of an unknown path too
            response.headers["X-Request-Id"] = request_id
            seconds = time.perf_counter() - started
            # The route, not the path: ids given by clients are theirs, and a metric needs few label values.
            route = request.resolver_match.route if request.resolver_match else "-"
            REQUESTS.labels(request.method, route, response.status_code).observe(seconds)
            if logger.isEnabledFor(logging.INFO):
                fields = {"method": request.method, "route": route, "status": response.status_code}
                tenant = getattr(request, "tenant_id", None)
                logger.info("request", extra={**fields, "ms": round(seconds * 1000, 1), "tenant": tenant})
            return response
        finally:
            logs.request_id.reset(token)

"""One shape for every failure: `{"type", "errors": [{"code", "detail", "attr"}], "request_id"}`.

Inside the API's views `exception_handler` makes it; outside them (unknown path, failing middleware) Django's
`handler*` functions do.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError, connections
from django.http import HttpRequest, HttpResponse
from django.views import defaults
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.types import Error
from rest_framework import exceptions
from rest_framework.response import Response

from compaction_service import logs
from compaction_service.api.errors import JSON_TYPE, ApiError, field_errors, unavailable
from compaction_service.engine.policy import PolicyError
from compaction_service.engine.types import MessageError
from compaction_service.routers import current_alias

logger = logging.getLogger(__name__)


class Formatter(ExceptionFormatter):  # type: ignore[misc]
    """Adds what ApiError carries, and the request's id."""

    def get_error_type(self) -> Any:
        if isinstance(self.exc, ApiError) and self.exc.status_code == 400 and self.exc.attr:
            return "validation_error"
        return super().get_error_type()

    def get_errors(self) -> list[Error]:
        if isinstance(self.exc, ApiError):
            detail: Any = self.exc.detail
            return [Error(detail.code, str(detail), self.exc.attr)]
        return [_in_json(error) for error in super().get_errors()]

    def format_error_response(self, error_response: Any) -> Any:
        extra = self.exc.extra if isinstance(self.exc, ApiError) else {}
        return {**super().format_error_response(error_response), "request_id": logs.request_id.get(), **extra}


# What the framework says of a value's type, in words of JSON instead of Python.
_WANTED = {"not_a_list": "Must be a list.", "not_a_dict": "Must be an object."}
_WHOLE = "non_field_errors"  # where the framework puts what is wrong with an object as such


def _in_json(error: Error) -> Error:
    path = (error.attr or "").split(".")
    if path[-1] != _WHOLE:
        return Error(error.code, _WANTED.get(error.code, error.detail), error.attr)
    attr = ".".join(path[:-1]) or None
    return Error(error.code, "Must be an object." if attr else "The body must be a JSON object.", attr)


class Handler(ExceptionHandler):  # type: ignore[misc]
    """Turns any exception of a view into an answer; what nobody expected becomes a 500 that says nothing."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:  # noqa: PLR0911 -- one for each kind
        if isinstance(exc, RequestDataTooBig):
            return ApiError(413, "request_too_large", "The body is too large.")
        if isinstance(exc, SuspiciousOperation):  # a thousand query parameters, for one
            return ApiError(400, "bad_request", "The request cannot be read.")
        if isinstance(exc, MessageError):
            return ApiError(400, exc.code, exc.detail, attr=exc.attr)
        if isinstance(exc, PolicyError):
            return field_errors((f"policy.{one.field}", one.detail, one.code) for one in (exc, *exc.also))
        if isinstance(exc, (OperationalError, InterfaceError)):
            logger.warning("database error", extra={"error": type(exc.__cause__ or exc).__name__})
            drop_broken_connections()
            return unavailable()
        if isinstance(exc, DataError):  # a number out of range, a NUL where text is searched
            return ApiError(400, "invalid", "A value cannot be stored.")
        known: Exception = super().convert_known_exceptions(exc)
        return known

    def should_not_handle(self, _exc: Exception) -> bool:
        return False  # the same answer whether DEBUG is on or not

    def convert_unhandled_exceptions(self, exc: Exception) -> exceptions.APIException:
        if isinstance(exc, exceptions.APIException):
            return exc
        logger.error("unhandled exception", exc_info=exc)
        return ApiError(500, "internal_error", "The server failed. The request id names the case in its log.")

    def format_exception(self, exc: exceptions.APIException) -> Any:
        return Formatter(exc, self.context, self.exc).run()

    def get_headers(self, exc: exceptions.APIException) -> dict[str, str]:
        headers = {**super().get_headers(exc), **getattr(exc, "headers", {})}
        if isinstance(exc, exceptions.MethodNotAllowed):
            headers["Allow"] = ", ".join(self.context["view"].allowed_methods)
        return headers

    def report_exception(self, exc: exceptions.APIException, response: Response) -> None:
        """Nothing more: the log line was written above, and Django's would hold the path."""


def exception_handler(exc: Exception, context: Any) -> Response:
    """REST_FRAMEWORK["EXCEPTION_HANDLER"]."""
    response: Response = Handler(exc, context).run()
    return response


def drop_broken_connections() -> None:
    """After a lost connection the pool looks at the idle ones too, so that a restarted database costs one 503, not
    one for each connection. (Django's own health check would cost every request a round trip.)"""
    pool = getattr(connections[current_alias.get()], "pool", None)
    if pool:
        with suppress(Exception):  # best effort, on the way to a 503
            pool.check()


def answer(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """An error as a plain Django response, for what happens outside the API's views."""
    body = {
        "type": "client_error" if status < 500 else "server_error",
        "errors": [{"code": code, "detail": detail, "attr": None}],
        "request_id": logs.request_id.get(),
    }
    return HttpResponse(orjson.dumps(body), status=status, content_type=JSON_TYPE, headers=dict(headers or {}))


def _admin(request: HttpRequest) -> bool:
    return request.path_info.startswith("/admin/")


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django refused the request: a bad host, a malformed upload, too much of one."""
    if isinstance(exception, RequestDataTooBig):
        return answer(413, "request_too_large", "The body is too large.")
    if _admin(request):
        return defaults.bad_request(request, exception)
    detail = str(exception) if isinstance(exception, BadRequest) else "The request cannot be read."
    return answer(400, "bad_request", detail)


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _admin(request):
        return defaults.permission_denied(request, exception)
    return answer(403, "permission_denied", "You do not have permission to do this.")


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    if _admin(request):
        return defaults.page_not_found(request, exception)
    return answer(404, "not_found", "There is nothing at this path.")


def handler500(request: HttpRequest) -> HttpResponse:
    exc = sys.exc_info()[1]
    if isinstance(exc, (OperationalError, InterfaceError)):
        drop_broken_connections()
        error = unavailable()
        return answer(503, "service_unavailable", str(error.detail), error.headers)
    logger.error("unhandled exception", exc_info=exc)
    if _admin(request):
        return defaults.server_error(request)
    return answer(500, "internal_error", "The server failed. The request id names the case in its log.")

"""Failures as business rules raise them: `ApiError`. handlers.py turns them, and everything else, into answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import exceptions

JSON_TYPE = "application/json"


class ApiError(exceptions.APIException):
    """A failure with a code of ours. `extra` is merged into the answer beside `errors`, e.g. `last_position`."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        attr: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail, code)
        self.status_code = status
        self.attr = attr
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


def body_too_large(limit: int) -> ApiError:
    """413: the body is longer than `limit` bytes."""
    return ApiError(413, "request_too_large", f"The body is larger than {limit} bytes.")


def unavailable() -> ApiError:
    """503: the database does not answer, or gave up on a conflict between transactions; trying again is safe."""
    return ApiError(
        503, "service_unavailable", "The database is not available. Try again.", headers={"Retry-After": "1"}
    )

"""Failures as business rules raise them: `ApiError`. handlers.py turns them, and everything else, into answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
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


def field_errors(errors: Iterable[tuple[str, str, str]]) -> exceptions.ValidationError:
    """400 for several fields: of each its path, what is wrong, and the code."""
    return exceptions.ValidationError({attr: [exceptions.ErrorDetail(detail, code)] for attr, detail, code in errors})


def limit_error(
    status: int,
    code: str,
    detail: str,
    name: str,
    most: Any,
    *,
    attr: str | None = None,
    ends_at: datetime | None = None,
    headers: Mapping[str, str] | None = None,
) -> ApiError:
    """A limit is exceeded: `limit` in the answer says which, how much it allows, when it ends (null: not by itself)."""
    told = {"name": name, "most": most, "ends_at": ends_at}
    return ApiError(status, code, detail, attr=attr, headers=headers, extra={"limit": told})


def body_too_large(limit: int) -> ApiError:
    """413: the body is longer than `limit` bytes."""
    detail = f"The body is larger than {limit} bytes."
    return limit_error(413, "request_too_large", detail, "max_body_bytes", limit)


def unavailable() -> ApiError:
    """503: the database does not answer, or gave up on a conflict between transactions; trying again is safe."""
    return ApiError(
        503, "service_unavailable", "The database is not available. Try again.", headers={"Retry-After": "1"}
    )

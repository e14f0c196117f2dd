"""Lists by cursor: the page after a row is found through an index, however deep it lies."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import Model, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from compaction_service.api.errors import ApiError

DEFAULT_LIMIT, MAX_LIMIT = 50, 250

M = TypeVar("M", bound=Model)

PARAMETERS = [
    OpenApiParameter("cursor", str, description="The `next_cursor` of the page before."),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
        description="Rows in a page.",
    ),
]


class Page(NamedTuple, Generic[M]):
    """The rows of one page, and the cursor of the next one (None: this is the last)."""

    rows: list[M]
    next_cursor: str | None


def paginate(queryset: QuerySet[M], params: Mapping[str, str], order: str = "-id") -> Page[M]:
    """The page that `?cursor=&limit=` ask for. `order` names one unique column, newest first with a minus.

    400 (`attr` cursor or limit) for a cursor that is not ours and a limit outside 1..250.
    """
    column, descending = order.lstrip("-"), order.startswith("-")
    limit = page_limit(params)
    if (cursor := params.get("cursor")) is not None:
        value = _decode(queryset, column, cursor)
        queryset = queryset.filter(**{f"{column}__{'lt' if descending else 'gt'}": value})
    rows = list(queryset.order_by(order)[: limit + 1])
    more = len(rows) > limit
    rows = rows[:limit]
    return Page(rows, cursor_of(column, getattr(rows[-1], column)) if more else None)


def page_of(serializer: type[serializers.BaseSerializer[Any]], name: str) -> Any:
    """The OpenAPI schema of a page of such rows; `name` names the component."""
    fields = {
        "data": serializer(many=True, help_text="The rows of this page."),
        "next_cursor": serializers.CharField(allow_null=True, help_text="Ask with `?cursor=` for what follows."),
    }
    return type(name, (serializers.Serializer,), {"__doc__": "One page of a list.", **fields})


def page_limit(params: Mapping[str, str]) -> int:
    """Rows in a page, as `?limit=` says. 400 outside 1..250."""
    given = params.get("limit")
    if given is None:
        return DEFAULT_LIMIT
    # Digits only: int() would also take blanks, signs, underscores and other scripts.
    if given.isascii() and given.isdigit() and len(given) <= 3 and 1 <= int(given) <= MAX_LIMIT:
        return int(given)
    raise ApiError(400, "invalid", f"Must be a whole number from 1 to {MAX_LIMIT}.", attr="limit")


def cursor_of(column: str, value: Any) -> str:
    """The cursor of what follows the row with this value in `column`."""
    return base64.urlsafe_b64encode(f"{column}:{value}".encode()).decode().rstrip("=")


def cursor_value(column: str, cursor: str, read: Callable[[str], Any] = str) -> Any:
    """What `cursor_of` was given, read from its text. 400 (`attr` cursor) for a text that `cursor_of` does not make."""
    try:
        text = base64.b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4), b"-_", validate=True).decode()
        name, _, value = text.partition(":")
        found = read(value)
    except (UnicodeError, binascii.Error, ValueError, DjangoValidationError):
        found = None
    if found is None or name != column or cursor_of(column, found) != cursor:
        raise _bad_cursor()
    return found


def _decode(queryset: QuerySet[M], column: str, cursor: str) -> Any:
    field: Any = queryset.model._meta.get_field(column)  # noqa: SLF001  (Django's public _meta API)
    found = cursor_value(column, cursor, field.to_python)
    if isinstance(found, int) and not isinstance(found, UUID) and abs(found) >= 2**63:
        raise _bad_cursor()
    return found


def _bad_cursor() -> ApiError:
    return ApiError(400, "invalid_cursor", "This is not a cursor of this list.", attr="cursor")

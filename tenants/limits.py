"""Limits of a tenant. Overrides live in `Tenant.limits`; None means no limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tenant may use, with the service's defaults."""

    requests_per_minute: int | None = None
    max_body_bytes: int = settings.MAX_BODY_BYTES
    max_message_bytes: int | None = None  # of one message, as compact JSON
    conversations: int | None = None  # stored at once
    stored_tokens: int | None = None  # of stored messages
    compactions_in_flight: int = 64  # model calls of the tenant at once
    monthly_budget: Decimal | None = None  # US dollars of model calls in a calendar month, UTC


class LimitError(ValueError):
    """A limit that cannot be. `field` names it; `also`: others that were given with it."""

    def __init__(self, field: str, detail: str, code: str = "invalid") -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail
        self.code = code
        self.also: tuple[LimitError, ...] = ()


_NAMES = frozenset(field.name for field in fields(Limits))
_DEFAULTS = Limits()


def limits_of(overrides: Mapping[str, Any]) -> Limits:
    """The limits with these overrides, as `Tenant.limits` holds them."""
    if not overrides:
        return _DEFAULTS
    values = {name: value for name, value in overrides.items() if name in _NAMES and value is not None}
    if "monthly_budget" in values:
        values["monthly_budget"] = Decimal(str(values["monthly_budget"]))
    return Limits(**values)


def check(overrides: Mapping[str, Any]) -> None:
    """LimitError for the overrides that are unknown or not a number in range. None always unsets."""
    found = [error for name, value in overrides.items() if (error := _error(name, value))]
    if found:
        found[0].also = tuple(found[1:])
        raise found[0]


def _error(name: str, value: Any) -> LimitError | None:
    if name not in _NAMES:
        known = ", ".join(sorted(_NAMES))
        return LimitError(name, f"There is no such limit. Known: {known}.", "unknown_field")
    number = isinstance(value, int) or (name == "monthly_budget" and isinstance(value, float))
    low = 0 if name == "monthly_budget" else 1
    if value is not None and (isinstance(value, bool) or not number or not low <= value < 2**53):
        return LimitError(name, f"Must be a number of at least {low}.")
    return None

"""Query parameters of the conversation endpoints: read, checked, and documented in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from django.db.models import Model, QuerySet
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive
from drf_spectacular.utils import OpenApiParameter

from compaction_service.api.errors import ApiError
from compaction_service.conversations.models import CompactionState, Conversation, Format, Message

M = TypeVar("M", bound=Model)

LONGEST_WAIT = 60

POSITION = {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}

CREATED_PARAMETERS = [
    OpenApiParameter("created_after", datetime, description="Created at this time or later (RFC 3339)."),
    OpenApiParameter("created_before", datetime, description="Created before this time (RFC 3339)."),
]
CONVERSATION_PARAMETERS = [
    OpenApiParameter("external_id", str, description="Exactly this id of yours."),
    OpenApiParameter("model", str, description="Exactly this model."),
    OpenApiParameter("compaction_state", str, enum=CompactionState.values, description="Of its live compaction."),
    *CREATED_PARAMETERS,
    # `metadata.<key>` is told in the operation's description: OpenAPI has no parameter whose name is open.
]
MESSAGE_PARAMETERS = [
    OpenApiParameter("from", POSITION, description="From this position on."),
    OpenApiParameter("to", POSITION, description="Up to this position, included."),
]
CONTEXT_PARAMETERS = [
    OpenApiParameter(
        "format",
        str,
        enum=Format.values,
        description=(
            "The format to answer in; the conversation's own if not given. The other one is a 400 `format_mismatch` "
            "where something in the context has no equal in it. The meter counts what is stored, in its own format."
        ),
    ),
    OpenApiParameter("model", str, description="Fit it to this model's window instead of the conversation's own."),
    OpenApiParameter(
        "wait",
        {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT},
        description=f"Seconds to wait at most for a live compaction, up to {LONGEST_WAIT}.",
    ),
    OpenApiParameter(
        "wait_for",
        str,
        enum=["fit", "idle"],
        default="fit",
        description="Until the context fits, or until none is live.",
    ),
    OpenApiParameter(
        "reserve_output_tokens",
        {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
        description="Keep this many tokens free for the answer.",
    ),
]


@dataclass(frozen=True)
class ContextQuestion:
    """How a context is asked for."""

    format: str | None
    model: str | None
    wait: float
    wait_for: str
    reserve: int | None

    def at_once(self) -> ContextQuestion:
        return replace(self, wait=0.0)


def context_question(params: Mapping[str, str]) -> ContextQuestion:
    """Raises `ApiError` 400 naming the parameter."""
    return ContextQuestion(
        format=choice(params, "format", Format.values),
        model=params.get("model"),
        wait=seconds(params, "wait"),
        wait_for=choice(params, "wait_for", ["fit", "idle"]) or "fit",
        reserve=whole(params, "reserve_output_tokens", least=0),
    )


def conversations(found: QuerySet[Conversation], params: Mapping[str, str]) -> QuerySet[Conversation]:
    for name in ("external_id", "model"):
        if name in params:
            found = found.filter(**{name: storable(params, name)})
    if state := choice(params, "compaction_state", CompactionState.values):
        found = found.filter(compaction_state=state)
    for name in params:
        if name.startswith("metadata."):
            found = found.filter(metadata__contains={name.removeprefix("metadata."): storable(params, name)})
    return created(found, params)


def messages(found: QuerySet[Message], params: Mapping[str, str]) -> QuerySet[Message]:
    if (first := whole(params, "from", least=1)) is not None:
        found = found.filter(position__gte=first)
    if (last := whole(params, "to", least=1)) is not None:
        found = found.filter(position__lte=last)
    return found.filter(erased_at=None)


def created(found: QuerySet[M], params: Mapping[str, str]) -> QuerySet[M]:
    if at := moment(params, "created_after"):
        found = found.filter(created_at__gte=at)
    if at := moment(params, "created_before"):
        found = found.filter(created_at__lt=at)
    return found


def seconds(params: Mapping[str, str], name: str) -> float:
    """A waiting time from 0 to 60; absent: 0."""
    try:
        value = float(params.get(name, "0"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= LONGEST_WAIT:
        raise ApiError(400, "invalid", f"Must be a number of seconds from 0 to {LONGEST_WAIT}.", attr=name)
    return value


def whole(params: Mapping[str, str], name: str, *, least: int, most: int = 2**31 - 1) -> int | None:
    given = params.get(name)
    if given is None:
        return None
    if given.isascii() and given.isdigit() and len(given) <= 10 and least <= int(given) <= most:
        return int(given)
    raise ApiError(400, "invalid", f"Must be a whole number from {least} to {most}.", attr=name)


def moment(params: Mapping[str, str], name: str) -> datetime | None:
    given = params.get(name)
    if given is None:
        return None
    try:
        value = parse_datetime(given.replace(" ", "+"))  # a plus sign that was not encoded arrives as a blank
    except ValueError:
        value = None
    if value is None or is_naive(value):
        raise ApiError(400, "invalid", "Must be an RFC 3339 time with a zone, as 2026-01-31T12:00:00Z.", attr=name)
    return value


def storable(params: Mapping[str, str], name: str) -> str:
    """Text that a column can be compared with."""
    value = params[name]
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise ApiError(400, "invalid", "Must not contain NUL characters or lone surrogates.", attr=name)
    return value


def choice(params: Mapping[str, str], name: str, choices: list[str]) -> str | None:
    given = params.get(name)
    if given is not None and given not in choices:
        raise ApiError(400, "invalid_choice", f"Must be one of {', '.join(choices)}.", attr=name)
    return given

"""Reading what was used and what it cost."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.db import connections
from django.utils import timezone

from compaction_service.api.errors import ApiError
from compaction_service.api.pagination import cursor_of, cursor_value, page_limit
from compaction_service.routers import current_alias
from compaction_service.usage.models import OUTCOMES
from tenants.scope import required_tenant

_SPENT = """
select coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0), coalesce(sum(cost), 0) from usage_call
where tenant_id = %s and conversation_id = %s and compaction_id = %s
"""

GROUPS = ("day", "model", "conversation")
DEFAULT_DAYS, MOST_DAYS = 30, 366

_KEYS = {"day": "day::text", "model": "model", "conversation": "conversation_id::text"}
_SUMS = ("messages", "tokens", *OUTCOMES, "tokens_saved", "calls", "llm_tokens_in", "llm_tokens_out", "cost")
_QUERY = """
select {key} as key, {sums} from usage_day
where tenant_id = %(tenant)s and day >= %(from)s and day < %(end)s and (%(after)s::text is null or {key} > %(after)s)
group by {key} order by {key} limit %(limit)s
"""


def spent_on(conversation_id: uuid.UUID, compaction_id: uuid.UUID) -> tuple[int, int, Decimal]:
    """Tokens in, tokens out and US dollars of all calls of a compaction.

    The index is by conversation; by compaction alone every call of the tenant would be looked at.
    """
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_SPENT, [required_tenant(), conversation_id, compaction_id])
        tokens_in, tokens_out, cost = cursor.fetchone()
        return tokens_in, tokens_out, cost


@dataclass(frozen=True)
class Question:
    """Days (UTC, both included) and what to add up by."""

    first: date
    last: date
    group_by: str


def question(params: Mapping[str, str]) -> Question:
    """What `?from=&to=&group_by=` ask for; the last 30 days by day. `ApiError` 400 naming the parameter."""
    last = _day(params, "to") or timezone.now().date()
    first = _day(params, "from") or last - timedelta(days=DEFAULT_DAYS - 1)
    if not 0 <= (last - first).days < MOST_DAYS:
        raise ApiError(400, "invalid", f"Must be up to {MOST_DAYS} days that end at `to` or later.", attr="from")
    group_by = params.get("group_by", "day")
    if group_by not in GROUPS:
        raise ApiError(400, "invalid_choice", f"Must be one of {', '.join(GROUPS)}.", attr="group_by")
    return Question(first, last, group_by)


def usage(asked: Question, params: Mapping[str, str]) -> tuple[list[dict[str, Any]], str | None]:
    """One page of rows of the tenant in scope, by key, and the cursor of the next."""
    limit = page_limit(params)
    end = asked.last + timedelta(days=1)
    query = _QUERY.format(key=_KEYS[asked.group_by], sums=", ".join(f"sum({name})" for name in _SUMS))
    values = {
        "tenant": required_tenant(),
        "from": asked.first,
        "end": end,
        "after": cursor_value(asked.group_by, params["cursor"]) if "cursor" in params else None,
        "limit": limit + 1,
    }
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(query, values)
        rows = [_row(row) for row in cursor.fetchall()]
    more, rows = len(rows) > limit, rows[:limit]
    return rows, cursor_of(asked.group_by, rows[-1]["key"]) if more else None


def _row(row: tuple[Any, ...]) -> dict[str, Any]:
    key, *sums = row
    found = dict(zip(_SUMS, sums, strict=True))
    cost = found.pop("cost")
    counts = {name: int(value) for name, value in found.items()}
    outcomes = {name: counts.pop(name) for name in OUTCOMES}
    return {"key": key, **counts, "compactions": outcomes, "cost": cost}


def _day(params: Mapping[str, str], name: str) -> date | None:
    given = params.get(name)
    if given is None:
        return None
    try:
        if len(given) != len("2026-01-31") or not given.isascii():
            raise ValueError
        found = date.fromisoformat(given)
        return found if 2000 <= found.year < 9999 else _refuse(name)
    except ValueError:
        return _refuse(name)


def _refuse(name: str) -> date:
    raise ApiError(400, "invalid", "Must be a day as 2026-01-31.", attr=name)

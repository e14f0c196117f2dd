"""Reading what was used and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connections
from django.utils import timezone

from compaction_service.api.errors import ApiError
from compaction_service.api.pagination import cursor_of, cursor_value, page_limit
from compaction_service.routers import current_alias
from tenants.scope import required_tenant

GROUPS = ("day", "model", "conversation")
OUTCOMES = ("applied", "skipped", "irreducible", "failed", "cancelled", "stale")
DEFAULT_DAYS, MOST_DAYS = 30, 366

# What each table calls the thing to group by. Compactions have no model of their own when no model wrote the summary,
# so by model they count where their messages do: under the conversation's.
_DAY = "({}.created_at at time zone 'UTC')::date::text"
_KEYS = {
    "day": ("d.day::text", _DAY.format("c"), _DAY.format("l")),
    "model": ("d.model", "v.model", "l.model"),
    "conversation": ("d.conversation_id::text", "c.conversation_id::text", "l.conversation_id::text"),
}
# One statement for three tables: a key may be in any of them alone, and a page must hold all that is under its keys.
_QUERY = """
select key, sum(messages), sum(tokens), {sums}, sum(saved), sum(llm_in), sum(llm_out), sum(cost)
from (
  select {days} as key, d.messages, d.tokens, null as outcome, 0 as saved, 0 as llm_in, 0 as llm_out, 0 as cost
  from usage_day d where d.tenant_id = %(tenant)s and d.day >= %(from)s and d.day < %(end)s
  union all
  select {compactions}, 0, 0, c.outcome,
    case when c.outcome = 'applied' then c.tokens_in - c.tokens_out else 0 end, 0, 0, 0
  from compactions_compaction c join conversations_conversation v on v.id = c.conversation_id
  where c.tenant_id = %(tenant)s and c.created_at >= %(from_time)s and c.created_at < %(end_time)s and c.outcome <> ''
    and c.requested_by <> 'fork'
  union all
  select {calls}, 0, 0, null, 0, l.tokens_in, l.tokens_out, l.cost
  from usage_call l where l.tenant_id = %(tenant)s and l.created_at >= %(from_time)s and l.created_at < %(end_time)s
) as used
where %(after)s::text is null or key > %(after)s::text
group by key order by key limit %(limit)s
"""


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
    days, compactions, calls = _KEYS[asked.group_by]
    sums = ", ".join(f"count(*) filter (where outcome = '{outcome}')" for outcome in OUTCOMES)
    values = {
        "tenant": required_tenant(),
        "from": asked.first,
        "end": end,
        "from_time": datetime.combine(asked.first, time.min, UTC),
        "end_time": datetime.combine(end, time.min, UTC),
        "after": cursor_value(asked.group_by, params["cursor"]) if "cursor" in params else None,
        "limit": limit + 1,
    }
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_QUERY.format(sums=sums, days=days, compactions=compactions, calls=calls), values)
        rows = [_row(row) for row in cursor.fetchall()]
    more, rows = len(rows) > limit, rows[:limit]
    return rows, cursor_of(asked.group_by, rows[-1]["key"]) if more else None


def _row(row: tuple[Any, ...]) -> dict[str, Any]:
    key, messages, tokens, *outcomes, saved, llm_in, llm_out, cost = row
    return {
        "key": key,
        "messages": int(messages),
        "tokens": int(tokens),
        "compactions": dict(zip(OUTCOMES, outcomes, strict=True)),
        "tokens_saved": int(saved),
        "llm_tokens_in": int(llm_in),
        "llm_tokens_out": int(llm_out),
        "cost": cost or 0,
    }


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

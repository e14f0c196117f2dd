"""Claiming work: fair over tenants, within their limits, safe among any number of workers (semantics 11)."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import connections, transaction

from compaction_service.compactions import clock
from compaction_service.compactions.clock import SQL as NOW
from compaction_service.compactions.leases import LEASE, Claim
from compaction_service.compactions.models import Work
from tenants.limits import Limits

MOST_COUNTED = 1000  # attempts; one more row that always fails must not outgrow its column and stop all claims
MOST_TRIED = 8  # tenants of one claim: others took what the first ones had, a moment before

_FREE = f"next_at <= {NOW} and (lease_until is null or lease_until <= {NOW})"

# Tenants with work that may be claimed now, in the order of their turns: the one with the fewest claims in flight for
# its weight, then the one that has had the least so far (`compactions_turn`, below), then by the job at its head.
# The walk over distinct tenants and both lookups go by the index (tenant, priority, age): a long queue costs nothing.
_TENANTS = f"""
    with recursive busy as (
        (select tenant_id from compactions_work order by tenant_id limit 1)
        union all
        select (select tenant_id from compactions_work where tenant_id > busy.tenant_id order by tenant_id limit 1)
        from busy where busy.tenant_id is not null
    ), latest as (
        select coalesce((select begun from compactions_turn order by begun desc limit 1), 0) as begun
    )
    select share.id, share.weight, coalesce(share.in_flight, %(in_flight)s) as most, flight.claims,
           greatest(turn.due, latest.begun) as tag
    from compactions_shares(array(select tenant_id from busy where tenant_id is not null)) share
    cross join latest
    left join compactions_turn turn on turn.tenant_id = share.id
    cross join lateral (
        select count(*) as claims from compactions_work where tenant_id = share.id and lease_until > {NOW}
    ) flight
    cross join lateral (
        select priority, created_at from compactions_work where tenant_id = share.id and {_FREE}
        order by priority desc, created_at limit 1
    ) head
    where flight.claims < coalesce(share.in_flight, %(in_flight)s)
    order by flight.claims::float8 / share.weight, tag, head.priority desc, head.created_at
    limit %(tenants)s
"""  # noqa: S608 -- its parts are ours, here and below

# Claims of one tenant go one after another through its row, so that its limit holds among all workers. `begun` and
# `due` are start and finish tags of start-time fair queueing: each claim costs a tenant 1 / weight, and one that had no
# work starts where the others are.
_LOCK = """
    insert into compactions_turn (tenant_id, begun, due) values (%(tenant)s, 0, 0)
    on conflict (tenant_id) do update set due = compactions_turn.due
"""
_TAKE = f"""
    with taken as (
        update compactions_work
        set fence = %(fence)s, lease_until = {NOW} + %(lease)s * interval '1 second',
            attempts = least(attempts + 1, %(counted)s)
        where compaction_id = (
            select compaction_id from compactions_work
            where tenant_id = %(tenant)s and {_FREE} and %(most)s > (
                select count(*) from compactions_work where tenant_id = %(tenant)s and lease_until > {NOW}
            )
            order by priority desc, created_at limit 1 for update skip locked
        )
        returning compaction_id, attempts, {NOW}
    ), turned as (
        update compactions_turn
        set begun = greatest(due, %(tag)s), due = greatest(due, %(tag)s) + 1.0 / %(weight)s
        where tenant_id = %(tenant)s and exists (select from taken)
    )
    select * from taken
"""  # noqa: S608
_WAITING = f"""
    select count(*) from (
        select from compactions_work where tenant_id = %(tenant)s and {_FREE} limit %(most)s
    ) due
"""  # noqa: S608


_AT_LIMIT = f"""
    select count(*) + 1 >= coalesce((select in_flight from compactions_shares(array[%(tenant)s])), %(in_flight)s)
    from compactions_work where tenant_id = %(tenant)s and lease_until > {NOW}
"""  # noqa: S608


class _Turn(NamedTuple):
    """A tenant that may claim. `most`: claims it may have in flight, of `claims` it has; `tag`: its turn."""

    tenant: uuid.UUID
    weight: int
    most: int
    claims: int
    tag: float


def claim() -> Claim | None:
    """Take one due row under a new fence, or None when nothing may be taken."""
    for turn in _turns(MOST_TRIED):
        if (taken := _take(turn)) is not None:
            return taken
    return None


def _turns(tenants: int) -> list[_Turn]:
    with connections["default"].cursor() as cursor:
        values = {"in_flight": Limits().compactions_in_flight, "ahead": clock.ahead(), "tenants": tenants}
        cursor.execute(_TENANTS, values)
        return [_Turn(*row) for row in cursor.fetchall()]


def _take(turn: _Turn) -> Claim | None:
    """A transaction for each tenant that is tried: nobody waits for one while holding another."""
    fence = uuid.uuid4()
    values: dict[str, Any] = {
        **turn._asdict(),
        "fence": fence,
        "lease": LEASE.total_seconds(),
        "counted": MOST_COUNTED,
        "ahead": clock.ahead(),
    }
    with transaction.atomic(using="default"), connections["default"].cursor() as cursor:
        cursor.execute(_LOCK, values)
        cursor.execute(_TAKE, values)  # a statement of its own: it must see what others committed before our turn
        row = cursor.fetchone()
    return Claim(row[0], turn.tenant, fence, row[1], row[2]) if row else None


def release(claim: Claim, *, delay: timedelta = timedelta(0), progress: bool = True) -> bool:
    """Hand the row back for the next pass or a retry. False: the claim was lost.

    `progress` starts the count of executions anew.
    """
    values: dict[str, Any] = {"fence": None, "lease_until": None, "next_at": clock.later(delay)}
    if progress:
        values["attempts"] = 0
    return Work.objects.filter(pk=claim.compaction_id, fence=claim.fence).update(**values) == 1


def due(limit: int = 1000) -> int:
    """How many rows could be claimed now, as far as their tenants' limits go."""
    found = 0
    for turn in _turns(limit):
        if found >= limit:
            break
        found += _waiting(turn.tenant, min(limit - found, turn.most - turn.claims))
    return found


def waits_for(claim: Claim) -> bool:
    """Whether a job of this tenant may have waited for this claim to end: the tenant was at its limit.

    Its wake-up found nothing then, and no other would come for it before the next sweep.
    """
    values: dict[str, Any] = {
        "tenant": claim.tenant_id,
        "in_flight": Limits().compactions_in_flight,
        "ahead": clock.ahead(),
    }
    with connections["default"].cursor() as cursor:
        cursor.execute(_AT_LIMIT, values)
        at_limit: bool = cursor.fetchone()[0]
    return at_limit and _waiting(claim.tenant_id, 1) > 0


def _waiting(tenant_id: uuid.UUID, most: int) -> int:
    with connections["default"].cursor() as cursor:
        cursor.execute(_WAITING, {"tenant": tenant_id, "most": most, "ahead": clock.ahead()})
        found: int = cursor.fetchone()[0]
        return found

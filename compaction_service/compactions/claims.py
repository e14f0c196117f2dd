"""Claiming work: fair over tenants, safe among any number of workers (semantics 11)."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.db import connections, transaction
from django.utils import timezone

from compaction_service.compactions.leases import LEASE, Claim
from compaction_service.compactions.models import Work

MOST_COUNTED = 1000  # attempts; one more row that always fails must not outgrow its column and stop all claims

# The tenant with the fewest claims in flight goes first, then the higher priority, then the older row. Rows another
# worker is claiming at this moment are skipped.
_CLAIM = """
    with flight as (
        select tenant_id, count(*) as claims from compactions_work where lease_until > %(now)s group by tenant_id
    )
    select work.compaction_id
    from compactions_work work left join flight on flight.tenant_id = work.tenant_id
    where work.next_at <= %(now)s and (work.lease_until is null or work.lease_until <= %(now)s)
    order by coalesce(flight.claims, 0), work.priority desc, work.created_at
    limit 1
    for update of work skip locked
"""


def claim() -> Claim | None:
    """Take one due row under a new fence, or None when nothing is due."""
    now = timezone.now()
    with transaction.atomic(using="default"):
        with connections["default"].cursor() as cursor:
            cursor.execute(_CLAIM, {"now": now})
            found = cursor.fetchone()
        if found is None:
            return None
        work = Work.objects.get(pk=found[0])
        work.fence, work.lease_until = uuid.uuid4(), now + LEASE
        work.attempts = min(MOST_COUNTED, work.attempts + 1)
        work.save(update_fields=["fence", "lease_until", "attempts"])
    return Claim(work.compaction_id, work.tenant_id, work.fence, work.attempts)


def release(claim: Claim, *, delay: timedelta = timedelta(0), progress: bool = True) -> bool:
    """Hand the row back for the next pass or a retry. False: the claim was lost.

    `progress` starts the count of executions anew.
    """
    values: dict[str, Any] = {"fence": None, "lease_until": None, "next_at": timezone.now() + delay}
    if progress:
        values["attempts"] = 0
    return Work.objects.filter(pk=claim.compaction_id, fence=claim.fence).update(**values) == 1


def due(limit: int = 1000) -> int:
    """How many rows wait for a worker now."""
    now = timezone.now()
    free = Work.objects.filter(next_at__lte=now).exclude(lease_until__gt=now)
    return free[:limit].count()

"""The work queue seen from outside: how many jobs are where, and since when."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.db import connections

from compaction_service.routers import current_alias

STATES = ("queued", "later", "running", "expired")

_QUERY = """
select tenant_id,
  count(*) filter (where lease_until is null and next_at <= now()),
  count(*) filter (where lease_until is null and next_at > now()),
  count(*) filter (where lease_until > now()),
  count(*) filter (where lease_until <= now()),
  coalesce(max(extract(epoch from now() - greatest(next_at, lease_until)))
    filter (where next_at <= now() and (lease_until is null or lease_until <= now())), 0),
  extract(epoch from now() - min(created_at))
from compactions_work group by tenant_id order by 6 desc, tenant_id
"""


@dataclass(frozen=True)
class TenantQueue:
    """Live jobs of one tenant. Times are seconds."""

    tenant_id: uuid.UUID
    queued: int  # due, and claimed by nobody
    later: int  # another attempt is due later
    running: int  # claimed under a lease
    expired: int  # the lease has ended: the worker is gone, the next claim takes it over
    oldest_due: float  # how long the one that waits longest could have been claimed
    oldest: float  # the age of the oldest job


def by_tenant() -> list[TenantQueue]:
    """The queue of each tenant with jobs, those who wait longest first. Needs no scope: the table is a directory."""
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_QUERY)
        return [
            TenantQueue(tenant, queued, later, running, expired, float(oldest_due), float(oldest))
            for tenant, queued, later, running, expired, oldest_due, oldest in cursor.fetchall()
        ]

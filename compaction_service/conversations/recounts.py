"""The queue of conversations whose counts are to be made anew, and its worker's side (semantics 3).

A row is there while a conversation's counts are of another tokenizer than its model's. It goes in the transaction that
writes the new counts, under the conversation's lock, so there is none too few; one too many finds nothing to do. A
worker that dies loses time only: the row is due again when its lease is over.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial

from django.db import connection, transaction

from compaction_service.compactions import clock
from compaction_service.compactions.wakeup import wake
from compaction_service.conversations.models import Conversation, Recount
from compaction_service.conversations.retokenizing import conversation_recount
from compaction_service.routers import current_alias
from tenants.scope import required_tenant

TASK = "conversations.recount"
LEASE = timedelta(seconds=60)  # doubled by each attempt, as far as MOST_DOUBLED
MOST_DOUBLED = 6
LATER = timedelta(seconds=1)  # a compaction of the conversation is running


def enqueue(conversation: Conversation) -> None:
    """Have a conversation recounted, in the transaction that made it necessary."""
    row = Recount(conversation=conversation, tenant_id=required_tenant(), next_at=clock.later())
    Recount.objects.bulk_create([row], ignore_conflicts=True)
    transaction.on_commit(partial(wake, task=TASK), using=current_alias.get())


def run_next() -> bool:
    """Recount the conversation that has waited longest, whichever tenant's it is. False: none is due."""
    claimed = _claim()
    if claimed is None:
        return False
    conversation_id, tenant_id = claimed
    try:
        if not conversation_recount(tenant_id, conversation_id):
            Recount.objects.filter(pk=conversation_id).update(next_at=clock.later(LATER), attempts=0)
    finally:
        connection.close()  # back to the pool
    return True


def due(limit: int) -> int:
    """How many conversations wait for a worker now."""
    return Recount.objects.filter(next_at__lte=clock.later())[:limit].count()


def _claim() -> tuple[uuid.UUID, uuid.UUID] | None:
    with transaction.atomic(using="default"):
        rows = Recount.objects.select_for_update(skip_locked=True).filter(next_at__lte=clock.later())
        row = rows.order_by("next_at").first()
        if row is None:
            return None
        row.next_at = clock.later(LEASE * 2**row.attempts)
        row.attempts = min(MOST_DOUBLED, row.attempts + 1)
        row.save(update_fields=["next_at", "attempts"])
    return row.pk, row.tenant_id

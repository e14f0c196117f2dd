"""A tenant's `retention_days`: conversations untouched for so long are erased, whole (semantics 9)."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from compaction_service.conversations.models import Conversation
from compaction_service.conversations.services import conversation_erase
from tenants import audit
from tenants.models import Tenant
from tenants.scope import platform_scope, tenant_scope

logger = logging.getLogger(__name__)

BATCH = 500  # conversations named at a time; each is erased in a transaction of its own


def conversations_expire(now: datetime | None = None) -> int:
    """Erase what is past its tenant's retention, over all tenants; how many. Every write of a conversation touches it,
    a read does not. Safe to run twice at once: each conversation is looked at again under its lock.
    """
    now = now or timezone.now()
    with platform_scope():
        tenants = list(Tenant.objects.exclude(retention_days=None))
    erased = sum(_expire(one.id, now - timedelta(days=one.retention_days)) for one in tenants if one.retention_days)
    if erased:
        logger.info("conversations expired", extra={"count": erased})
    return erased


def _expire(tenant_id: UUID, before: datetime) -> int:
    erased, after = 0, UUID(int=0)
    while True:
        with tenant_scope(tenant_id):
            old = Conversation.objects.filter(updated_at__lt=before, id__gt=after).order_by("id")
            batch = list(old.values_list("id", flat=True)[:BATCH])
        for conversation_id in batch:
            erased += _erase(tenant_id, conversation_id, before)
        if len(batch) < BATCH:
            return erased
        after = batch[-1]


def _erase(tenant_id: UUID, conversation_id: UUID, before: datetime) -> bool:
    with tenant_scope(tenant_id):
        found = Conversation.objects.select_for_update().filter(id=conversation_id, updated_at__lt=before)
        if not found.exists():
            return False  # touched since, or erased by another run
        conversation_erase(ref=str(conversation_id))
        audit.record("conversation.erased", "service:retention", f"conversation:{conversation_id}")
        return True

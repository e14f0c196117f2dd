"""The audit trail: who looked at content, and who changed, reverted or erased something. Never any content.

Rows are written in the transaction of what they tell of, can be added and read by the application's role, and neither
changed nor deleted by it. The agent's own traffic (appends, contexts) is not in it: that is what the service is for.
What is done to a tenant is in its own trail; its deletion, and what is no tenant's, are in the platform's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from compaction_service import logs
from tenants.models import AuditEvent
from tenants.scope import PLATFORM, required_tenant, tenant_scope

VIEWED = "content.viewed"
ACTIONS = (
    VIEWED, "tenant.changed", "limits.changed", "conversation.changed", "conversation.erased", "conversation.rewound",
    "message.changed", "message.erased", "compaction.reverted", "compaction.cancelled", "compaction.reviewed",
    "key.created", "key.rotated", "key.revoked", "tenant.created", "tenant.exported",
    "member.changed", "member.removed",
    # The platform's own:
    "tenant.deleted", "platform_key.created", "platform_key.revoked", "model.changed", "model.cleared", "models.synced",
)  # fmt: skip
MOST_FIELDS = 50
VIEWED_EVERY = 3600.0  # seconds: looks of one caller at one thing are told once in that time by each process
MOST_KEPT = 20_000

_viewed: dict[tuple[UUID, str, str], float] = {}  # tenant, actor, object -> when told (monotonic)


def record(action: str, actor: str, target: str = "", fields: Iterable[str] = ()) -> None:
    """Adds an event of the tenant in scope. `fields`: names of what was changed, never values."""
    tenant_id = required_tenant()
    if action == VIEWED:
        key, now = (tenant_id, actor, target), time.monotonic()
        if now - _viewed.get(key, -VIEWED_EVERY) < VIEWED_EVERY:
            return
        if len(_viewed) >= MOST_KEPT:
            _viewed.clear()
        _viewed[key] = now
    AuditEvent.objects.create(
        tenant_id=tenant_id,
        action=action,
        actor=actor[:255],
        target=target[:255],
        changed=sorted(fields)[:MOST_FIELDS],
        request_id=logs.request_id.get() or "",
    )


def record_of_platform(action: str, actor: str, target: str = "", fields: Iterable[str] = ()) -> None:
    """Adds an event of the platform's own trail, under its role and outside any tenant's scope."""
    with tenant_scope(PLATFORM):
        record(action, actor, target, fields)


def events() -> QuerySet[AuditEvent]:
    """Events of the tenant in scope."""
    return AuditEvent.objects.all()

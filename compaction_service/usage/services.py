"""Writing the ledger."""

from __future__ import annotations

import uuid
from decimal import Decimal

from django.db import connections
from django.utils import timezone

from compaction_service.ids import uuid7
from compaction_service.routers import current_alias
from compaction_service.usage.models import Call

# One statement for "insert or add": the ORM's upsert cannot add to the row it meets.
_DAY_ADD = """
    insert into usage_day (id, tenant_id, conversation_id, day, model, messages, tokens)
    values (%s, %s, %s, %s, %s, %s, %s)
    on conflict (tenant_id, day, conversation_id) do update
    set messages = usage_day.messages + excluded.messages, tokens = usage_day.tokens + excluded.tokens
"""


def day_add(*, tenant_id: uuid.UUID, conversation_id: uuid.UUID, model: str, messages: int, tokens: int) -> None:
    """Count appended messages and raw tokens under today (UTC)."""
    if not messages:
        return
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_DAY_ADD, [uuid7(), tenant_id, conversation_id, timezone.now().date(), model, messages, tokens])


def call_record(
    *,
    tenant_id: uuid.UUID,
    conversation_id: uuid.UUID,
    compaction_id: uuid.UUID,
    pass_number: int,
    model: str,
    status: str,
    error: str = "",
    tokens_in: int = 0,
    tokens_out: int = 0,
    cost: Decimal | None = None,
    duration_ms: int = 0,
) -> None:
    """Record one call to a model. `status`: ok, failed, or late (its result was refused, it was paid for)."""
    Call.objects.create(
        tenant_id=tenant_id,
        conversation_id=conversation_id,
        compaction_id=compaction_id,
        pass_number=pass_number,
        model=model,
        status=status,
        error=error,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
        duration_ms=duration_ms,
    )

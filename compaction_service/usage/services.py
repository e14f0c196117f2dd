"""Writing the ledger."""

from __future__ import annotations

import uuid
from decimal import Decimal

from django.db import connections
from django.utils import timezone

from compaction_service.ids import uuid7
from compaction_service.routers import current_alias
from compaction_service.usage.models import OUTCOMES, Call
from tenants.statements import Insert

_INSERT = Insert(Call)

# One statement for "insert or add": the ORM's upsert cannot add to the row it meets.
_ADD = """
    insert into usage_day (id, tenant_id, conversation_id, day, model, {columns})
    values (%s, %s, %s, %s, %s, {values})
    on conflict (tenant_id, day, conversation_id, model) do update set {sums}
"""
# A row has every column; what is not added to begins with nothing.
_AMOUNTS = (
    "messages", "tokens", *OUTCOMES, "tokens_saved", "calls", "llm_tokens_in", "llm_tokens_out", "cost",
)  # fmt: skip
_DAY_ADD = _ADD.format(
    columns=", ".join(_AMOUNTS),
    values=", ".join(["%s"] * len(_AMOUNTS)),
    sums=", ".join(f"{name} = usage_day.{name} + excluded.{name}" for name in _AMOUNTS),
)


def day_add(*, tenant_id: uuid.UUID, conversation_id: uuid.UUID, model: str, **amounts: int | Decimal) -> None:
    """Add to what a conversation used today (UTC). `amounts`: by column; raw tokens, US dollars."""
    if not any(amounts.values()):
        return
    values = [amounts.get(name, 0) for name in _AMOUNTS]
    with connections[current_alias.get()].cursor() as cursor:
        cursor.execute(_DAY_ADD, [uuid7(), tenant_id, conversation_id, timezone.now().date(), model, *values])


def compaction_record(
    *, tenant_id: uuid.UUID, conversation_id: uuid.UUID, model: str, outcome: str, tokens_saved: int = 0
) -> None:
    """Count a compaction that has ended. `model`: the conversation's."""
    day_add(
        tenant_id=tenant_id, conversation_id=conversation_id, model=model, **{outcome: 1}, tokens_saved=tokens_saved
    )


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
    """Record one call to a model, in the ledger and in its day.

    `status`: ok, failed, or late (its result was refused, it was paid for).
    """
    call = Call(
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
        created_at=timezone.now(),
    )
    _INSERT.run([call])
    day_add(
        tenant_id=tenant_id,
        conversation_id=conversation_id,
        model=model,
        calls=1,
        llm_tokens_in=tokens_in,
        llm_tokens_out=tokens_out,
        cost=cost or 0,
    )

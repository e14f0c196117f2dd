"""What all compactions of a conversation come to (semantics 10)."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Count, F, FloatField, Max, Min, Q, Sum
from django.db.models.functions import Cast

from compaction_service.compactions.models import LIVE, Compaction, Outcome
from compaction_service.usage.models import Call

MOST_ENTITIES = 100


def stats_of(conversation_id: uuid.UUID) -> dict[str, Any]:
    """Counts and means over the log of one conversation of the tenant in scope.

    Tokens in and out, the mean ratio and the mean duration (milliseconds) are of the applied ones; tokens of models
    and cost (US dollars) are of all calls, by the ledger: a silent entry does not tell its cost. Entities are those of
    entries that still keep their texts.
    """
    applied = Q(outcome=Outcome.APPLIED)
    log = Compaction.objects.filter(conversation_id=conversation_id)
    found = log.aggregate(
        # Before the sums, which take the names of the columns it divides.
        ratio=Avg(Cast("tokens_in", FloatField()) / F("tokens_out"), filter=applied & Q(tokens_out__gt=0)),
        compactions=Count("id"),
        live=Count("id", filter=Q(status__in=LIVE)),
        reverted=Count("id", filter=Q(reverted_at__isnull=False)),
        **{f"outcome_{outcome}": Count("id", filter=Q(outcome=outcome)) for outcome in Outcome.values},
        tokens_in=Sum("tokens_in", filter=applied, default=0),
        tokens_out=Sum("tokens_out", filter=applied, default=0),
        duration=Avg(F("finished_at") - F("started_at"), filter=applied),
        oldest=Min("created_at"),
        newest=Max("created_at"),
    )
    spent = Call.objects.filter(conversation_id=conversation_id).aggregate(
        llm_tokens_in=Sum("tokens_in", default=0),
        llm_tokens_out=Sum("tokens_out", default=0),
        cost=Sum("cost", default=Decimal(0)),
    )
    ratio, duration = found.pop("ratio"), found.pop("duration")
    return {
        "conversation": conversation_id,
        "outcomes": {outcome: found.pop(f"outcome_{outcome}") for outcome in Outcome.values},
        **found,
        **spent,
        "compression_ratio": None if ratio is None else round(ratio, 2),
        "duration_ms": None if duration is None else round(duration / timedelta(milliseconds=1)),
        "entities": _entities(conversation_id),
    }


def _entities(conversation_id: uuid.UUID) -> list[str]:
    """The names that summaries kept, those in most summaries first. `log_retention` bounds what is read."""
    lists = Compaction.objects.filter(conversation_id=conversation_id, outcome=Outcome.APPLIED, keeps_texts=True)
    counts = Counter(name for names in lists.order_by("-id").values_list("entities", flat=True) for name in names)
    return [name for name, _ in counts.most_common(MOST_ENTITIES)]

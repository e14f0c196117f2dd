"""What a compaction would take, without asking anybody: for a dry run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from compaction_service.compactions.plans import Planned
from compaction_service.compactions.starting import models_of
from compaction_service.conversations.terms import Terms
from compaction_service.engine.strategies import takes_notes
from compaction_service.engine.summary.notes import SHARE
from compaction_service.registry.selectors import summarizer_spec
from compaction_service.registry.specs import UNKNOWN_SUMMARIZER_WINDOW, cost
from tenants.models import Tenant

OVERHEAD = 1.1  # markup and rules around a transcript


def estimate(terms: Terms, planned: Planned, tenant: Tenant) -> dict[str, Any]:
    """The model that would write the summary, the calls to read the span, and what they would cost."""
    models = models_of(terms.policy, tenant)
    if planned.plan.irreducible is not None or not models:
        return {"model": models[0] if models else None, "chunks": 0, "estimated_cost": Decimal(0)}
    spec = summarizer_spec(models[0])
    tokens = int((planned.plan.span_tokens + sum(node.tokens for node in planned.nodes)) * OVERHEAD)
    chunks = max(1, -(-tokens // max(1, (spec.context_window or UNKNOWN_SUMMARIZER_WINDOW) * 3 // 4)))
    written = planned.plan.summary_target * chunks
    if takes_notes(terms.policy.strategy):  # the span is read once more, for notes
        tokens, chunks = 2 * tokens, 2 * chunks
        written += written // SHARE
    return {"model": models[0], "chunks": chunks, "estimated_cost": cost(spec, tokens, written)}

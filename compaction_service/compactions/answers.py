"""Rows as answers. Plain dictionaries: the serializers beside this module only document them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from compaction_service.compactions.models import Compaction, Pass, Summary
from compaction_service.compactions.plans import Planned, summary_bound
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.terms import Terms, breakdown


def compaction(row: Compaction, passes: list[Pass]) -> dict[str, Any]:
    """The log entry (semantics 10). What its transparency leaves out was never written."""
    ratio = round(row.tokens_in / row.tokens_out, 2) if row.tokens_in and row.tokens_out else None
    return {
        "id": row.id,
        "conversation": row.conversation_id,
        "status": row.status,
        "outcome": row.outcome or None,
        "reason": row.reason or None,
        "trigger": row.trigger,
        "requested_by": row.requested_by or None,
        "strategy": row.strategy or None,
        "policy": row.policy,
        "focus": row.focus or None,
        "instructions": row.instructions or None,
        "from_position": row.from_position,
        "to_position": row.to_position,
        "from_turn": row.from_turn,
        "to_turn": row.to_turn,
        "model": row.model or None,
        "method": row.method or None,
        "fallback_reason": row.fallback_reason or None,
        "context_before": row.context_before,
        "context_after": row.context_after,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "compression_ratio": ratio,
        "target_reached": row.target_reached,
        "summary": row.summary or None,
        "sections": row.sections,
        "dropped_content": row.dropped_content,
        "entities": row.entities,
        "notes": row.notes,
        "passes": [pass_out(one) for one in passes],
        "llm_tokens_in": row.llm_tokens_in,
        "llm_tokens_out": row.llm_tokens_out,
        "cost": row.cost,
        "queued_ms": _ms(row.created_at, row.started_at),
        "duration_ms": _ms(row.started_at, row.finished_at),
        "review": row.review,
        "reverted_at": row.reverted_at,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
    }


def pass_out(row: Pass) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "number": row.number,
        "status": row.status,
        "model": row.model or None,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "cost": row.cost,
        "error": row.error or None,
        "from_position": row.from_position,
        "to_position": row.to_position,
        "started_at": row.started_at,
        "duration_ms": row.duration_ms,
    }


def plan(conversation: Conversation, terms: Terms, planned: Planned, estimate: dict[str, Any]) -> dict[str, Any]:
    made = planned.plan
    span = None if made.irreducible else {"from": made.from_position, "to": made.to_position}
    target = min(made.summary_target, terms.raw(summary_bound(conversation, terms, planned)))
    return {
        "span": span,
        "irreducible": made.irreducible,
        "kept": made.kept,
        "carried": made.carried,
        "tokens": sum(breakdown(conversation, terms).values()),
        "predicted_tokens": terms.shown(made.predicted_tokens - made.summary_target + target),
        "target_reached": made.target_reached,
        "summary_target": target,
        **estimate,
    }


def summary(row: Summary, children: list[Any]) -> dict[str, Any]:
    return {
        "id": row.id,
        "conversation": row.conversation_id,
        "compaction": row.compaction_id,
        "level": row.level,
        "from_position": row.from_position,
        "to_position": row.to_position,
        "from_turn": row.from_turn,
        "to_turn": row.to_turn,
        "text": row.text,
        "sections": row.sections,
        "tokens": row.tokens,
        "method": row.method,
        "parent": row.parent_id,
        "children": children,
        "entities": row.entities,
        "state": row.state,
        "created_at": row.created_at,
    }


def _ms(start: datetime | None, end: datetime | None) -> int | None:
    return None if start is None or end is None else round((end - start).total_seconds() * 1000)

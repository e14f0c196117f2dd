"""How a compaction ends: one place for all outcomes, what they do to the conversation, and what may follow."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Sum
from django.utils import timezone

from compaction_service.compactions import entries, metrics, requests
from compaction_service.compactions.models import LIVE, Compaction, Outcome, PassStatus, Status, Trigger, Work
from compaction_service.conversations import near_limit
from compaction_service.conversations.models import CompactionState, Conversation
from compaction_service.conversations.state import commit
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine.admit import Ledger
from compaction_service.engine.policy import Policy
from compaction_service.usage.models import Call
from compaction_service.usage.services import compaction_record
from tenants.scope import required_tenant
from tenants.selectors import tenant_get

STATUS_OF = {
    Outcome.APPLIED: Status.SUCCEEDED,
    Outcome.SKIPPED: Status.SUCCEEDED,
    Outcome.IRREDUCIBLE: Status.SUCCEEDED,
    Outcome.FAILED: Status.FAILED,
    Outcome.STALE: Status.FAILED,
    Outcome.CANCELLED: Status.CANCELLED,
}


# After these the trigger is looked at again without a gate: what made an input stale was a change of it.
AT_ONCE = (Outcome.APPLIED, Outcome.STALE)

DEFAULT_RETENTION = Policy().log_retention


class NotLive(Exception):  # noqa: N818 -- it says what is so
    """The compaction had ended already: nothing was changed."""


def end(
    compaction: Compaction, conversation: Conversation, outcome: Outcome, reason: str = "", *, follow: bool = True
) -> None:
    """Write the outcome, free the conversation, drop the work row, and start what waits (semantics 4 and 11).

    The conversation is locked by the caller and written here. Raises `NotLive` when somebody else ended it.
    `follow=False`: start nothing and plan nothing, where that may be what fails.
    """
    compaction.status, compaction.outcome, compaction.reason = STATUS_OF[outcome], outcome, reason
    compaction.finished_at = timezone.now()
    # The index is by conversation; by compaction alone every call of the tenant would be looked at.
    spent = Call.objects.filter(conversation_id=conversation.id, compaction_id=compaction.id).aggregate(
        calls=Count("id"), tokens_in=Sum("tokens_in"), tokens_out=Sum("tokens_out"), cost=Sum("cost")
    )
    compaction.llm_tokens_in = spent["tokens_in"] or 0
    compaction.llm_tokens_out = spent["tokens_out"] or 0
    compaction.cost = spent["cost"] or 0
    if not Compaction.objects.filter(id=compaction.id, status__in=LIVE).update(
        status=compaction.status, **_final(compaction)
    ):
        raise NotLive
    for drafts in ("chain", "ledger"):  # texts: what was applied has its rows
        compaction.work.pop(drafts, None)
    follow_up, compaction.follow_up = compaction.follow_up, None
    retention = compaction.policy.get("log_retention", DEFAULT_RETENTION)
    entries.withhold(compaction)
    compaction.save()
    compaction.passes.filter(status__in=(PassStatus.QUEUED, PassStatus.RUNNING)).update(
        status=PassStatus.FAILED, error=outcome
    )
    entries.retain(conversation.id, retention)
    Work.objects.filter(pk=compaction.id).delete()
    saved = (compaction.tokens_in or 0) - (compaction.tokens_out or 0) if outcome == Outcome.APPLIED else 0
    compaction_record(
        tenant_id=required_tenant(),
        conversation_id=conversation.id,
        model=conversation.model,
        outcome=outcome,
        tokens_saved=saved,
    )
    metrics.ended(outcome, Trigger(compaction.trigger))

    conversation.compaction_state = CompactionState.IDLE
    conversation.compaction_live = None
    conversation.compaction_last = compaction.id
    if follow:
        current = terms_of(conversation, tenant_get().policy)
        conversation.retry_from_tokens = None if outcome in AT_ONCE else requests.retry_gate(conversation, current)
        follower = _next(follow_up, conversation, current)
        crossing = near_limit.note(conversation, current)
    else:  # no less than what could be covered now, and some growth
        shown = conversation.tail_tokens + conversation.carried_tokens
        conversation.retry_from_tokens = shown + shown // 10 + 1
        follower, crossing = None, False
    if not commit(conversation):
        raise RuntimeError("a locked conversation changed under its lock")
    if crossing:
        near_limit.announce(conversation)
    if follower is not None:
        requests.enqueue(follower)


def _final(compaction: Compaction) -> dict[str, object]:
    """The columns the status constraint looks at together."""
    return {"outcome": compaction.outcome, "finished_at": compaction.finished_at}


def _next(follow_up: dict[str, Any] | None, conversation: Conversation, terms: Terms) -> Compaction | None:
    """The follow-up a request left behind, else what the trigger says of conversation and policy as they are now."""
    if follow_up is not None:
        wanted = dict(follow_up)
        return requests.start(
            conversation, terms, Trigger(wanted.pop("trigger")), requested_by=wanted.pop("requested_by"), **wanted
        )
    at_rest = Ledger.from_dict(conversation.ledger).rest
    return requests.automatic(conversation, terms, at_rest=at_rest, requested_by="service")

"""How a compaction ends: one place for all outcomes, what they do to the conversation, and what may follow."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from compaction_service.compactions import entries, metrics, requests, states
from compaction_service.compactions.models import Compaction, Outcome, Pass, PassStatus, Status, Trigger, Work
from compaction_service.conversations import near_limit
from compaction_service.conversations.models import CompactionState, Conversation
from compaction_service.conversations.state import commit
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine.admit import Ledger
from compaction_service.engine.policy import Policy
from compaction_service.usage.selectors import spent_on
from compaction_service.usage.services import compaction_record
from tenants.scope import required_tenant
from tenants.selectors import tenant_get
from tenants.statements import Delete, Update

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

_PASSES = Update(Pass, ("status", "error"), "compaction_id = %s and status in ('queued', 'running')")
_WORK = Delete(Work, "compaction_id = %s")


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
    spent = spent_on(conversation.id, compaction.id)
    compaction.llm_tokens_in, compaction.llm_tokens_out, compaction.cost = spent
    for drafts in ("chain", "ledger"):  # texts: what was applied has its rows
        compaction.work.pop(drafts, None)
    follow_up, compaction.follow_up = compaction.follow_up, None
    retention = compaction.policy.get("log_retention", DEFAULT_RETENTION)
    tenant = tenant_get()
    entries.withhold(compaction, tenant)
    if not states.end(compaction):
        raise NotLive
    _PASSES.run(Pass(status=PassStatus.FAILED, error=outcome), compaction.id)
    entries.retain(conversation.id, retention)
    _WORK.run(compaction.id)
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
        current = terms_of(conversation, tenant.policy)
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


def _next(follow_up: dict[str, Any] | None, conversation: Conversation, terms: Terms) -> Compaction | None:
    """The follow-up a request left behind, else what the trigger says of conversation and policy as they are now."""
    if follow_up is not None:
        wanted = dict(follow_up)
        return requests.start(
            conversation, terms, Trigger(wanted.pop("trigger")), requested_by=wanted.pop("requested_by"), **wanted
        )
    at_rest = Ledger.from_dict(conversation.ledger).rest
    return requests.automatic(conversation, terms, at_rest=at_rest, requested_by="service")

"""Asking for a compaction: the trigger of an append, the queue row, and the wake-up (semantics 4 and 11)."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from compaction_service import logs
from compaction_service.compactions import clock, redacting
from compaction_service.compactions.models import Compaction, Status, Trigger, Work
from compaction_service.compactions.plans import Unsaved, plan_for
from compaction_service.compactions.wakeup import wake
from compaction_service.conversations.models import CompactionState, Conversation
from compaction_service.conversations.terms import Terms, breakdown, trigger_tokens
from compaction_service.engine.policy import crossed
from compaction_service.ids import uuid7
from compaction_service.routers import current_alias
from tenants.scope import required_tenant

LONGEST_NAME = 100  # of who asked: a key's own name may be longer
PRIORITY = {Trigger.THRESHOLD: 0, Trigger.MANUAL: 1, Trigger.TOOL_CALL: 2, Trigger.OVERFLOW: 3}


def automatic_trigger(conversation: Conversation, terms: Terms, *, at_rest: bool) -> Trigger | None:
    """Whether the conversation as it is now asks for a compaction by itself, and why (semantics 4).

    `at_rest`: it ends with a completed response or a closed tool exchange. An unanswered request waits for its response
    unless the context is over window - reserve.
    """
    if not terms.policy.enabled or conversation.compaction_live is not None:
        return None
    limits = terms.limits
    if sum(breakdown(conversation, terms).values()) > limits.window - limits.reserve:
        return Trigger.OVERFLOW if not at_rest else Trigger.THRESHOLD
    if at_rest and crossed(terms.policy, limits, trigger_tokens(conversation, terms)):
        return Trigger.THRESHOLD
    return None


def automatic(
    conversation: Conversation, terms: Terms, *, at_rest: bool, requested_by: str, unsaved: Unsaved | None = None
) -> Compaction | None:
    """The compaction an append, a PATCH or the end of another one causes, marked live on the conversation, or None.

    `unsaved`: what the append changes.
    """
    trigger = automatic_trigger(conversation, terms, at_rest=at_rest)
    if trigger is None or _gated(conversation, terms, unsaved):
        return None
    return start(conversation, terms, trigger, requested_by=requested_by)


def _gated(conversation: Conversation, terms: Terms, unsaved: Unsaved | None) -> bool:
    """After an end without success nothing is tried until more can be covered (semantics 4).

    No more can go than the tail and what is carried, so rows are read only once that is enough.
    """
    gate = conversation.retry_from_tokens
    if gate is None:
        return False
    most = conversation.tail_tokens + conversation.carried_tokens
    return most < gate or _coverable(conversation, terms, unsaved) < gate


def start(
    conversation: Conversation, terms: Terms, trigger: Trigger, *, requested_by: str, **fields: Any
) -> Compaction:
    """A queued compaction, not yet saved, marked live on the conversation: save both in one transaction (`enqueue`)."""
    fields = redacting.asked({"policy": terms.policy.as_dict(), **fields})
    policy = fields.pop("policy")
    fields.setdefault("request_id", logs.request_id.get() or "")
    compaction = Compaction(
        id=uuid7(),
        tenant_id=conversation.tenant_id,
        conversation=conversation,
        status=Status.QUEUED,
        trigger=trigger,
        requested_by=requested_by[:LONGEST_NAME],
        strategy=policy["strategy"],
        policy=policy,
        **fields,
    )
    conversation.compaction_live = compaction.id
    conversation.compaction_state = CompactionState.QUEUED
    conversation.compaction_trigger = trigger
    return compaction


def enqueue(compaction: Compaction) -> None:
    """Save a queued compaction with its work row, and wake a worker after the commit."""
    compaction.save(force_insert=True)
    Work.objects.create(
        compaction_id=compaction.id,
        tenant_id=required_tenant(),
        priority=PRIORITY[Trigger(compaction.trigger)],
        next_at=clock.later(),
    )
    transaction.on_commit(wake, using=current_alias.get())


def retry_gate(conversation: Conversation, terms: Terms) -> int:
    """The coverable tokens at which threshold tries again: 10 % of the limit more than now (semantics 4)."""
    return _coverable(conversation, terms) + max(1, terms.raw(terms.limits.limit) // 10)


def _coverable(conversation: Conversation, terms: Terms, unsaved: Unsaved | None = None) -> int:
    """Raw tokens of messages that a compaction would take out of the context now; 0 where there are none.

    Not those of its span: a long request in it may stay carried, and one that is carried may go, its successor known.
    """
    return plan_for(conversation, terms, unsaved=unsaved).plan.freed_tokens

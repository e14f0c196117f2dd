"""What a client or a reviewer may do: ask for a compaction, look ahead, cancel, review. (Revert: reverting.py.)"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import F, Value
from django.db.models.functions import Greatest

from compaction_service.api.errors import ApiError
from compaction_service.compactions import redacting, requests
from compaction_service.compactions.ending import NotLive, end
from compaction_service.compactions.models import LIVE, Compaction, Outcome, Review, Status, Trigger, Work
from compaction_service.compactions.plans import Planned, plan_for
from compaction_service.compactions.reverting import compaction_get, compaction_locked, compaction_revert
from compaction_service.compactions.starting import note_floor
from compaction_service.conversations import calibration
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.selectors import conversation_get
from compaction_service.conversations.state import commit
from compaction_service.conversations.terms import Terms, breakdown, capped, terms_of
from tenants.models import Tenant

__all__ = [
    "Asked",
    "compaction_cancel",
    "compaction_preview",
    "compaction_request",
    "compaction_revert",
    "compaction_review",
    "join",
]


@dataclass(frozen=True)
class Asked:
    """A request for a compaction. `policy`: fields of this call only."""

    trigger: Trigger
    requested_by: str
    focus: str = ""
    instructions: str = ""
    up_to: int | None = None
    before: int | None = None  # the message that calls the compact tool: its exchange, and all after it, stays
    policy: Mapping[str, Any] = field(default_factory=dict)
    reported_tokens: int | None = None  # by the provider that refused the context
    reported_max: int | None = None  # the most it takes, by its own word
    request_id: str = ""  # of the HTTP request, for logs

    def parameters(self, terms: Terms) -> dict[str, Any]:
        return {
            "focus": self.focus,
            "focus_from": self.before,
            "instructions": self.instructions,
            "up_to": self.up_to,
            "window_cap": self.reported_max,
            "request_id": self.request_id,
            "policy": terms.policy.as_dict(),
            "work": {} if self.before is None else {"before": self.before},
        }


def compaction_preview(tenant: Tenant, ref: str, asked: Asked) -> tuple[Conversation, Terms, Planned]:
    """The plan a request would get now. Writes nothing. Raises as `compaction_request`."""
    conversation = conversation_get(ref)
    _check_up_to(conversation, asked)
    terms = capped(terms_of(conversation, tenant.policy, call=asked.policy), asked.reported_max)
    return conversation, terms, plan_for(conversation, terms, up_to=asked.up_to)


def compaction_request(tenant: Tenant, ref: str, asked: Asked) -> tuple[Compaction, bool]:
    """Queue a compaction, or join the live one (second value True); one with nothing to cover ends at once.

    Raises `ApiError` 404, and 400 for an `up_to` beyond the last position.
    """
    conversation = conversation_get(ref, lock=True)
    _check_up_to(conversation, asked)
    _learn_overflow(conversation, tenant, asked)
    terms = capped(terms_of(conversation, tenant.policy, call=asked.policy), asked.reported_max)
    if conversation.compaction_live is not None:
        _write(conversation)
        return join(conversation.compaction_live, terms, asked), True
    planned = plan_for(conversation, terms, up_to=asked.up_to)
    compaction = requests.start(
        conversation, terms, asked.trigger, requested_by=asked.requested_by, **asked.parameters(terms)
    )
    parts = breakdown(conversation, terms)
    compaction.context_before = {"tokens": sum(parts.values()), "breakdown": parts}
    if planned.plan.irreducible is not None:
        note_floor(compaction, planned, terms)
        compaction.save(force_insert=True)
        end(compaction, conversation, Outcome.IRREDUCIBLE, planned.plan.irreducible)
        return compaction, False
    _write(conversation)
    requests.enqueue(compaction)
    return compaction, False


def _write(conversation: Conversation) -> None:
    if not commit(conversation):
        raise RuntimeError("a locked conversation changed under its lock")


def _check_up_to(conversation: Conversation, asked: Asked) -> None:
    if asked.up_to is not None and not 1 <= asked.up_to <= conversation.last_position:
        raise ApiError(400, "out_of_range", f"Must be a position from 1 to {conversation.last_position}.", attr="up_to")


def join(live_id: uuid.UUID, terms: Terms, asked: Asked) -> Compaction:
    """A second request joins the live one: a queued one takes its parameters, a running one keeps it to follow.

    Under the conversation's lock.
    """
    live = compaction_get(live_id)
    parameters = redacting.asked(asked.parameters(terms))
    if live.status == Status.QUEUED:
        Compaction.objects.filter(id=live.id, status=Status.QUEUED).update(strategy=terms.policy.strategy, **parameters)
    else:
        follow_up = {"trigger": asked.trigger.value, "requested_by": asked.requested_by, **parameters}
        Compaction.objects.filter(id=live.id).update(follow_up=follow_up)
    Work.objects.filter(pk=live.id).update(priority=Greatest(F("priority"), Value(requests.PRIORITY[asked.trigger])))
    live.refresh_from_db()
    return live


def _learn_overflow(conversation: Conversation, tenant: Tenant, asked: Asked) -> None:
    """The provider refused the context: its own number raises the factor, never lowers it (semantics 4)."""
    if asked.trigger != Trigger.OVERFLOW or asked.reported_tokens is None:
        return
    terms = terms_of(conversation, tenant.policy)
    counted = sum(breakdown(conversation, terms).values())
    if counted and asked.reported_tokens > counted:
        # At most what a report with an append could come to, however often it is said.
        raised = terms.factor * asked.reported_tokens / counted
        conversation.factor = max(terms.factor, min(calibration.HIGHEST, raised))
        conversation.calibrated = True


def compaction_cancel(compaction_id: uuid.UUID) -> Compaction:
    """Cancel a live compaction; its worker's result will be refused. `ApiError` 404, or 409 when it has ended."""
    compaction, conversation = compaction_locked(compaction_id)
    if compaction.status not in LIVE:
        raise ApiError(409, "not_live", f"It has ended: {compaction.outcome}.")
    compaction.follow_up = None
    try:
        end(compaction, conversation, Outcome.CANCELLED, "requested")
    except NotLive:
        raise ApiError(409, "not_live", "It has just ended.") from None
    return compaction


def compaction_review(compaction_id: uuid.UUID, review: Review) -> None:
    """What a reviewer thinks of it."""
    Compaction.objects.filter(id=compaction_id).update(review=review)

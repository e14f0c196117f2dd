"""How a compaction ends: one place for all outcomes, what they do to the conversation, and what may follow."""

from __future__ import annotations

from django.db.models import Count, Sum
from django.utils import timezone

from compaction_service.compactions import requests
from compaction_service.compactions.models import LIVE, Compaction, Outcome, Status, Trigger, Work
from compaction_service.conversations.models import CompactionState, Conversation
from compaction_service.conversations.state import commit
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine.admit import Ledger
from compaction_service.usage.models import Call
from tenants.selectors import tenant_get

STATUS_OF = {
    Outcome.APPLIED: Status.SUCCEEDED,
    Outcome.SKIPPED: Status.SUCCEEDED,
    Outcome.IRREDUCIBLE: Status.SUCCEEDED,
    Outcome.FAILED: Status.FAILED,
    Outcome.STALE: Status.FAILED,
    Outcome.CANCELLED: Status.CANCELLED,
}


class NotLive(Exception):  # noqa: N818 -- it says what is so
    """The compaction had ended already: nothing was changed."""


def end(compaction: Compaction, conversation: Conversation, terms: Terms, outcome: Outcome, reason: str = "") -> None:
    """Write the outcome, free the conversation, drop the work row, and start what waits (semantics 4 and 11).

    The conversation is locked by the caller and written here. Raises `NotLive` when somebody else ended it.
    """
    compaction.status, compaction.outcome, compaction.reason = STATUS_OF[outcome], outcome, reason
    compaction.finished_at = timezone.now()
    spent = Call.objects.filter(compaction_id=compaction.id).aggregate(
        calls=Count("id"), tokens_in=Sum("tokens_in"), tokens_out=Sum("tokens_out"), cost=Sum("cost")
    )
    compaction.llm_tokens_in = spent["tokens_in"] or 0
    compaction.llm_tokens_out = spent["tokens_out"] or 0
    compaction.cost = spent["cost"] or 0
    if not Compaction.objects.filter(id=compaction.id, status__in=LIVE).update(
        status=compaction.status, **_final(compaction)
    ):
        raise NotLive
    compaction.save()
    Work.objects.filter(pk=compaction.id).delete()

    conversation.compaction_state = CompactionState.IDLE
    conversation.compaction_live = None
    conversation.compaction_last = compaction.id
    # A stale one says nothing about what a compaction could do: the input has changed since (semantics 4).
    gated = outcome not in (Outcome.APPLIED, Outcome.STALE)
    conversation.retry_from_tokens = requests.retry_gate(conversation, terms) if gated else None
    follower = _next(compaction, conversation)
    if not commit(conversation):
        raise RuntimeError("a locked conversation changed under its lock")
    if follower is not None:
        requests.enqueue(follower)


def _final(compaction: Compaction) -> dict[str, object]:
    """The columns the status constraint looks at together."""
    return {"outcome": compaction.outcome, "finished_at": compaction.finished_at}


def _next(compaction: Compaction, conversation: Conversation) -> Compaction | None:
    """The follow-up a request left behind, else what the trigger says of conversation and policy as they are now."""
    terms = terms_of(conversation, tenant_get().policy)
    if compaction.follow_up is not None:
        wanted = dict(compaction.follow_up)
        return requests.start(
            conversation, terms, Trigger(wanted.pop("trigger")), requested_by=wanted.pop("requested_by"), **wanted
        )
    at_rest = Ledger.from_dict(conversation.ledger).rest
    return requests.automatic(conversation, terms, at_rest=at_rest, requested_by="service")

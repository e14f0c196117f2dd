"""Erasing messages: one, or a position and everything after it (semantics 9).

Both run under the conversation's lock, in one transaction: the messages, the summaries and log texts made of them, the
stored answers that may show them, and the state that follows. Positions are never handed out again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import F, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from compaction_service.api import idempotency
from compaction_service.api.errors import ApiError
from compaction_service.compactions import requests, staling
from compaction_service.compactions.models import Compaction
from compaction_service.conversations import masking, near_limit, thinking
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.recounting import count_first, recount
from compaction_service.conversations.rows import draft, with_savings
from compaction_service.conversations.selectors import conversation_get, exchange_of, message_get, messages_of
from compaction_service.conversations.state import commit
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine import formats, jsontext
from compaction_service.engine.admit import Ledger
from tenants.models import Tenant

# What is left of an erased message: its position, its role, its turn and its times.
NOTHING: dict[str, Any] = {
    "body": "",
    "calls": [],
    "answers": [],
    "request": False,
    "tokens": 0,
    "chars": 0,
    "extra_tokens": 0,
    "thinking_tokens": 0,
    "thinking_chars": 0,
    "masked": [],
    "pinned": False,
    "abandoned": False,
    "digest": b"",
    "external_id": None,
    "occurred_at": None,
    "metadata": {},
}


@dataclass(frozen=True)
class Erasure:
    """What was erased, as the receipt says it, and the conversation after it."""

    conversation: Conversation
    terms: Terms
    erased_at: datetime
    counts: dict[str, int]
    compaction: Compaction | None  # the live one


def message_erase(*, tenant: Tenant, ref: str, position: int) -> Erasure:
    """Erase one message. One that is part of an exchange leaves a `[deleted]` stub, so that the exchange stays valid.

    Raises `ApiError` 404, also for a message erased before.
    """
    conversation = conversation_get(ref, lock=True)
    message = message_get(conversation, position)
    terms = terms_of(conversation, tenant.policy)
    now = timezone.now()
    stub = _stub(conversation, terms, message) if _in_exchange(conversation, message) else {}
    messages_of(conversation.id).filter(position=position).update(**{**NOTHING, **stub, "erased_at": now})
    conversation.message_count -= 1
    conversation.stored_tokens -= message.tokens
    counts = {"messages": 1, "stubs_left": 1 if stub else 0}
    return _settle(conversation, terms, _Gone(position, position, now), counts)


def conversation_rewind(*, tenant: Tenant, ref: str, position: int) -> Erasure:
    """Erase the message at `position` and everything after it. No stubs: an exchange cut in two has open calls again.

    The next message gets `last_position` + 1, which does not go back. Raises `ApiError` 404, 400 for a position that
    was never handed out.
    """
    conversation = conversation_get(ref, lock=True)
    check_position(conversation, position, attr="from")
    terms = terms_of(conversation, tenant.policy)
    now = timezone.now()
    found = messages_of(conversation.id).filter(position__gte=position)
    originals = found.filter(erased_at=None)
    tokens = originals.aggregate(tokens=Sum("tokens"))["tokens"] or 0
    count = originals.count()
    found.update(**NOTHING, erased_at=Coalesce(F("erased_at"), now))
    conversation.message_count -= count
    conversation.stored_tokens -= tokens
    conversation.turn_count = turn_at(conversation, position - 1)
    gone = _Gone(position, conversation.last_position, now)
    return _settle(conversation, terms, gone, {"messages": count, "stubs_left": 0})


def check_position(conversation: Conversation, position: int, *, attr: str) -> None:
    """Raises `ApiError` 400 unless the position was handed out once."""
    if not 1 <= position <= conversation.last_position:
        last = conversation.last_position
        detail = f"Must be a position from 1 to {last}." if last else "The conversation has no messages yet."
        raise ApiError(400, "out_of_range", detail, attr=attr)


def turn_at(conversation: Conversation, position: int) -> int:
    """How many user requests had been made by this position, erased ones included: numbers of turns stay."""
    found = Message.objects.filter(conversation_id=conversation.id, position__lte=position)
    return found.order_by("-position").values_list("turn", flat=True).first() or 0


@dataclass(frozen=True)
class _Gone:
    first: int
    last: int
    at: datetime


def _settle(conversation: Conversation, terms: Terms, gone: _Gone, counts: dict[str, int]) -> Erasure:
    """All that follows from rows that were erased; writes the conversation, and may start a compaction.

    Over its limit again, the conversation is compacted again: that is the rebuild. Until then its context is degraded
    where it does not fit.
    """
    covered_to = conversation.covered_to
    counts |= {"summaries": staling.nodes_stale(conversation, gone.first, gone.last)}
    if conversation.covered_to < covered_to or gone.last < conversation.last_position:
        thinking.prefix_changed(conversation)
    count_first(conversation, terms.counter)
    recount(conversation, terms)
    if conversation.covered_to < covered_to:
        masking.look_again(conversation)
    conversation.version += 1
    conversation.retry_from_tokens = None
    if not staling.run_stop(conversation, gone.first):
        at_rest = Ledger.from_dict(conversation.ledger).rest
        compaction = requests.automatic(conversation, terms, at_rest=at_rest, requested_by="edit")
        crossing = near_limit.note(conversation, terms)
        if not commit(conversation):
            raise RuntimeError("a locked conversation changed under its lock")
        if crossing:
            near_limit.announce(conversation)
        if compaction is not None:
            requests.enqueue(compaction)
    counts["compactions"] = staling.texts_erase(conversation, gone.first)
    staling.focus_erase(conversation, gone.first, gone.last)
    counts["idempotency_answers"] = idempotency.forget_conversation(conversation.id)
    live = conversation.compaction_live
    compaction = None if live is None else Compaction.objects.get(id=live)
    return Erasure(conversation, terms, gone.at, counts, compaction)


def _in_exchange(conversation: Conversation, message: Message) -> bool:
    """It makes calls or answers some, or lies between the two."""
    return bool(message.calls or message.answers) or len(exchange_of(conversation, message.position)) > 1


def _stub(conversation: Conversation, terms: Terms, message: Message) -> dict[str, Any]:
    """The columns of what stays: ids and names of calls and results, nothing else. It asks for nothing any more."""
    fmt = formats.get(conversation.format)
    made = draft(fmt, terms.counter, fmt.deleted_stub(jsontext.loads(message.body)), "message")
    names = {answer[0]: answer[1] for answer in message.answers}
    named = tuple(replace(answer, name=names.get(answer.id)) for answer in made.facts.answers)
    facts = with_savings(fmt, terms.counter, made, replace(made.facts, answers=named))
    return {
        "body": made.text,
        "calls": [[call.id, call.name] for call in facts.calls],
        "answers": [[a.id, a.name, a.chars, a.saving, a.saving_chars] for a in facts.answers],
        "tokens": made.tokens,
        "chars": made.chars,
        "extra_tokens": message.extra_tokens,
        "abandoned": message.abandoned,
    }

"""A conversation's running state anew from what is stored, after messages were erased or copied (semantics 9)."""

from __future__ import annotations

from django.db.models import Q

from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.rows import PLANNING_FIELDS, entry_of
from compaction_service.conversations.selectors import active_nodes, messages_of, shown_entries
from compaction_service.conversations.state import measure, synthetic_tokens
from compaction_service.conversations.terms import Terms
from compaction_service.engine import formats, jsontext
from compaction_service.engine.admit import ledger_of
from compaction_service.engine.exchanges import pair
from compaction_service.engine.types import Entry
from compaction_service.tokens.messages import Counter


def recount(conversation: Conversation, terms: Terms) -> None:
    """Ledger and sums, from `last_position`, `covered_to`, `carried` and the rows. The caller saves the row.

    Calls that lost their results are open again; those of a message marked `abandoned` stay given up, whatever made
    it so: an abandonment is never taken back.
    """
    fmt = formats.get(conversation.format)
    newest = _newest(conversation)
    ledger = ledger_of(newest, conversation.last_position)
    conversation.ledger = ledger.as_dict()
    conversation.pending_tokens = synthetic_tokens(fmt, terms.counter, ledger.open_calls) if ledger.interrupted else 0
    if newest and newest[0].abandoned:
        given_up = pair(newest).unanswered.get(0, ())
        Message.objects.filter(conversation_id=conversation.id, position=newest[0].position).update(
            extra_tokens=synthetic_tokens(fmt, terms.counter, tuple(given_up))
        )
    shown = shown_entries(conversation, bodies=False)
    measure(conversation, shown.carried, shown.tail, active_nodes(conversation))


def count_first(conversation: Conversation, counter: Counter) -> None:
    """Count the first message with what its format shows before it: an erasure may have made another one the first."""
    fmt = formats.get(conversation.format)
    first = messages_of(conversation.id).order_by("position").first()
    if first is None:
        return
    body = jsontext.loads(first.body)
    opening = fmt.opening(body)
    if opening is None:
        return
    tokens = counter.message(fmt.name, body) + counter.message(fmt.name, opening)
    Message.objects.filter(conversation_id=conversation.id, position=first.position).update(tokens=tokens)
    if first.erased_at is None:
        conversation.stored_tokens += tokens - first.tokens


def _newest(conversation: Conversation) -> list[Entry]:
    """The messages a ledger depends on: from the newest with calls, else from the newest of the assistant, else all."""
    found = messages_of(conversation.id).order_by("-position")
    calling = found.exclude(calls=[]).first() or found.filter(role="assistant").first()
    start = Q(position__gte=calling.position) if calling else Q()
    return [entry_of(row) for row in found.filter(start).reverse().values(*PLANNING_FIELDS)]

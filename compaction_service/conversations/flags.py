"""What a client may change of a stored message: pin, abandon, metadata. Its content never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction_service.api.errors import ApiError
from compaction_service.conversations import masking, near_limit, thinking
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.rows import entry_of_row
from compaction_service.conversations.selectors import (
    active_nodes,
    conversation_get,
    exchange_of,
    kept_requests,
    message_get,
    shown_entries,
)
from compaction_service.conversations.state import commit, measure, synthetic_tokens
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine import formats
from compaction_service.engine.admit import Ledger, abandon
from compaction_service.engine.planning import carried_after_pin
from tenants.models import Tenant


def flags_set(*, tenant: Tenant, ref: str, position: int, changes: Mapping[str, Any]) -> Message:
    """Set `pinned`, `abandoned` (true only) or `metadata` of one message."""
    conversation = conversation_get(ref, lock=True)
    message = message_get(conversation, position)
    terms = terms_of(conversation, tenant.policy)
    if "metadata" in changes:
        message.metadata = dict(changes["metadata"])
    if changes.get("abandoned") and not message.abandoned:
        _abandon(conversation, terms, message)
    repinned = "pinned" in changes and changes["pinned"] != message.pinned
    if repinned:
        message.pinned = changes["pinned"]
        if message.pinned and message.masked:
            _unmask(conversation, message)
    Message.objects.filter(conversation_id=conversation.id, position=position).update(
        metadata=message.metadata,
        pinned=message.pinned,
        masked=message.masked,
        abandoned=message.abandoned,
        extra_tokens=message.extra_tokens,
    )
    if repinned:
        conversation.retry_from_tokens = None
        if position <= conversation.covered_to:
            _carry(conversation, terms, position)
        elif not message.pinned:
            masking.look_again(conversation, position)
    conversation.version += 1
    crossing = near_limit.note(conversation, terms)
    if not commit(conversation):
        raise RuntimeError("a locked conversation changed under its lock")
    if crossing:
        near_limit.announce(conversation)
    return message


def _abandon(conversation: Conversation, terms: Terms, message: Message) -> None:
    """Close the open calls of a message: the context shows a synthetic result for each (semantics 1)."""
    ledger, calls = abandon(Ledger.from_dict(conversation.ledger), message.position)
    if not calls:
        raise ApiError(409, "no_open_call", "This message has no open call.", attr="abandoned")
    fmt = formats.get(conversation.format)
    message.abandoned = True
    message.extra_tokens = synthetic_tokens(fmt, terms.counter, calls)
    conversation.tail_tokens += message.extra_tokens - conversation.pending_tokens
    conversation.pending_tokens = 0
    conversation.ledger = ledger.as_dict()


def _unmask(conversation: Conversation, message: Message) -> None:
    """A pinned message is shown verbatim, its results too. (A covered one is measured with what is carried.)"""
    answers = entry_of_row(message).facts.answers
    masked, message.masked = message.masked, []
    if message.position > conversation.covered_to:
        conversation.tail_tokens += sum(answers[index].saving for index in masked)
        conversation.shown_chars += sum(answers[index].saving_chars for index in masked)
        thinking.leave_out(conversation)


def _carry(conversation: Conversation, terms: Terms, position: int) -> None:
    """Show or hide the exchange of a covered message after its pin changed (semantics 1, carried)."""
    exchange = exchange_of(conversation, position)
    requests = kept_requests(conversation, terms)
    carried = list(carried_after_pin(conversation.carried, exchange, requests=requests))
    if carried != conversation.carried:
        conversation.carried = carried
        thinking.prefix_changed(conversation)
    shown = shown_entries(conversation, bodies=False)
    nodes = active_nodes(conversation)
    measure(conversation, shown.carried, shown.tail, nodes)

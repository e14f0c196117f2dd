"""Reading conversations and what a context is projected from."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from compaction_service.api.errors import ApiError
from compaction_service.compactions.models import Summary as Node
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.rows import ENTRY_FIELDS, PLANNING_FIELDS, entry_from, entry_of
from compaction_service.conversations.state import thoughtless
from compaction_service.conversations.terms import Terms
from compaction_service.engine import jsontext
from compaction_service.engine.exchanges import exchange_at, group
from compaction_service.engine.projection import Parts
from compaction_service.engine.types import Entry, Summary
from tenants.statements import Select

# Read with every append and every context.
_BY_ID = Select(Conversation, "id = %s"), Select(Conversation, "id = %s", ending="for update")
_BY_EXTERNAL_ID = (
    Select(Conversation, "external_id = %s"),
    Select(Conversation, "external_id = %s", ending="for update"),
)
SHOWN = "conversation_id = %s and (erased_at is null or body <> '') and "  # `messages_of`, of more conditions
_TAIL = SHOWN + "position > %s"
_TAIL_AND_CARRIED = SHOWN + "(position > %s or position = any(%s))"


def _shown(names: Sequence[str]) -> tuple[Select[Message], Select[Message]]:
    return (
        Select(Message, _TAIL, ending="order by position", names=names),
        Select(Message, _TAIL_AND_CARRIED, ending="order by position", names=names),
    )


_WITH_BODIES, _WITHOUT_BODIES = _shown(ENTRY_FIELDS), _shown(PLANNING_FIELDS)


def _chain(**given: Any) -> Select[Node]:
    return Select(Node, "conversation_id = %s and state = 'active'", ending="order by from_position", **given)


_NODES, _SUMMARIES = _chain(), _chain(names=("id", "text", "tokens", "from_position", "to_position", "level"))


def by_ref(ref: str) -> Q:
    """The condition for an id or `ext:<external_id>`. A string that is neither finds nothing."""
    if "\0" in ref:  # PostgreSQL cannot be asked about it
        return Q(pk__in=[])
    if ref.startswith("ext:"):
        return Q(external_id=ref[4:])
    identifier = _uuid(ref)
    return Q(pk__in=[]) if identifier is None else Q(id=identifier)


def conversation_get(ref: str, *, lock: bool = False) -> Conversation:
    """One conversation of the tenant in scope, locked for update if asked. Raises `ApiError` 404."""
    found: list[Conversation] = []
    if "\0" in ref:  # PostgreSQL cannot be asked about it
        pass
    elif ref.startswith("ext:"):
        found = _BY_EXTERNAL_ID[lock].rows(ref[4:])
    elif (identifier := _uuid(ref)) is not None:
        found = _BY_ID[lock].rows(identifier)
    if not found:
        raise ApiError(404, "not_found", "No such conversation.")
    return found[0]


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def message_get(conversation: Conversation, position: int) -> Message:
    """One message that is not erased. Raises `ApiError` 404."""
    found = Message.objects.filter(conversation_id=conversation.id, position=position, erased_at=None).first()
    if found is None:
        raise ApiError(404, "not_found", "No message at this position.")
    return found


def messages_of(conversation_id: Any) -> QuerySet[Message]:
    """The messages a context is made of: all but the erased ones; where such a one left a stub, the stub."""
    return Message.objects.filter(Q(erased_at=None) | ~Q(body=""), conversation_id=conversation_id)


@dataclass(frozen=True)
class Shown:
    """The messages a context shows: carried ones and the live tail, in order."""

    carried: tuple[Entry, ...]
    tail: tuple[Entry, ...]


def shown_entries(conversation: Conversation, *, bodies: bool) -> Shown:
    """What the context shows of the stored messages, in one query; without bodies for planning."""
    tail, tail_and_carried = _WITH_BODIES if bodies else _WITHOUT_BODIES
    if conversation.carried:
        rows = tail_and_carried.tuples(conversation.id, conversation.covered_to, conversation.carried)
    else:
        rows = tail.tuples(conversation.id, conversation.covered_to)
    entries = thoughtless(conversation, [entry_from(*row) for row in rows])
    cut = next((i for i, e in enumerate(entries) if e.position > conversation.covered_to), len(entries))
    return Shown(tuple(entries[:cut]), tuple(entries[cut:]))


def exchange_of(conversation: Conversation, position: int) -> list[Entry]:
    """The whole exchange of a stored message, without bodies. Reads from one assistant message to the next.

    An assistant message closes the calls before it, so no exchange goes on past the next one (semantics 1).
    """
    messages = messages_of(conversation.id)
    spoken = messages.filter(role="assistant").values_list("position", flat=True)
    start = spoken.filter(position__lte=position).order_by("-position").first() or 1
    end = spoken.filter(position__gt=position).order_by("position").first() or conversation.last_position + 1
    rows = messages.filter(position__gte=start, position__lt=end).order_by("position").values(*PLANNING_FIELDS)
    entries = [entry_of(row) for row in rows]
    exchanges = group(entries)
    index = bisect_left(entries, position, key=lambda entry: entry.position)
    found = exchanges[exchange_at(exchanges, index)]
    return entries[found.start : found.end]


def kept_requests(conversation: Conversation, terms: Terms) -> set[int]:
    """Positions of the first and the last user request, as far as the policy shows them, pinned or not."""
    asked = Message.objects.filter(conversation_id=conversation.id, request=True).values_list("position", flat=True)
    first = asked.order_by("position").first() if terms.policy.keep_first_user_request else None
    last = asked.order_by("-position").first() if terms.policy.keep_last_user_request else None
    return {position for position in (first, last) if position is not None}


def active_nodes(conversation: Conversation) -> list[Node]:
    """The whole nodes of the chain, oldest first."""
    return _NODES.rows(conversation.id)


def summaries_of(conversation: Conversation) -> tuple[Summary, ...]:
    """The chain as a context needs it, oldest first."""
    if not conversation.summary_tokens:
        return ()
    return tuple(Summary(str(identifier), *rest) for identifier, *rest in _SUMMARIES.tuples(conversation.id))


def parts_of(conversation: Conversation, summary_prefix: str) -> Parts:
    """All a context is rendered from: two queries besides the conversation's own."""
    shown = shown_entries(conversation, bodies=True)
    return Parts(
        system=None if conversation.system is None else jsontext.loads(conversation.system),
        tools=None if conversation.tools is None else jsontext.loads(conversation.tools),
        summaries=summaries_of(conversation),
        carried=shown.carried,
        tail=shown.tail,
        summary_prefix=summary_prefix,
    )

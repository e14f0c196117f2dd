"""Appending: read, count, admit, mask, trigger, and write all or nothing (semantics 1, 3, 4, 6).

The conversation is read without a lock, its new state is computed, and the row is updated by compare-and-swap on its
`revision`. Who loses reads again under the row's lock, so nobody is refused for having been beaten. The row is locked
from that update to the commit only, never while a message is counted for the first time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from compaction_service.api.errors import ApiError
from compaction_service.compactions import requests, tool_calls
from compaction_service.compactions.models import Compaction
from compaction_service.compactions.plans import Unsaved
from compaction_service.compactions.services import join
from compaction_service.conversations import calibration, masking, near_limit, quota, recounts, selectors, thinking
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.rows import (
    Details,
    Draft,
    draft,
    entry_of_row,
    message_of,
    with_opening,
    with_savings,
)
from compaction_service.conversations.state import commit, synthetic_tokens
from compaction_service.conversations.system import system_set
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine import admit as admission
from compaction_service.engine import formats
from compaction_service.engine.admit import Admission, Ledger
from compaction_service.engine.formats.base import Format
from compaction_service.engine.types import JSON, MessageError
from compaction_service.usage.services import day_add
from tenants.models import Tenant
from tenants.statements import Insert

_INSERT = Insert(Message)


@dataclass(frozen=True)
class AppendRequest:
    """A batch as the client sent it. `details` is empty or as long as `messages`."""

    messages: Sequence[JSON]
    details: Sequence[Details] = ()
    usage: dict[str, Any] | None = None
    context_version: str | None = None
    expected_last_position: int | None = None


@dataclass(frozen=True)
class Appended:
    conversation: Conversation
    terms: Terms
    messages: list[Message]
    compaction: Compaction | None


@dataclass
class Batch:
    """What was read and counted once, whatever the number of attempts."""

    request: AppendRequest
    drafts: dict[int, Draft] = field(default_factory=dict)

    def read(self, fmt: Format, terms: Terms, first: int) -> list[Draft]:
        """The drafts of the messages from index `first` on."""
        for index, message in enumerate(self.request.messages[first:], first):
            if index not in self.drafts:
                self.drafts[index] = draft(fmt, terms.counter, message, f"messages.{index}")
        return [self.drafts[index] for index in range(first, len(self.request.messages))]

    def details(self, first: int) -> list[Details]:
        count = len(self.request.messages)
        return list(self.request.details or [Details()] * count)[first:]


def messages_append(*, tenant: Tenant, ref: str, request: AppendRequest) -> Appended:
    """Append a batch, all or none. Runs inside the tenant's scope.

    Raises `ApiError` (404; 409 `position_conflict` with `last_position`) and `MessageError`; nothing is stored then.
    """
    batch = Batch(request)
    done = None
    for lock in (False, True):
        done = append_once(selectors.conversation_get(ref, lock=lock), tenant, batch)
        if done is not None:
            break
    if done is None:
        raise RuntimeError("a locked conversation changed under its lock")
    return done


def append_once(conversation: Conversation, tenant: Tenant, batch: Batch) -> Appended | None:
    """One attempt on the row as read; None when somebody else wrote it since."""
    _check_expected(conversation, batch.request.expected_last_position)
    terms = terms_of(conversation, tenant.policy)
    seen = calibration.observed(conversation, terms, batch.request.usage, batch.request.context_version)
    if seen is not None:
        terms = calibration.learn(conversation, terms, seen)
    fmt = formats.get(conversation.format)
    first, changed = _take_system(conversation, terms, fmt, batch.request.messages)
    drafts = batch.read(fmt, terms, first)
    quota.check_messages(tenant, [made.text for made in drafts], first)
    admitted = admission.admit(Ledger.from_dict(conversation.ledger), [d.facts for d in drafts], first=first)
    rows = _rows(conversation, terms, fmt, admitted, drafts, batch.details(first))
    quota.check_tokens(tenant, sum(row.tokens for row in rows))
    extra = _abandon(conversation, terms, fmt, admitted, rows)
    thinking.appended(conversation, rows, batch.request.context_version)
    masks = masking.forward(conversation, terms, rows)
    if masks:
        thinking.leave_out(conversation, rows)
    conversation.version += 1
    crossing = near_limit.note(conversation, terms)
    asked = tool_calls.asked_for(conversation, fmt, drafts)
    unsaved = Unsaved([entry_of_row(row) for row in rows], masks, extra)
    compaction = tool_calls.start(conversation, terms, asked) or requests.automatic(
        conversation, terms, at_rest=admitted.rest, requested_by="append", unsaved=unsaved
    )
    live = conversation.compaction_live

    if not commit(conversation, *changed):
        return None
    _INSERT.run(rows)
    masking.store(conversation, masks)
    for position, tokens in extra.items():
        Message.objects.filter(conversation_id=conversation.id, position=position).update(
            abandoned=True, extra_tokens=tokens
        )
    day_add(
        tenant_id=tenant.id,
        conversation_id=conversation.id,
        model=conversation.model,
        messages=len(rows),
        tokens=sum(row.tokens for row in rows),
    )
    if compaction is not None:
        requests.enqueue(compaction)
    elif asked is not None and live is not None:
        compaction = join(live, terms, asked)
    if crossing:
        near_limit.announce(conversation)
    if seen is not None:
        calibration.share(terms, seen)
    if terms.foreign:
        recounts.enqueue(conversation)
    return Appended(conversation, terms, rows, compaction)


def _check_expected(conversation: Conversation, expected: int | None) -> None:
    if expected is not None and expected != conversation.last_position:
        raise ApiError(
            409,
            "position_conflict",
            f"The last position is {conversation.last_position}, not {expected}: read what was appended since.",
            attr="expected_last_position",
            extra={"last_position": conversation.last_position},
        )


def _take_system(
    conversation: Conversation, terms: Terms, fmt: Format, messages: Sequence[JSON]
) -> tuple[int, tuple[str, ...]]:
    """A leading system message of an empty conversation becomes its `system` (semantics 1).

    Returns how many messages that takes, and which columns changed.
    """
    if conversation.last_position or not messages:
        return 0, ()
    fmt.read(messages[0], "messages.0")
    system = fmt.leading_system(messages[0])
    if system is None:
        return 0, ()
    if conversation.system is not None:
        raise MessageError(
            "system_given_twice",
            "The conversation has a `system` already: leave out the leading system message, or PATCH `system`.",
            "messages.0.role",
        )
    system_set(conversation, terms, fmt, system)
    return 1, ("system",)


def _rows(
    conversation: Conversation,
    terms: Terms,
    fmt: Format,
    admitted: Admission,
    drafts: Sequence[Draft],
    details: Sequence[Details],
) -> list[Message]:
    """The new messages' rows, with the conversation's sums moved on by them."""
    now: datetime = timezone.now()
    rows: list[Message] = []
    # What stands of erased messages is no message, but it is shown.
    begun = conversation.message_count or (
        conversation.last_position and selectors.messages_of(conversation.id).exists()
    )
    for facts, made, detail in zip(admitted.facts, drafts, details, strict=True):
        conversation.last_position += 1
        conversation.turn_count += facts.request
        counted = made if rows or begun else with_opening(fmt, terms.counter, made)
        rows.append(
            message_of(
                conversation=conversation,
                facts=with_savings(fmt, terms.counter, counted, facts),
                made=counted,
                details=detail,
                now=now,
            )
        )
    tokens = sum(row.tokens for row in rows)
    conversation.message_count += len(rows)
    conversation.tail_tokens += tokens
    conversation.stored_tokens += tokens
    conversation.shown_chars += sum(row.chars for row in rows)
    conversation.ledger = admitted.ledger.as_dict()
    return rows


def _abandon(
    conversation: Conversation, terms: Terms, fmt: Format, admitted: Admission, rows: Sequence[Message]
) -> dict[int, int]:
    """Flag the messages whose calls were abandoned by a later assistant message, and count what is shown for them.

    Returns position -> synthetic tokens for messages already stored; rows of this batch are changed in place.
    """
    stored: dict[int, int] = {}
    by_position = {row.position: row for row in rows}
    for position, calls in admitted.abandoned.items():
        tokens = synthetic_tokens(fmt, terms.counter, calls)
        conversation.tail_tokens += tokens
        row = by_position.get(position)
        if row is None:
            stored[position] = tokens
        else:
            row.abandoned, row.extra_tokens = True, tokens
    ledger = admitted.ledger
    pending = synthetic_tokens(fmt, terms.counter, ledger.open_calls) if ledger.interrupted else 0
    conversation.tail_tokens += pending - conversation.pending_tokens
    conversation.pending_tokens = pending
    return stored

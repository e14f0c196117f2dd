"""The running state of a conversation: how it is written, and how it is measured anew after a change of coverage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from django.utils import timezone

from compaction_service.conversations.models import Conversation
from compaction_service.engine.formats.base import NO_RESULT, Format
from compaction_service.engine.types import Call, Entry, OpenCall
from compaction_service.tokens.messages import Counter
from tenants.statements import Update

# All that append, apply, revert and edits may change. Written together: one list cannot be forgotten.
STATE = (
    "last_position", "message_count", "turn_count", "covered_to", "carried", "ledger", "factor", "calibrated",
    "system_tokens", "tools_tokens", "summary_tokens", "carried_tokens", "tail_tokens", "pending_tokens",
    "fixed_chars", "shown_chars", "stored_tokens", "masked_to", "mask_pending", "thinking_to", "thinking_version",
    "compaction_state", "compaction_live", "compaction_trigger", "compaction_last", "retry_from_tokens", "version",
    "compact_tool", "near_limit",
)  # fmt: skip


def commit(conversation: Conversation, *fields: str) -> bool:
    """Write the running state, and `fields` besides, if nobody wrote the row since it was read (compare-and-swap).

    False: somebody did; nothing was written.
    """
    revision, conversation.updated_at = conversation.revision, timezone.now()
    conversation.revision = revision + 1
    return _update(fields).run(conversation, conversation.id, revision) == 1


@cache
def _update(fields: tuple[str, ...]) -> Update:
    """Written with every append."""
    return Update(Conversation, (*STATE, *fields, "revision", "updated_at"), "id = %s and revision = %s")


def synthetic_tokens(fmt: Format, counter: Counter, calls: Sequence[Call | OpenCall]) -> int:
    """Raw tokens of the synthetic results a context shows for these calls (semantics 1): the same for each."""
    if not calls:
        return 0
    example = fmt.synthetic_result(Call(calls[0].id, calls[0].name), NO_RESULT)
    return len(calls) * counter.message(fmt.name, example)


def thoughtless(conversation: Conversation, entries: Sequence[Entry]) -> list[Entry]:
    """The entries as they are shown: without the thinking that no longer holds (conversations/thinking.py)."""
    if not conversation.thinking_to:
        return list(entries)
    return [e.without_thinking() if e.position <= conversation.thinking_to else e for e in entries]


class Sized(Protocol):
    """A node as far as it is measured: tokens and chars of its message."""

    @property
    def tokens(self) -> int: ...
    @property
    def chars(self) -> int: ...


def measure(
    conversation: Conversation, carried: Sequence[Entry], tail: Sequence[Entry], nodes: Sequence[Sized]
) -> None:
    """Set the sums from what a new coverage shows. System and tools are as they were."""
    carried, tail = thoughtless(conversation, carried), thoughtless(conversation, tail)
    conversation.summary_tokens = sum(node.tokens for node in nodes)
    conversation.carried_tokens = sum(entry.shown_tokens for entry in carried)
    conversation.tail_tokens = sum(entry.shown_tokens for entry in tail) + conversation.pending_tokens
    conversation.shown_chars = sum(node.chars for node in nodes) + sum(e.shown_chars for e in (*carried, *tail))

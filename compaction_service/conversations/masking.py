"""Masking on the write path: the engine decides, the watermark and the flags are stored (semantics 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.rows import PLANNING_FIELDS, entry_of, entry_of_row
from compaction_service.conversations.selectors import messages_of
from compaction_service.conversations.terms import Terms, trigger_tokens
from compaction_service.engine import masking
from compaction_service.engine.policy import Policy, crossed
from compaction_service.engine.types import Answer, Entry

Masks = Mapping[int, tuple[int, ...]]


def forward(conversation: Conversation, terms: Terms, rows: Sequence[Message]) -> Masks:
    """Advance the masks for an append of `rows`; returns the masks of the messages it changes, and moves the sums.

    The tail is read (one query, no bodies) only when enough could be reclaimed since the watermark.
    """
    policy = terms.policy
    entries = [entry_of_row(row) for row in rows]
    conversation.mask_pending += sum(_eligible(entry, policy) for entry in entries)
    if not policy.mask_tool_results or not conversation.mask_pending:
        return {}
    over = crossed(policy, terms.limits, trigger_tokens(conversation, terms))
    if not over and conversation.mask_pending < policy.mask_min_reclaim_tokens:
        return {}
    tail = [*_from_watermark(conversation, rows), *entries]
    step = masking.step(tail, policy, over)
    after = [replace(e, masked=tuple(sorted({*e.masked, *step.get(e.position, ())}))) for e in tail]
    conversation.mask_pending = sum(_eligible(entry, policy) for entry in after)
    if not step:
        return {}
    conversation.masked_to = max(step)
    conversation.tail_tokens += sum(e.shown_tokens for e in after) - sum(e.shown_tokens for e in tail)
    conversation.shown_chars += sum(e.shown_chars for e in after) - sum(e.shown_chars for e in tail)
    masks = {entry.position: entry.masked for entry in after if entry.position in step}
    for row in rows:
        row.masked = list(masks.get(row.position, ()))
    return masks


def look_again(conversation: Conversation, first: int = 0) -> None:
    """Have the next append look at the results from position `first` on that are live, and not masked yet.

    After what may let them be masked: their pin gone, another policy, coverage that went back. Masks set are kept.
    """
    conversation.masked_to = min(conversation.masked_to, first)
    conversation.mask_pending = conversation.tail_tokens  # no less than can be reclaimed


def store(conversation: Conversation, masks: Masks) -> None:
    """Write the flags of messages stored before; those of a new batch are in its rows already."""
    by_indices: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for position, indices in masks.items():
        by_indices[indices].append(position)
    for indices, positions in by_indices.items():
        Message.objects.filter(conversation_id=conversation.id, position__in=positions).update(masked=list(indices))


def _eligible(entry: Entry, policy: Policy) -> int:
    """Raw tokens that masking this message's results could reclaim some day."""
    if entry.pinned:
        return 0
    return sum(a.saving for i, a in enumerate(entry.facts.answers) if i not in entry.masked and _maskable(a, policy))


def _maskable(answer: Answer, policy: Policy) -> bool:
    return answer.chars > policy.mask_min_chars and answer.name not in policy.preserve_tools


def _from_watermark(conversation: Conversation, rows: Sequence[Message]) -> list[Entry]:
    """From the newest masked message on: of several results in it some may not be masked yet."""
    first_new = rows[0].position if rows else conversation.last_position + 1
    first = max(conversation.covered_to + 1, conversation.masked_to)
    found = messages_of(conversation.id).filter(position__gte=first, position__lt=first_new)
    return [entry_of(row) for row in found.order_by("position").values(*PLANNING_FIELDS)]

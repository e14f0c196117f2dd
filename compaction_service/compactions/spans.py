"""What a compaction works on: the covered messages as the summary engine reads them, and the hash that names them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from compaction_service.compactions.models import Summary as Node
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.rows import ENTRY_FIELDS, entry_of
from compaction_service.conversations.selectors import SHOWN
from compaction_service.engine.exchanges import group
from compaction_service.engine.formats.base import Format
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.engine.types import Entry
from tenants.statements import Select

_ROW = (*ENTRY_FIELDS, "occurred_at", "created_at")
_ROWS = Select(Message, SHOWN + "position between %s and %s", ending="order by position", names=_ROW)
_HASHED = Select(
    Message,
    "conversation_id = %s and position > %s and position <= %s",
    ending="order by position",
    names=("position", "digest", "pinned", "abandoned", "erased_at"),
)


def span_rows(conversation_id: Any, first: int, last: int) -> list[dict[str, Any]]:
    """The stored messages of a span, in order, with bodies and times."""
    return [dict(zip(_ROW, row, strict=True)) for row in _ROWS.tuples(conversation_id, first, last)]


def span_messages(fmt: Format, rows: Sequence[dict[str, Any]]) -> tuple[SpanMessage, ...]:
    """Originals, unmasked, as the summary engine reads them (semantics 7)."""
    entries = [entry_of(row) for row in rows]
    times = [row["occurred_at"] or row["created_at"] for row in rows]
    return span_of_entries(fmt, entries, times)


def span_of_entries(fmt: Format, entries: Sequence[Entry], times: Iterable[Any]) -> tuple[SpanMessage, ...]:
    """Entries with bodies and their times, as the summary engine reads them."""
    numbers = [number for number, one in enumerate(group(entries)) for _ in range(one.start, one.end)]
    return tuple(
        SpanMessage(
            position=entry.position,
            role=entry.facts.role,
            at=at,
            parts=fmt.parts(entry.body),
            exchange=number,
            tokens=entry.tokens,
            request=entry.facts.request,
        )
        for entry, at, number in zip(entries, times, numbers, strict=True)
    )


def input_hash(conversation: Conversation, nodes: Sequence[Node], last: int) -> bytes:
    """Names the input of a compaction: positions, content and flags of the span, and the nodes it starts from.

    Computed when the job starts and again when it applies; a difference makes the outcome `stale` (semantics 11).
    """
    rows = _HASHED.tuples(conversation.id, conversation.covered_to, last)
    state = hashlib.sha256(repr((conversation.covered_to, conversation.carried)).encode())
    for node in nodes:
        state.update(node.id.bytes)
    for position, digest, pinned, abandoned, erased_at in rows:
        state.update(repr((position, bytes(digest), pinned, abandoned, erased_at is not None)).encode())
    return state.digest()

"""Rows as answers. Plain dictionaries: the serializers beside this module only document them."""

from __future__ import annotations

from typing import Any

from compaction_service.api.renderers import RawJSON, dumps
from compaction_service.compactions.models import Compaction
from compaction_service.conversations.appending import Appended
from compaction_service.conversations.editing import Erasure
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.terms import Terms, breakdown, meter


def _raw(text: str | None) -> RawJSON | None:
    return None if text is None else RawJSON(text)


def conversation(row: Conversation, terms: Terms) -> dict[str, Any]:
    return {
        "id": row.id,
        "external_id": row.external_id,
        "model": row.model,
        "format": row.format,
        "system": _raw(row.system),
        "tools": _raw(row.tools),
        "metadata": row.metadata,
        "policy": terms.policy.as_dict(),
        "policy_sources": terms.sources,
        "message_count": row.message_count,
        "last_position": row.last_position,
        "meter": meter(breakdown(row, terms), terms),
        "compaction": {"state": row.compaction_state, "live": row.compaction_live, "last": row.compaction_last},
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def appended_message(row: Message) -> dict[str, Any]:
    return {"position": row.position, "role": row.role, "tokens": row.tokens, "created_at": row.created_at}


def message(row: Message) -> dict[str, Any]:
    return {
        **appended_message(row),
        "pinned": row.pinned,
        "abandoned": row.abandoned,
        "external_id": row.external_id,
        "occurred_at": row.occurred_at,
        "metadata": row.metadata,
        "message": RawJSON(row.body),
    }


def line(row: Message) -> bytes:
    """One original as a line of JSON."""
    return dumps(message(row)) + b"\n"


def compaction_ref(row: Compaction | None) -> dict[str, Any] | None:
    return None if row is None else {"id": row.id, "status": row.status, "trigger": row.trigger}


def erased(done: Erasure) -> dict[str, Any]:
    row = done.conversation
    return {
        "id": row.id,
        "erased_at": done.erased_at,
        "counts": done.counts,
        "message_count": row.message_count,
        "last_position": row.last_position,
        "meter": meter(breakdown(row, done.terms), done.terms),
        "compaction": compaction_ref(done.compaction),
    }


def appended(done: Appended) -> dict[str, Any]:
    row = done.conversation
    return {
        "messages": [appended_message(message) for message in done.messages],
        "last_position": row.last_position,
        "meter": meter(breakdown(row, done.terms), done.terms),
        "compaction": compaction_ref(done.compaction),
    }

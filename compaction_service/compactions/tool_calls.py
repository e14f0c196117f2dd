"""The compaction that a model asks for by calling the compact tool (semantics 8)."""

from __future__ import annotations

from collections.abc import Sequence

from compaction_service import logs
from compaction_service.compactions import requests
from compaction_service.compactions.models import Compaction, Trigger
from compaction_service.compactions.services import Asked
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.rows import Draft
from compaction_service.conversations.terms import Terms
from compaction_service.engine import compact_tool
from compaction_service.engine.formats.base import Format

MODEL = "model"  # who asked


def asked_for(conversation: Conversation, fmt: Format, appended: Sequence[Draft]) -> Asked | None:
    """What the newest call of the tool among the conversation's last messages asks for; None where none calls it.

    Covered is what comes before the call's exchange, whatever the policy keeps: the exchange itself is still open.
    """
    if not conversation.compact_tool:
        return None
    for position, made in zip(range(conversation.last_position, 0, -1), reversed(appended), strict=False):
        if any(call.name == compact_tool.NAME for call in made.facts.calls):
            focus = compact_tool.focus_of(fmt, made.message)
            asking = logs.request_id.get() or ""
            return Asked(Trigger.TOOL_CALL, requested_by=MODEL, focus=focus, before=position, request_id=asking)
    return None


def start(conversation: Conversation, terms: Terms, asked: Asked | None) -> Compaction | None:
    """The compaction asked for, marked live on the conversation, or None where one is live: join that once the append
    is written. The worker finds whether there is anything to cover."""
    if asked is None or conversation.compaction_live is not None:
        return None
    return requests.start(
        conversation, terms, asked.trigger, requested_by=asked.requested_by, **asked.parameters(terms)
    )

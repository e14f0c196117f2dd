"""Signed thinking that no longer holds: the newest models refuse it once anything that stood before it has changed.

What changes it is a compaction, a revert, a mask, a pin that shows or hides something, an erasure, other system, tools
or model. All thinking up to then is left out of contexts, whole (docs/semantics-notes.md, Anthropic's format). An
answer that was made from a context of before and comes after is no exception: its `context_version` tells, and without
one the first append after the change counts as such.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from django.db.models import Q, Sum

from compaction_service.conversations.models import Conversation, Message
from compaction_service.engine import formats


def prefix_changed(conversation: Conversation) -> None:
    """Mark that what is shown before the newest messages is not what their model read. The caller measures anew, and
    adds one to `version`."""
    if _bound(conversation):
        conversation.thinking_to = conversation.last_position
        conversation.thinking_version = conversation.version


def prefix_restored(conversation: Conversation, thinking_to: int, last_position: int, version: int) -> None:
    """The same for the revert of a compaction: where nothing came in between, thinking of before holds again.

    `thinking_to`, `last_position` and `version`: of the conversation when the compaction was applied.
    """
    undisturbed = conversation.last_position == last_position and conversation.thinking_version in (0, version)
    prefix_changed(conversation)
    if undisturbed:
        conversation.thinking_to = thinking_to


def leave_out(conversation: Conversation, rows: Sequence[Message] = ()) -> None:
    """The same, with the sums moved on by it. `rows`: messages of an append, not stored yet."""
    if not _bound(conversation):
        return
    before = conversation.thinking_to
    prefix_changed(conversation)
    _subtract(conversation, before, rows)


def settings_changed(conversation: Conversation, changes: Container[str], summary_prefix: bool) -> None:
    """After a change of these fields of it; `summary_prefix`: its policy now shows summaries with another one."""
    if summary_prefix or any(name in changes for name in ("model", "system", "tools")):
        leave_out(conversation)


def appended(conversation: Conversation, rows: Sequence[Message], context_version: str | None) -> None:
    """An answer among the rows of an append that was made from a context of before the change goes without its
    thinking too. Before `version` is raised for the append."""
    if not (conversation.thinking_to and any(row.thinking_tokens for row in rows) and _bound(conversation)):
        return
    version = (context_version or "").partition("-")[0]
    read = int(version) if version.isascii() and version.isdigit() else conversation.version - 1
    if read <= conversation.thinking_version:
        before, conversation.thinking_to = conversation.thinking_to, conversation.last_position
        _subtract(conversation, before, rows)


def _bound(conversation: Conversation) -> bool:
    return formats.get(conversation.format).binds_thinking(conversation.model)


def _subtract(conversation: Conversation, before: int, rows: Sequence[Message]) -> None:
    """Take the thinking shown after position `before` out of the sums."""
    stored = Message.objects.filter(conversation_id=conversation.id, position__gt=before, thinking_tokens__gt=0)
    live = Q(position__gt=conversation.covered_to)
    found = stored.aggregate(
        tail=Sum("thinking_tokens", filter=live, default=0),
        carried=Sum("thinking_tokens", filter=Q(position__in=conversation.carried) & ~live, default=0),
        chars=Sum("thinking_chars", filter=live | Q(position__in=conversation.carried), default=0),
    )
    conversation.tail_tokens -= found["tail"] + sum(row.thinking_tokens for row in rows)
    conversation.carried_tokens -= found["carried"]
    conversation.shown_chars -= found["chars"] + sum(row.thinking_chars for row in rows)

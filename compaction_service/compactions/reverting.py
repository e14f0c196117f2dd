"""Undoing the newest applied compaction (semantics 10, invariant 4)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from compaction_service.api.errors import ApiError
from compaction_service.compactions import requests
from compaction_service.compactions.models import Compaction, NodeState, Outcome, Summary
from compaction_service.conversations import masking, near_limit, thinking
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.rows import PLANNING_FIELDS, entry_of
from compaction_service.conversations.selectors import active_nodes, kept_requests, messages_of, shown_entries
from compaction_service.conversations.state import commit, measure
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine.exchanges import group
from tenants.models import Tenant


def compaction_revert(tenant: Tenant, compaction_id: uuid.UUID) -> Compaction:
    """Undo it: its nodes are `reverted`, what it superseded or merged is active again, its span live again.

    Raises `ApiError` 404, or 409 unless it is the newest that is in force, and none is live. One whose summary an
    erasure made stale is in force no more (semantics 9): what it had replaced is live already.
    """
    compaction, conversation = compaction_locked(compaction_id)
    if conversation.compaction_live is not None:
        raise ApiError(
            409, "compaction_live", "A compaction of this conversation is live: cancel it or wait for its end."
        )
    if compaction.reverted_at is not None:
        raise ApiError(409, "already_reverted", "It was reverted already.")
    newest = newest_in_force(conversation.id)
    if compaction.outcome != Outcome.APPLIED or (newest is not None and compaction.id < newest.id):
        raise ApiError(409, "not_newest", "Only the newest applied compaction can be reverted.")
    if newest is None or newest.id != compaction.id:
        raise ApiError(
            409, "summary_stale", "Messages under its summary were erased since: there is nothing left to undo."
        )
    if not Compaction.objects.filter(id=newest.id, reverted_at=None).update(reverted_at=timezone.now()):
        raise ApiError(409, "already_reverted", "It was reverted already.")
    terms = terms_of(conversation, tenant.policy)
    _nodes_back(conversation, newest)
    _uncover(conversation, terms, newest.undo or {})
    conversation.version += 1
    conversation.retry_from_tokens = requests.retry_gate(conversation, terms)
    crossing = near_limit.note(conversation, terms)
    if not commit(conversation):
        raise RuntimeError("a locked conversation changed under its lock")
    if crossing:
        near_limit.announce(conversation)
    newest.refresh_from_db()
    return newest


def compaction_get(compaction_id: uuid.UUID) -> Compaction:
    """One compaction of the tenant in scope. Raises `ApiError` 404."""
    found = Compaction.objects.filter(id=compaction_id).first()
    if found is None:
        raise ApiError(404, "not_found", "No such compaction.")
    return found


def compaction_locked(compaction_id: uuid.UUID) -> tuple[Compaction, Conversation]:
    """The same, read under the lock of its conversation (docs/design.md, Locks)."""
    found = Conversation.objects.select_for_update(of=("self",)).filter(compactions=compaction_id).first()
    compaction = compaction_get(compaction_id)
    return compaction, found or compaction.conversation


def newest_in_force(conversation_id: uuid.UUID) -> Compaction | None:
    """The newest applied compaction that a context still shows a node of: the one that can be reverted."""
    standing = Summary.objects.filter(conversation_id=conversation_id, state=NodeState.ACTIVE)
    found = Compaction.objects.filter(id__in=standing.values("compaction_id"), reverted_at=None)
    return found.order_by("-id").first()


def undo_of(conversation: Conversation, carried: Sequence[int]) -> dict[str, Any]:
    """What a revert goes back to: the positions carried before, and those of them that were pinned.

    Coverage is not in it: it is told by the nodes that are active then.
    """
    pinned = Message.objects.filter(conversation_id=conversation.id, position__in=carried, pinned=True)
    return {"carried": list(carried), "pinned": sorted(pinned.values_list("position", flat=True))}


def _nodes_back(conversation: Conversation, compaction: Compaction) -> None:
    """The chain without its nodes. What it replaced behind the present coverage is live already, by an erasure, and
    stays so: coverage is contiguous."""
    replaced = Summary.objects.filter(retired_by_id=compaction.id).exclude(state=NodeState.STALE)
    replaced.filter(from_position__gt=conversation.covered_to).update(state=NodeState.STALE)
    Summary.objects.filter(compaction_id=compaction.id, state__in=(NodeState.ACTIVE, NodeState.MERGED)).update(
        state=NodeState.REVERTED, parent=None
    )
    replaced.update(state=NodeState.ACTIVE, retired_by=None, parent=None)


def _uncover(conversation: Conversation, terms: Terms, undo: Mapping[str, Any]) -> None:
    """Coverage and carried set of before, as the pins are now."""
    nodes = active_nodes(conversation)
    shown_now = conversation.carried
    conversation.covered_to = nodes[-1].to_position if nodes else 0
    conversation.carried = _carried(conversation, terms, undo, shown_now)
    thinking.prefix_restored(conversation, *undo.get("thinking", (0, -1, -1)))
    shown = shown_entries(conversation, bodies=False)
    measure(conversation, shown.carried, shown.tail, nodes)
    masking.look_again(conversation)


def _carried(conversation: Conversation, terms: Terms, undo: Mapping[str, Any], shown_now: Sequence[int]) -> list[int]:
    """What was carried before, without what only a pin carried that is gone, and with what was pinned since.

    Of covered messages all pinned ones are carried, so only what is carried now, or was before, is looked at.
    """
    before, pinned = set(undo.get("carried", ())), set(undo.get("pinned", ()))
    rows = messages_of(conversation.id).filter(
        position__in=before.union(shown_now), position__lte=conversation.covered_to
    )
    entries = [entry_of(row) for row in rows.order_by("position").values(*PLANNING_FIELDS)]
    requests = kept_requests(conversation, terms)
    carried = []
    for exchange in group(entries):
        members = entries[exchange.start : exchange.end]
        positions = {entry.position for entry in members}
        unpinned = positions & pinned and not positions & requests
        if any(entry.pinned for entry in members) or (positions & before and not unpinned):
            carried += sorted(positions)
    return carried

"""Undoing the newest applied compaction (semantics 10, invariant 4)."""

from __future__ import annotations

import uuid

from django.utils import timezone

from compaction_service.api.errors import ApiError
from compaction_service.compactions import requests
from compaction_service.compactions.models import Compaction, NodeState, Outcome, Summary
from compaction_service.conversations import near_limit, thinking
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.selectors import active_nodes, shown_entries
from compaction_service.conversations.state import commit, measure
from compaction_service.conversations.terms import terms_of
from compaction_service.engine.exchanges import group
from tenants.models import Tenant


def compaction_revert(tenant: Tenant, compaction_id: uuid.UUID) -> Compaction:
    """Undo it: its node is `reverted`, what it superseded or merged is active again, its span live again.

    Raises `ApiError` 404, or 409 unless it is the conversation's newest applied compaction, none is live, and no
    erasure made its summary stale (semantics 9): what it had replaced was then made live already.
    """
    compaction, conversation = compaction_locked(compaction_id)
    if conversation.compaction_live is not None:
        raise ApiError(
            409, "compaction_live", "A compaction of this conversation is live: cancel it or wait for its end."
        )
    newest = (
        Compaction.objects.filter(conversation_id=conversation.id, outcome=Outcome.APPLIED, reverted_at=None)
        .order_by("-id")
        .first()
    )
    if compaction.reverted_at is not None:
        raise ApiError(409, "already_reverted", "It was reverted already.")
    if newest is None or newest.id != compaction.id:
        raise ApiError(409, "not_newest", "Only the newest applied compaction can be reverted.")
    if newest.nodes.filter(state=NodeState.STALE).exists():
        raise ApiError(
            409, "summary_stale", "Messages under its summary were erased since: there is nothing left to undo."
        )
    if not Compaction.objects.filter(id=newest.id, reverted_at=None).update(reverted_at=timezone.now()):
        raise ApiError(409, "already_reverted", "It was reverted already.")
    Summary.objects.filter(compaction_id=newest.id, state__in=(NodeState.ACTIVE, NodeState.MERGED)).update(
        state=NodeState.REVERTED, parent=None
    )
    Summary.objects.filter(retired_by_id=newest.id).update(state=NodeState.ACTIVE, retired_by=None, parent=None)
    _uncover(conversation, newest)
    conversation.version += 1
    terms = terms_of(conversation, tenant.policy)
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


def _uncover(conversation: Conversation, compaction: Compaction) -> None:
    """Coverage and carried set of before, with what was pinned since."""
    undo = compaction.undo or {"covered_to": 0, "carried": []}
    pinned = _pinned_exchanges(conversation, undo["covered_to"])
    conversation.covered_to = undo["covered_to"]
    conversation.carried = sorted({*undo["carried"], *pinned})
    thinking.prefix_restored(conversation, *undo.get("thinking", (0, -1, -1)))
    shown = shown_entries(conversation, bodies=False)
    measure(conversation, shown.carried, shown.tail, active_nodes(conversation))


def _pinned_exchanges(conversation: Conversation, covered_to: int) -> set[int]:
    """Positions up to `covered_to` of the exchanges that hold a pinned message: carried ones all, so only those are
    looked at."""
    entries = shown_entries(conversation, bodies=False).carried
    members = (entries[exchange.start : exchange.end] for exchange in group(entries))
    return {
        entry.position
        for some in members
        if some[-1].position <= covered_to and any(entry.pinned for entry in some)
        for entry in some
    }

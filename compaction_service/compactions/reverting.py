"""Undoing the newest applied compaction (semantics 10, invariant 4)."""

from __future__ import annotations

import uuid

from django.utils import timezone

from compaction_service.api.errors import ApiError
from compaction_service.compactions import requests
from compaction_service.compactions.models import Compaction, NodeState, Outcome, Summary
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.rows import PLANNING_FIELDS, entry_of
from compaction_service.conversations.selectors import active_nodes, messages_of, shown_entries
from compaction_service.conversations.state import commit, measure
from compaction_service.conversations.terms import terms_of
from compaction_service.engine.exchanges import group
from tenants.models import Tenant


def compaction_revert(tenant: Tenant, compaction_id: uuid.UUID) -> Compaction:
    """Undo it: its node is `reverted`, what it superseded or merged is active again, its span live again.

    Raises `ApiError` 404, or 409 unless it is the conversation's newest applied compaction, none is live, and no
    erasure made its summary stale (semantics 9): what it had replaced was then made live already.
    """
    compaction = compaction_get(compaction_id)
    conversation = Conversation.objects.select_for_update().get(id=compaction.conversation_id)
    if conversation.compaction_live is not None:
        raise ApiError(
            409, "compaction_live", "A compaction of this conversation is live: cancel it or wait for its end."
        )
    newest = (
        Compaction.objects.filter(conversation_id=conversation.id, outcome=Outcome.APPLIED, reverted_at=None)
        .order_by("-id")
        .first()
    )
    if newest is None or newest.id != compaction.id:
        raise ApiError(409, "not_newest", "Only the newest applied compaction can be reverted.")
    if newest.nodes.filter(state=NodeState.STALE).exists():
        raise ApiError(
            409, "summary_stale", "Messages under its summary were erased since: there is nothing left to undo."
        )
    if not Compaction.objects.filter(id=newest.id, reverted_at=None).update(reverted_at=timezone.now()):
        raise ApiError(409, "not_newest", "It was reverted already.")
    Summary.objects.filter(compaction_id=newest.id, state=NodeState.ACTIVE).update(state=NodeState.REVERTED)
    Summary.objects.filter(retired_by_id=newest.id).update(state=NodeState.ACTIVE, retired_by=None, parent=None)
    _uncover(conversation, newest)
    conversation.version += 1
    conversation.retry_from_tokens = requests.retry_gate(conversation, terms_of(conversation, tenant.policy))
    if not commit(conversation):
        raise RuntimeError("a locked conversation changed under its lock")
    newest.refresh_from_db()
    return newest


def compaction_get(compaction_id: uuid.UUID) -> Compaction:
    """One compaction of the tenant in scope. Raises `ApiError` 404."""
    found = Compaction.objects.filter(id=compaction_id).first()
    if found is None:
        raise ApiError(404, "not_found", "No such compaction.")
    return found


def _uncover(conversation: Conversation, compaction: Compaction) -> None:
    """Coverage and carried set of before, with what was pinned since."""
    undo = compaction.undo or {"covered_to": 0, "carried": []}
    conversation.covered_to = undo["covered_to"]
    conversation.carried = sorted({*undo["carried"], *_pinned_exchanges(conversation)})
    shown = shown_entries(conversation, bodies=False)
    measure(conversation, shown.carried, shown.tail, active_nodes(conversation))


def _pinned_exchanges(conversation: Conversation) -> set[int]:
    """Positions of the exchanges that hold a pinned message under the coverage as it is now."""
    covered = messages_of(conversation.id).filter(position__lte=conversation.covered_to)
    if not covered.filter(pinned=True).exists():
        return set()
    entries = [entry_of(row) for row in covered.order_by("position").values(*PLANNING_FIELDS)]
    pinned: set[int] = set()
    for exchange in group(entries):
        members = entries[exchange.start : exchange.end]
        if any(entry.pinned for entry in members):
            pinned.update(entry.position for entry in members)
    return pinned

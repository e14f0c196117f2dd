"""Forking: a new conversation that begins as this one did, up to a position (semantics 9)."""

from __future__ import annotations

from typing import Any

from django.db import connections, models
from django.db.models import Sum

from compaction_service.compactions import requests
from compaction_service.compactions.models import Compaction
from compaction_service.compactions.models import Summary as Node
from compaction_service.compactions.reverting import undo_of
from compaction_service.conversations import masking, near_limit, quota, thinking
from compaction_service.conversations.appending import Appended
from compaction_service.conversations.editing import check_position, turn_at
from compaction_service.conversations.models import Conversation, Message
from compaction_service.conversations.recounting import recount
from compaction_service.conversations.selectors import active_nodes, conversation_get
from compaction_service.conversations.services import insert
from compaction_service.conversations.state import commit
from compaction_service.conversations.terms import terms_of
from compaction_service.engine.admit import Ledger
from compaction_service.ids import uuid7
from compaction_service.routers import current_alias
from tenants.models import Tenant

COPIED = (
    "tenant_id", "model", "format", "system", "tools", "policy", "metadata", "context_window", "tokenizer", "factor",
    "calibrated", "system_tokens", "tools_tokens", "fixed_chars",
)  # fmt: skip


FORK = "fork"  # who asked for a copied log entry: it was counted, and paid for, where it was made


def conversation_fork(*, tenant: Tenant, ref: str, position: int, external_id: str | None = None) -> Appended:
    """A new conversation with the messages up to `position`, at their positions, and their flags and masks.

    Active nodes that end there or before come along; what is behind them is live. Calls whose results stay behind are
    open. Raises `ApiError` 404, 400 for a position that was never handed out, 409 for an `external_id` that is taken.
    """
    source = conversation_get(ref, lock=True)  # nothing of it changes while it is read
    check_position(source, position, attr="position")
    quota.check_conversations(tenant)
    quota.check_tokens(tenant, source.stored_tokens)
    nodes = [node for node in active_nodes(source) if node.to_position <= position]
    covered_to = nodes[-1].to_position if nodes else 0
    fork = Conversation(
        id=uuid7(),
        external_id=external_id,
        last_position=position,
        turn_count=turn_at(source, position),
        covered_to=covered_to,
        carried=[one for one in source.carried if one <= covered_to],
        thinking_to=min(source.thinking_to, position),
        thinking_version=source.thinking_version,
        version=source.version,  # an answer to the source's context may come to the fork
        ledger=Ledger().as_dict(),
        **{name: getattr(source, name) for name in COPIED},
    )
    insert(fork)
    standing = "conversation_id = %s and position <= %s and (erased_at is null or body <> '')"
    _copy(Message, standing, [source.id, position], conversation_id=fork.id)
    _copy_nodes(fork, nodes)

    originals = Message.objects.filter(conversation_id=fork.id, erased_at=None)
    fork.message_count = originals.count()
    fork.stored_tokens = originals.aggregate(tokens=Sum("tokens"))["tokens"] or 0
    terms = terms_of(fork, tenant.policy)
    if covered_to < source.covered_to:
        thinking.prefix_changed(fork)
    fork.version += 1
    recount(fork, terms)
    masking.look_again(fork)
    at_rest = Ledger.from_dict(fork.ledger).rest
    compaction = requests.automatic(fork, terms, at_rest=at_rest, requested_by="service")
    crossing = near_limit.note(fork, terms)
    if not commit(fork):
        raise RuntimeError("nobody else can have seen this conversation")
    if crossing:
        near_limit.announce(fork)
    if compaction is not None:
        requests.enqueue(compaction)
    return Appended(fork, terms, [], compaction)


def _copy_nodes(fork: Conversation, nodes: list[Node]) -> None:
    """Each node with a log entry of its own, oldest first: a revert then takes off the newest node, and so on.

    An entry is a copy of the one that made the node, over the node's whole span, since what the node had replaced is
    not copied. It cost nothing here, and holds no text of a message that the fork does not have.
    """
    before = 0
    for node in nodes:
        entry = uuid7()
        undo = undo_of(fork, [one for one in fork.carried if one <= before])
        ids = {"id": entry, "conversation_id": fork.id}
        given = {"llm_tokens_in": 0, "llm_tokens_out": 0, "undo": undo, "follow_up": None}
        if (node.compaction.focus_from or 0) > fork.last_position:
            given |= {"focus": "", "focus_from": None}
        _copy(Compaction, "id = %s", [node.compaction_id], **ids, **given, **_told(node))
        _copy(Node, "id = %s", [node.id], id=uuid7(), conversation_id=fork.id, compaction_id=entry, parent_id=None)
        before = node.to_position


def _told(node: Node) -> dict[str, Any]:
    """What a copied log entry says otherwise than its original, as far as its transparency lets it say so."""
    original = node.compaction
    if not original.policy:
        return {}  # silent: nothing of this is kept (compactions/entries.py)
    told = {name: getattr(node, name) for name in ("from_position", "to_position", "from_turn", "to_turn")}
    notes = original.notes
    if original.span.last > node.to_position:  # a merge of older nodes: the entry tells of the span after them
        notes = []
        told |= {"dropped_content": [], "summary": "", "sections": [], "entities": []}
        if original.keeps_texts:
            told |= {"summary": node.text, "sections": node.sections, "entities": node.entities}
    if original.policy.get("transparency", "full") == "full":
        told["notes"] = [*notes, {"copied_from": str(original.id)}]
    return {**told, "requested_by": FORK, "cost": 0}


def _copy(model: type[models.Model], where: str, params: list[Any], **changed: Any) -> None:
    """Copy rows inside the database, with other values in the columns named: no text comes this way."""
    connection = connections[current_alias.get()]
    quote, meta = connection.ops.quote_name, model._meta  # noqa: SLF001 -- Django's documented API of models
    columns, chosen, values = [], [], []
    for field in meta.concrete_fields:
        column = quote(field.column or "")
        columns.append(column)
        if field.attname in changed:
            chosen.append(f"%s::{field.db_type(connection)}")
            values.append(field.get_db_prep_save(changed[field.attname], connection))
        else:
            chosen.append(column)
    table = quote(meta.db_table)
    # Names of columns and tables come from the models, and `where` from this module.
    statement = f"insert into {table} ({', '.join(columns)}) select {', '.join(chosen)} from {table} where {where}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(statement, [*values, *params])

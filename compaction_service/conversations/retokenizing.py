"""Counting a conversation anew by its model's tokenizer, after a change of model (semantics 3).

Until then all its raw counts are of the old tokenizer, those of later appends too, and shown by the new model's factor
as an estimate. The messages are counted without a lock, a page at a time; then what was appended since, and everything
is written in one transaction: counts of two tokenizers are never mixed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import connections
from django.db.models import Sum

from compaction_service.compactions import requests
from compaction_service.compactions.models import Summary as Node
from compaction_service.conversations import calibration, near_limit
from compaction_service.conversations.models import CompactionState, Conversation, Message, Recount
from compaction_service.conversations.recounting import count_first
from compaction_service.conversations.rows import (
    ENTRY_FIELDS,
    Draft,
    answers_of,
    entry_of,
    thinking_tokens,
    with_savings,
)
from compaction_service.conversations.selectors import active_nodes, shown_entries
from compaction_service.conversations.state import commit, measure, synthetic_tokens
from compaction_service.conversations.system import system_and_tools
from compaction_service.conversations.terms import Terms, terms_of
from compaction_service.engine import formats, jsontext
from compaction_service.engine.admit import Ledger
from compaction_service.engine.formats.base import Format
from compaction_service.engine.types import Call
from compaction_service.routers import current_alias
from compaction_service.tokens.messages import Counter
from tenants.scope import tenant_scope
from tenants.selectors import tenant_get

PAGE = 200  # messages read at a time

_WRITE = """
    update conversations_message as message
    set tokens = made.tokens, extra_tokens = made.extra_tokens, answers = made.answers,
        thinking_tokens = made.thinking_tokens
    from unnest(%s::int[], %s::int[], %s::int[], %s::text[], %s::int[])
        as made(position, tokens, extra_tokens, answers, thinking_tokens)
    where message.conversation_id = %s and message.position = made.position
      and (message.tokens, message.extra_tokens, message.answers, message.thinking_tokens)
        is distinct from (made.tokens, made.extra_tokens, made.answers, made.thinking_tokens)
"""


@dataclass(frozen=True)
class Count:
    """A message by the new tokenizer."""

    digest: bytes  # of what was counted
    tokens: int
    answers: str  # JSON text: with what masking would save
    thinking: int  # tokens saved by leaving it out


@dataclass
class Counts:
    """What was counted so far, by one tokenizer and factor."""

    counter: Counter
    messages: dict[int, Count] = field(default_factory=dict)  # by position

    def add(self, fmt: Format, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            self.messages[row["position"]] = _count(fmt, self.counter, row)


def conversation_recount(tenant_id: uuid.UUID, conversation_id: uuid.UUID) -> bool:
    """Recount it, if it needs that. False: not now, a compaction is running that measures by the old counts."""
    counts: Counts | None = None
    while True:
        with tenant_scope(tenant_id):
            conversation = Conversation.objects.filter(id=conversation_id).first()
            if conversation is None:
                return True
            terms, fmt = terms_of(conversation, tenant_get().policy), formats.get(conversation.format)
            if counts is None or counts.counter != terms.spec.counter:  # the model was changed again
                counts = Counts(terms.spec.counter)
            last = max(counts.messages, default=0)
            rows = _rows(conversation_id).filter(position__gt=last).order_by("position")
            page = list(rows.values(*ENTRY_FIELDS, "digest")[:PAGE]) if terms.foreign else []
        if page:
            counts.add(fmt, page)
            continue
        with tenant_scope(tenant_id):
            written = _swap(conversation_id, counts)
        if written is not None:
            return written


def _swap(conversation_id: uuid.UUID, counts: Counts) -> bool | None:
    """Write the new counts. False: a compaction is running. None: they are of another model than it has now."""
    conversation = Conversation.objects.select_for_update().filter(id=conversation_id).first()
    if conversation is None:
        return True
    tenant = tenant_get()
    terms = terms_of(conversation, tenant.policy)
    if terms.foreign and terms.spec.counter != counts.counter:
        return None
    if terms.foreign and conversation.compaction_state == CompactionState.RUNNING:
        return False
    Recount.objects.filter(pk=conversation_id).delete()
    if not terms.foreign:
        return True
    before = calibration.raw_tokens(conversation)
    _write_messages(conversation, terms, counts)
    count_first(conversation, counts.counter)
    _write_nodes(conversation, terms, counts.counter)
    conversation.tokenizer = terms.spec.tokenizer
    _measure(conversation, counts.counter)
    _adopt_factor(conversation, terms, before)
    terms = terms_of(conversation, tenant.policy)
    at_rest = Ledger.from_dict(conversation.ledger).rest
    compaction = requests.automatic(conversation, terms, at_rest=at_rest, requested_by="service")
    crossing = near_limit.note(conversation, terms)
    if not commit(conversation, "tokenizer"):
        raise RuntimeError("a locked conversation changed under its lock")
    if compaction is not None:
        requests.enqueue(compaction)
    if crossing:
        near_limit.announce(conversation)
    return True


def _rows(conversation_id: uuid.UUID) -> Any:
    """The messages that have a body: originals, and what was left in place of erased ones."""
    return Message.objects.filter(conversation_id=conversation_id).exclude(body="")


def _count(fmt: Format, counter: Counter, row: Mapping[str, Any]) -> Count:
    entry = entry_of(dict(row))
    digest = bytes(row["digest"])
    tokens = counter.message(fmt.name, entry.body)
    made = Draft(entry.facts, entry.body, row["body"], tokens, row["chars"], digest)
    thinking = thinking_tokens(fmt, counter, entry.body, tokens)
    answers = jsontext.dumps(answers_of(with_savings(fmt, counter, made, entry.facts)))
    return Count(digest, made.tokens, answers, thinking)


def _write_messages(conversation: Conversation, terms: Terms, counts: Counts) -> None:
    """What was appended, or replaced by a stub, since it was counted is counted here, under the lock."""
    fmt, counted = formats.get(conversation.format), counts.messages
    rows = _rows(conversation.id)
    digests = {position: bytes(digest) for position, digest in rows.values_list("position", "digest")}
    late = [position for position, digest in digests.items() if _stale(counted.get(position), digest)]
    counts.add(fmt, rows.filter(position__in=late).values(*ENTRY_FIELDS, "digest"))
    extra = dict.fromkeys(digests, 0)
    for position, calls, tokens in rows.filter(extra_tokens__gt=0).values_list("position", "calls", "extra_tokens"):
        one = [Call(*calls[0])]
        shown = round(tokens / synthetic_tokens(fmt, terms.counter, one))  # how many of the calls were given up
        extra[position] = shown * synthetic_tokens(fmt, counts.counter, one)
    columns = [
        (position, counted[position].tokens, extra[position], counted[position].answers, counted[position].thinking)
        for position in digests
    ]
    if columns:
        with connections[current_alias.get()].cursor() as cursor:
            cursor.execute(_WRITE, [*map(list, zip(*columns, strict=True)), conversation.id])


def _stale(count: Count | None, digest: bytes) -> bool:
    return count is None or count.digest != digest


def _write_nodes(conversation: Conversation, terms: Terms, counter: Counter) -> None:
    """All nodes: a revert may show one of old again."""
    fmt, prefix = formats.get(conversation.format), terms.policy.summary_prefix
    nodes = list(Node.objects.filter(conversation_id=conversation.id).exclude(text=""))
    for node in nodes:
        node.tokens = counter.message(fmt.name, fmt.summary_message(node.text, prefix))
    Node.objects.bulk_update(nodes, ["tokens"])


def _measure(conversation: Conversation, counter: Counter) -> None:
    """All sums from the rows."""
    fmt = formats.get(conversation.format)
    system, tools = system_and_tools(conversation)
    conversation.system_tokens = counter.system(fmt.name, system)
    conversation.tools_tokens = counter.tools(fmt.name, tools)
    ledger = Ledger.from_dict(conversation.ledger)
    conversation.pending_tokens = synthetic_tokens(fmt, counter, ledger.open_calls) if ledger.interrupted else 0
    shown = shown_entries(conversation, bodies=False)
    measure(conversation, shown.carried, shown.tail, active_nodes(conversation))
    originals = Message.objects.filter(conversation_id=conversation.id, erased_at=None)
    conversation.stored_tokens = originals.aggregate(tokens=Sum("tokens"))["tokens"] or 0
    if conversation.mask_pending:
        conversation.mask_pending = conversation.tail_tokens  # look at the next append
    conversation.retry_from_tokens = None  # it was of the old counts


def _adopt_factor(conversation: Conversation, terms: Terms, before: int) -> None:
    """The model's; where a refusal raised it meanwhile, the one that shows as many tokens by the new counts."""
    if not conversation.calibrated:
        conversation.factor, conversation.calibrated = calibration.start(terms.spec)
        return
    same = conversation.factor * before / calibration.raw_tokens(conversation)
    conversation.factor = min(calibration.HIGHEST, max(terms.spec.factor, same))

"""From rows to a step: all that a pass needs, read in one short transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Sum

from compaction_service.compactions import breakers
from compaction_service.compactions.chains import Chain, content, parts_of
from compaction_service.compactions.models import Compaction, Pass, PassKind, Summary
from compaction_service.compactions.redacting import redacted
from compaction_service.compactions.spans import span_messages, span_rows
from compaction_service.compactions.starting import job_terms
from compaction_service.compactions.steps import Model, Step
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.selectors import active_nodes, messages_of
from compaction_service.conversations.terms import Terms
from compaction_service.engine import formats
from compaction_service.engine.strategies import merge_target, rolls, takes_notes
from compaction_service.engine.summary import notes
from compaction_service.engine.summary.notes import Found, Ledger, Note
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.registry.selectors import summarizer_spec
from compaction_service.registry.specs import UNKNOWN_SUMMARIZER_WINDOW
from tenants.limits import limits_of
from tenants.models import Tenant
from tenants.selectors import summarizer_secret, tenant_get
from tenants.statements import Select

_DONE = Select(Pass, "compaction_id = %s and status = 'succeeded'", ending="order by number")

UNKNOWN_MAX_OUTPUT = 8192  # tokens asked of a model whose longest answer nobody knows
AT_ONCE = 2  # windows of the summariser that are read of the database for one chunk
TAIL_MESSAGES = 12  # newest kept messages looked at for the tail's end; it holds 2,000 tokens at most


def step_of(one: Pass) -> Step | None:
    """The step of a pass that was begun, with its compaction in hand; None if the span was erased in this moment."""
    compaction, conversation = one.compaction, one.compaction.conversation
    terms = job_terms(conversation, compaction)
    fmt = formats.get(conversation.format)
    first, last = compaction.span.first, compaction.span.last
    merging = _merging(compaction, terms)
    done = _DONE.rows(compaction.id) if one.number > 1 else []
    work = compaction.work
    kind = PassKind(one.kind)
    tenant = tenant_get()
    model = _model(one.model, tenant) if one.model else None
    start, end, unread_tokens, spanned = work["from"], last, 0, compaction.tokens_in or 0
    if not merging and model and kind in (PassKind.SUMMARY, PassKind.NOTES):
        unread_tokens = spanned
        if unread_tokens > AT_ONCE * model.window:  # else it is little enough to be read whole
            end, unread_tokens = _reach(conversation, start, last, AT_ONCE * model.window)
    whole = end == last
    span = () if merging else span_messages(fmt, span_rows(conversation.id, first if whole else start, end))
    if not merging and not span:
        return None
    bound = max(1, terms.raw(min(work["bound"], terms.limits.bound)))  # the model may have become a smaller one
    nodes = () if merging else _replaced(compaction)
    ledger = merging.ledger if merging else _ledger(compaction, nodes)
    before = "\n\n".join(merging.parts if merging else _texts(compaction, nodes))
    # What the summary may have beside its notes; a pass for notes has their room instead.
    beside = notes.cost(ledger.notes, terms.counter.text) if ledger.notes and kind != PassKind.NOTES else 0
    target = merging.target if merging else work["target"]
    reads = PassKind.NOTES if kind == PassKind.NOTES else PassKind.CHUNK
    step = Step(
        compaction_id=compaction.id,
        conversation_id=conversation.id,
        pass_id=one.id,
        number=one.number,
        kind=kind,
        model=model,
        policy=terms.policy,
        focus=compaction.focus,
        instructions=compaction.instructions,
        span=span if whole else (),
        unread=[message for message in span if message.position >= start],
        unread_tokens=unread_tokens,
        whole=whole,
        part=sum(each.kind == reads for each in done),
        chunk=work["chunk"],
        chunk_tokens=work["chunk_tokens"],
        previous=before if merging else _previous(one, before, ledger, done),
        before=before,
        carried=frozenset(compaction.carried),
        text=done[-1].output if one.kind == PassKind.RESUMMARIZE else "",
        text_tokens=terms.counter.text(done[-1].output) if one.kind == PassKind.RESUMMARIZE else None,
        tail=_tail(conversation, last),
        replaced_tokens=(merging.tokens if merging else spanned) - beside,
        target=max(target // 2, target - beside),
        bound=_notes_room(compaction, nodes, terms, bound) if kind == PassKind.NOTES else max(1, bound - beside),
        passes_done=_shortened([*done, one]),
        count=terms.counter.text,
        parts=merging.parts if merging else (),
        ledger=ledger,
        budget=limits_of(tenant.limits).monthly_budget,
    )
    return redacted(step) if tenant.redaction else step


def _reach(conversation: Conversation, start: int, last: int, tokens: int) -> tuple[int, int]:
    """Where to stop reading a span of which one call takes only the beginning, and the tokens from `start` to `last`.

    The last passes read the span whole, since what a summary dropped is told of all of it; the others what they need.
    """
    rows = messages_of(conversation.id).filter(position__gte=start, position__lte=last)
    total: int = rows.aggregate(total=Sum("tokens"))["total"] or 0
    if total <= tokens:
        return last, total
    seen = 0
    for position, size in rows.order_by("position").values_list("position", "tokens").iterator():
        seen += size
        if seen > tokens:
            return position, total
    return last, total


@dataclass(frozen=True)
class _Merging:
    """The merge that is due, as a step needs it."""

    parts: list[str]
    ledger: Ledger
    tokens: int
    target: int


def _merging(compaction: Compaction, terms: Terms) -> _Merging | None:
    drafted = compaction.work.get("chain")
    if drafted is None:
        return None
    chain = Chain.from_json(drafted)
    merge = chain.due(compaction.strategy, terms.raw(terms.policy.summary_chain_max_tokens))
    if merge is None:
        raise RuntimeError("a merge pass without a merge that is due")
    parts = parts_of(chain, merge)
    count = terms.counter.text
    sizes = [count(notes.joined(text, ledger)) for text, ledger in parts]
    target = merge_target(sizes, terms.raw(terms.limits.bound))
    room = min(terms.raw(terms.limits.bound) // notes.SHARE, target // 2)
    ledger = notes.merged((), [Found(note) for _, ledger in parts for note in ledger], room, count)
    return _Merging([text for text, _ in parts], ledger, sum(sizes), target)


def _shortened(passes: Sequence[Pass]) -> int:
    """Re-summarisations of the text at hand: those since the last merge began."""
    merges = [number for number, one in enumerate(passes) if one.kind == PassKind.MERGE]
    since = passes[merges[-1] :] if merges else passes
    return sum(one.kind == PassKind.RESUMMARIZE for one in since)


def _replaced(compaction: Compaction) -> Sequence[Summary]:
    """The nodes that the new one will replace, oldest first."""
    if not rolls(compaction.strategy):
        return ()
    return active_nodes(compaction.conversation)


def _notes_of(nodes: Sequence[Summary]) -> tuple[Note, ...]:
    return tuple(note for node in nodes for note in notes.from_json(node.ledger))


def _ledger(compaction: Compaction, nodes: Sequence[Summary]) -> Ledger:
    """The notes before, and those of the span as far as it was read for them."""
    if not takes_notes(compaction.strategy):
        return Ledger()
    made = compaction.work.get("ledger")
    return Ledger(_notes_of(nodes) if made is None else notes.from_json(made))


def _notes_room(compaction: Compaction, nodes: Sequence[Summary], terms: Terms, bound: int) -> int:
    before = notes.cost(_notes_of(nodes), terms.counter.text)
    span = (compaction.tokens_in or 0) - sum(node.tokens for node in nodes)
    return notes.budget_of(bound, before, max(0, span))


def _previous(one: Pass, before: str, ledger: Ledger, done: Sequence[Pass]) -> str:
    """What a pass goes on from: the notes so far, or the running summary: of the chunks read, else of the nodes."""
    if one.kind == PassKind.NOTES:
        return notes.numbered(ledger.notes)
    folded = [pass_ for pass_ in done if pass_.kind == PassKind.CHUNK]
    return folded[-1].output if folded and one.model else before


def _texts(compaction: Compaction, nodes: Sequence[Summary]) -> list[str]:
    """What the nodes say that are replaced."""
    if takes_notes(compaction.strategy):
        return [content(node)[0] for node in nodes]
    # A strategy without notes goes on from what they say.
    return [notes.dissolved(node.text, notes.from_json(node.ledger)) for node in nodes]


def _tail(conversation: Conversation, last: int) -> tuple[SpanMessage, ...]:
    end = conversation.last_position
    rows = span_rows(conversation.id, max(last + 1, end - TAIL_MESSAGES + 1), end)
    return span_messages(formats.get(conversation.format), rows)


def _model(name: str, tenant: Tenant) -> Model:
    spec = summarizer_spec(name)
    given = tenant.summarizer or {}
    return Model(
        name=name,
        window=spec.context_window or UNKNOWN_SUMMARIZER_WINDOW,
        max_output=spec.max_output or UNKNOWN_MAX_OUTPUT,
        spec=spec,
        api_base=given.get("api_base"),
        api_key=summarizer_secret(tenant),
        extra_headers=given.get("extra_headers"),
        allow_local=settings.ALLOW_LOCAL_MODEL_URLS,
        breaker=breakers.key_of(name, tenant),
    )

"""From rows to a step: all that a pass needs, read in one short transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from compaction_service.compactions.models import Compaction, Pass, PassKind, PassStatus, Summary
from compaction_service.compactions.spans import span_messages, span_rows
from compaction_service.compactions.starting import job_terms
from compaction_service.compactions.steps import Model, Step
from compaction_service.conversations.models import Conversation
from compaction_service.engine import formats
from compaction_service.engine.summary.span import SpanMessage
from compaction_service.registry.selectors import summarizer_spec
from compaction_service.registry.specs import UNKNOWN_SUMMARIZER_WINDOW
from tenants.models import Tenant
from tenants.selectors import summarizer_secret, tenant_get

UNKNOWN_MAX_OUTPUT = 8192  # tokens asked of a model whose longest answer nobody knows
TAIL_MESSAGES = 12  # newest kept messages looked at for the tail's end; it holds 2,000 tokens at most


def step_of(one: Pass) -> Step | None:
    """The step of a pass that is about to run; None if its conversation was erased in this moment."""
    compaction = Compaction.objects.filter(id=one.compaction_id).select_related("conversation").first()
    if compaction is None:
        return None
    conversation = compaction.conversation
    terms = job_terms(conversation, compaction)
    fmt = formats.get(conversation.format)
    first, last = compaction.span.first, compaction.span.last
    span = span_messages(fmt, span_rows(conversation.id, first, last))
    done = list(compaction.passes.filter(status=PassStatus.SUCCEEDED).order_by("number"))
    work = compaction.work
    return Step(
        compaction_id=compaction.id,
        conversation_id=conversation.id,
        pass_id=one.id,
        number=one.number,
        kind=PassKind(one.kind),
        model=_model(one.model, tenant_get()) if one.model else None,
        policy=terms.policy,
        focus=compaction.focus,
        instructions=compaction.instructions,
        span=span,
        unread=[message for message in span if message.position >= work["from"]],
        chunk=work["chunk"],
        chunk_tokens=work["chunk_tokens"],
        previous=_running(conversation, done, extractive=not one.model),
        text=done[-1].output if one.kind == PassKind.RESUMMARIZE else "",
        text_tokens=terms.counter.text(done[-1].output) if one.kind == PassKind.RESUMMARIZE else None,
        tail=_tail(conversation, last),
        replaced_tokens=compaction.tokens_in or 0,
        target=work["target"],
        bound=max(1, terms.raw(work["bound"])),
        passes_done=sum(p.kind == PassKind.RESUMMARIZE for p in (*done, one)),
        count=terms.counter.text,
    )


def _running(conversation: Conversation, done: Sequence[Pass], *, extractive: bool) -> str:
    """The summary a pass goes on from: of the chunks read so far, else the nodes that will be replaced."""
    folded = [one for one in done if one.kind == PassKind.CHUNK]
    if folded and not extractive:
        return folded[-1].output
    nodes = Summary.objects.filter(conversation_id=conversation.id, state="active").order_by("from_position")
    return "\n\n".join(nodes.values_list("text", flat=True))


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
        api_base=given.get("api_base"),
        api_key=summarizer_secret(tenant.id),
        extra_headers=given.get("extra_headers"),
        allow_local=settings.ALLOW_LOCAL_MODEL_URLS,
    )

"""Where a tenant's redaction takes hold: what is asked of a compaction, what a pass reads, and what a log entry keeps
(semantics 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compaction_service.compactions.models import Compaction
from compaction_service.compactions.steps import Step
from compaction_service.engine.redaction import Redactor
from tenants.selectors import tenant_get

# What was said of a compaction, before redaction was turned on maybe; all else in an entry is made of what a pass read.
_SAID = ("focus", "instructions", "dropped_content", "entities")


def redacted(step: Step) -> Step:
    """The step with no secret in what it reads; the tail and older summaries too. Originals stay as they are.

    Only the span's are counted: the rest was counted before, or will be.
    """
    of_span, beside = Redactor(), Redactor()
    span, unread = of_span.span(step.span), step.unread
    if span and unread:
        unread = [message for message in span if message.position >= unread[0].position]
    elif unread:  # a part of a long span
        unread = beside.span(unread)
    notes = tuple(replace(note, text=beside.text(note.text)) for note in step.ledger.notes)
    return replace(
        step,
        span=span,
        unread=unread,
        ledger=replace(step.ledger, notes=notes),
        tail=beside.span(step.tail),
        focus=beside.text(step.focus),
        instructions=beside.text(step.instructions),
        policy=replace(step.policy, instructions=beside.text(step.policy.instructions or "")),
        previous=beside.text(step.previous),
        before=beside.text(step.before),
        text=beside.text(step.text),
        parts=[beside.text(part) for part in step.parts],
        redacted=dict(sorted(of_span.counts.items())),
    )


def asked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a compaction as a request, a model or a policy gives them, without secrets where the tenant wishes it:
    what is live is stored and shown too."""
    policy = parameters["policy"]
    said = {name: text for name in ("focus", "instructions") if (text := parameters.get(name))}
    of_policy = policy.get("instructions")
    if not (said or of_policy) or not tenant_get().redaction:
        return dict(parameters)
    hidden = Redactor().value
    return {**parameters, **hidden(said), "policy": {**policy, "instructions": hidden(of_policy)}}


def redact(compaction: Compaction) -> None:
    """Take secrets out of what an entry says, of a tenant that wishes it."""
    for name in _SAID:
        setattr(compaction, name, Redactor().value(getattr(compaction, name)))
    compaction.policy = {**compaction.policy, "instructions": Redactor().value(compaction.policy.get("instructions"))}

"""The context: what the agent sends next, valid for its provider, and fitting (semantics 1, invariants 2, 3 and 6)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compaction_service.conversations import selectors
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.spans import span_messages
from compaction_service.conversations.terms import Terms, breakdown, meter, terms_of
from compaction_service.engine import fit, formats
from compaction_service.engine.projection import Parts, part_tokens, render
from compaction_service.engine.summary import extractive
from compaction_service.engine.types import Entry, Summary


@dataclass(frozen=True)
class Context:
    """A rendered context and what is said about it (api.md)."""

    body: dict[str, Any]
    fits: bool


def terms_for(
    conversation: Conversation, tenant_policy: Mapping[str, Any], *, model: str | None, reserve: int | None
) -> Terms:
    """The terms a context is asked under: another model or reserve may be given with the request."""
    call = {} if reserve is None else {"reserve_output_tokens": reserve}
    return terms_of(conversation, tenant_policy, call=call, model=model)


def fits(conversation: Conversation, terms: Terms) -> bool:
    """Whether the context as stored fits, from the running sums alone."""
    return sum(breakdown(conversation, terms).values()) <= terms.limits.window - terms.limits.reserve


def etag(conversation: Conversation, terms: Terms) -> str:
    """Changes with whatever the context or what is said about it depends on."""
    limits = terms.limits
    seen = (
        conversation.id,
        conversation.version,
        conversation.compaction_live,
        conversation.compaction_state,
        limits.window,
        limits.limit,
        limits.reserve,
        terms.factor,
        terms.window.tokenizer,
    )
    return '"' + hashlib.sha256(repr(seen).encode()).hexdigest()[:32] + '"'


def context_read(conversation: Conversation, terms: Terms) -> Context:
    """Project the context, made to fit without a model where it does not (`degraded`). Nothing stored changes.

    Raises `fit.Overflow` when system, tools and the last user request alone do not fit.
    """
    fmt = formats.get(conversation.format)
    parts = selectors.parts_of(conversation, terms.policy.summary_prefix)
    within, degraded = fits(conversation, terms), False
    shown = breakdown(conversation, terms)
    if not within:
        fitted = fit.fit(
            fmt,
            parts,
            budget=terms.budget,
            system_tokens=conversation.system_tokens,
            tools_tokens=conversation.tools_tokens,
            counter=terms.counter,
            extract=lambda entries, bound: _extract(conversation, terms, entries, bound),
        )
        parts, degraded = fitted.parts, fitted.degraded
        shown = {name: terms.shown(raw) for name, raw in fitted.breakdown.items()}
    rendered = render(fmt, parts)
    return Context(
        fits=True,
        body={
            "system": rendered.system,
            "messages": rendered.messages,
            "tools": parts.tools,
            "meter": meter(shown, terms),
            "fits": True,
            "degraded": degraded,
            "context_version": str(conversation.version),
            "summaries": [summary.id for summary in parts.summaries],
            "covered": {"from": 1, "to": conversation.covered_to} if conversation.covered_to else None,
            "carried": [entry.position for entry in parts.carried],
            "masked": [entry.position for entry in (*parts.carried, *parts.tail) if entry.masked],
        },
    )

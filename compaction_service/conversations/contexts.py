"""The context: what the agent sends next, valid for its provider, and fitting (semantics 1, invariants 2, 3 and 6)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from compaction_service.compactions.spans import span_of_entries
from compaction_service.conversations import calibration, selectors
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.state import synthetic_tokens
from compaction_service.conversations.terms import Terms, breakdown, meter, terms_of
from compaction_service.engine import fit, formats
from compaction_service.engine.formats.base import Format
from compaction_service.engine.formats.converting import convert, convert_tools
from compaction_service.engine.projection import Parts, part_tokens, render
from compaction_service.engine.summary import extractive
from compaction_service.engine.types import Call, Entry, Summary

ROUNDING = 5  # tokens: each of the five parts of a meter is rounded up by itself


@dataclass(frozen=True)
class Context:
    """A rendered context and what is said about it (api.md)."""

    body: dict[str, Any]


def terms_for(
    conversation: Conversation, tenant_policy: Mapping[str, Any], *, model: str | None, reserve: int | None
) -> Terms:
    """The terms a context is asked under: another model or reserve may be given with the request."""
    call = {} if reserve is None else {"reserve_output_tokens": reserve}
    terms = terms_of(conversation, tenant_policy, call=call, model=model)
    if terms.model == conversation.model:
        return terms
    factor, calibrated = calibration.start(terms.spec)
    return replace(terms, factor=factor, calibrated=calibrated)


def fits(conversation: Conversation, terms: Terms) -> bool:
    """Whether the context as stored fits, from the running sums alone."""
    return sum(breakdown(conversation, terms).values()) <= terms.limits.window - terms.limits.reserve


def hopeless(conversation: Conversation, terms: Terms) -> bool:
    """Whether no compaction can make it fit, from the running sums alone: what none touches is over the budget.

    That is system, tools, and a user request that is the only live message and has no answer yet.
    """
    alone = conversation.last_position == conversation.covered_to + 1
    request = conversation.tail_tokens if alone and conversation.ledger["unanswered_request"] else 0
    fixed = terms.shown(conversation.system_tokens) + terms.shown(conversation.tools_tokens) + terms.shown(request)
    return fixed > terms.limits.window - terms.limits.reserve


def etag(conversation: Conversation, terms: Terms, target: str) -> str:
    """Changes with whatever the context or what is said about it depends on."""
    limits = terms.limits
    seen = (
        target,
        conversation.id,
        conversation.version,
        conversation.compaction_live,
        conversation.compaction_state,
        limits.window,
        limits.limit,
        limits.reserve,
        terms.factor,
        terms.method,
        terms.window.source,
        terms.model,
        terms.spec.tokenizer,
        terms.tokenizer,
        terms.policy.summary_prefix,
    )
    return '"' + hashlib.sha256(repr(seen).encode()).hexdigest()[:32] + '"'


def parts_stored(conversation: Conversation, terms: Terms) -> Parts:
    """What a context is made of, read in the caller's transaction; `context_read` needs none."""
    return selectors.parts_of(conversation, terms.policy.summary_prefix)


def context_read(conversation: Conversation, terms: Terms, parts: Parts, target: str | None = None) -> Context:
    """Project the context, made to fit without a model where it does not (`degraded`). Nothing stored changes, and
    nothing is read: a long one is made after the transaction, so that its work holds no row and no connection.

    It is answered in the format `target` (None: the conversation's own); its tokens are those of its own.
    Raises `fit.Overflow` when system, tools and the last user request alone do not fit, `converting.Lossy` when
    something in it has no equal in the other format.
    """
    fmt = formats.get(conversation.format)
    shown, degraded = breakdown(conversation, terms), False
    if not fits(conversation, terms):
        parts, shown, degraded = _made_to_fit(conversation, terms, fmt, parts)
    rendered, tools = render(fmt, parts), parts.tools
    if target not in (None, fmt.name):
        rendered, tools = convert(rendered, target), convert_tools(tools, target)
    return Context(
        body={
            "system": rendered.system,
            "messages": rendered.messages,
            "tools": tools,
            "meter": meter(shown, terms),
            "fits": True,
            "degraded": degraded,
            "context_version": _version(
                conversation, terms, as_stored=not degraded and target in (None, conversation.format)
            ),
            "summaries": [summary.id for summary in parts.summaries if summary.id],
            "covered": {"from": 1, "to": conversation.covered_to} if conversation.covered_to else None,
            "carried": [entry.position for entry in parts.carried],
            "masked": [entry.position for entry in (*parts.carried, *parts.tail) if entry.masked],
        },
    )


def _made_to_fit(
    conversation: Conversation, terms: Terms, fmt: Format, stored: Parts
) -> tuple[Parts, dict[str, int], bool]:
    """Parts within the window, their tokens as the meter shows them, and whether something was left out."""
    budget = terms.raw(terms.limits.window - terms.limits.reserve - ROUNDING) - _opening_tokens(fmt, terms, stored)
    beside = {
        "system_tokens": conversation.system_tokens,
        "tools_tokens": conversation.tools_tokens,
        "synthetic_tokens": synthetic_tokens(fmt, terms.counter, (Call("id", "name"),)),
    }
    while True:
        fitted = fit.fit(
            fmt,
            stored,
            budget=budget,
            count=terms.counter.text,
            extract=partial(_extract, fmt, terms),
            keeps_thinking=not fmt.binds_thinking(terms.model),
            **beside,
        )
        parts = _counted(fmt, terms, stored, fitted.parts)
        shown = {name: terms.shown(tokens) for name, tokens in part_tokens(parts, **beside).items()}
        over = sum(shown.values()) - (terms.limits.window - terms.limits.reserve)
        if over <= 0:
            return parts, shown, fitted.degraded
        budget -= terms.raw(over) + 1  # the count has the last word: what a cut seemed to save it did not


def _counted(fmt: Format, terms: Terms, stored: Parts, cut: Parts) -> Parts:
    """The cut parts with exact counts: fitting adds up tokens of texts, a token off where they are joined, and may have
    made another message the first."""
    bodies = {entry.position: entry.body for entry in (*stored.carried, *stored.tail)}
    first = next(iter((*cut.carried, *cut.tail)), None)
    opening = None if first is None or cut.summaries else fmt.opening(first.body)

    def count(entry: Entry) -> Entry:
        opened = entry is first and opening is not None
        if entry.body is bodies[entry.position] and not opened:
            return entry
        names = [answer.name for answer in entry.facts.answers]
        shown = fmt.mask(entry.body, entry.masked, names) if entry.masked else entry.body
        saved = sum(entry.facts.answers[i].saving for i in entry.masked)
        more = terms.counter.message(fmt.name, opening) if opened else 0
        return replace(entry, tokens=terms.counter.message(fmt.name, shown) + saved + more)

    messages = ((node, fmt.summary_message(node.text, cut.summary_prefix)) for node in cut.summaries)
    return replace(
        cut,
        summaries=tuple(replace(node, tokens=terms.counter.message(fmt.name, shown)) for node, shown in messages),
        carried=tuple(map(count, cut.carried)),
        tail=tuple(map(count, cut.tail)),
    )


def _version(conversation: Conversation, terms: Terms, *, as_stored: bool) -> str:
    """What usage is reported with. What was cut, is converted, or is for another model is not the context that our sums
    count: a report about it must not calibrate them."""
    counted = as_stored and terms.model == conversation.model
    return str(conversation.version) if counted else f"{conversation.version}-uncounted"


def _opening_tokens(fmt: Format, terms: Terms, parts: Parts) -> int:
    """Raw tokens of what must be shown where the context comes to begin with another message than it does now."""
    entries = (*parts.carried, *parts.tail)
    opening = next((shown for entry in entries if (shown := fmt.opening(entry.body)) is not None), None)
    return 0 if opening is None else terms.counter.message(fmt.name, opening)


def _extract(fmt: Format, terms: Terms, entries: Sequence[Entry], tokens: int) -> Summary:
    """An extractive summary for this answer only: it has no id, and nothing of it is stored."""
    span = span_of_entries(fmt, entries, (None for _ in entries))
    label = terms.counter.message(fmt.name, fmt.summary_message("", terms.policy.summary_prefix))
    room = max(1, tokens - label)
    made = extractive.extract(
        span, sections=terms.policy.summary_sections, bound=room, target=room, count=terms.counter.text, previous=None
    )
    shown = fmt.summary_message(made.text, terms.policy.summary_prefix)
    return Summary(
        id="",
        text=made.text,
        tokens=terms.counter.message(fmt.name, shown),
        from_position=entries[0].position,
        to_position=entries[-1].position,
    )

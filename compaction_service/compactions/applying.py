"""The apply: compare the input with what was read, then write node, coverage and sums in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compaction_service.compactions import chains
from compaction_service.compactions.chains import Chain
from compaction_service.compactions.ending import end
from compaction_service.compactions.models import Compaction, Outcome
from compaction_service.compactions.plans import Planned, plan_for
from compaction_service.compactions.reverting import undo_of
from compaction_service.compactions.spans import input_hash
from compaction_service.compactions.starting import job_terms
from compaction_service.compactions.steps import Final
from compaction_service.conversations import thinking
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.state import measure
from compaction_service.conversations.terms import Terms, breakdown
from compaction_service.engine.summary import notes
from compaction_service.engine.summary.notes import Note


def apply(compaction: Compaction, chain: Chain) -> None:
    """End a running compaction with this chain: applied, or skipped (not smaller), or stale (semantics 10, 11).

    An append since the plan changes nothing here: its positions lie after the span. An edit, a pin, another node does.
    The compaction's conversation is locked by the caller.
    """
    conversation = compaction.conversation
    terms = job_terms(conversation, compaction)
    last = compaction.span.last
    planned = plan_for(conversation, terms, up_to=last, keep=True)
    if bytes(compaction.input_hash or b"") != input_hash(conversation, planned.nodes, last):
        end(compaction, conversation, Outcome.STALE, "input_changed")
        return
    if planned.plan.to_position != last:
        end(compaction, conversation, Outcome.STALE, "span_changed")
        return
    if _too_long(compaction, chain, terms):
        end(compaction, conversation, Outcome.STALE, "bound_changed")
        return
    before = breakdown(conversation, terms)
    undo = undo_of(conversation, conversation.carried)
    undo["thinking"] = [conversation.thinking_to, conversation.last_position, conversation.version]
    _cover(conversation, planned, chain)
    after = breakdown(conversation, terms)
    compaction.context_before = {"tokens": sum(before.values()), "breakdown": before}
    if sum(after.values()) >= sum(before.values()):
        compaction.context_after = compaction.context_before
        end(compaction, Conversation.objects.get(id=conversation.id), Outcome.SKIPPED, "not_smaller")
        return
    compaction.context_after = {"tokens": sum(after.values()), "breakdown": after}
    compaction.target_reached = _target_reached(sum(after.values()), terms)
    compaction.undo = undo
    chains.write(compaction, chain, planned.nodes)
    conversation.version += 1
    end(compaction, conversation, Outcome.APPLIED)


def _too_long(compaction: Compaction, chain: Chain, terms: Terms) -> bool:
    """Whether a new text is over the bound because that came down meanwhile, by a change to a smaller model.

    Calls made from then on keep to the new bound (preparing.py); the one that was under way did not know it.
    """
    bound = terms.limits.bound
    if bound >= compaction.work["bound"]:
        return False
    new = (draft.text for draft in (*chain.links, *chain.merged) if draft.new)
    return any(terms.shown(terms.counter.text(text)) > bound for text in new)


def _cover(conversation: Conversation, planned: Planned, chain: Chain) -> None:
    """Move the coverage to the chain's end, and measure what is shown then."""
    carried = set(planned.plan.carried)
    conversation.covered_to = chain.links[-1].to_position
    conversation.carried = list(planned.plan.carried)
    thinking.prefix_changed(conversation)
    entries = (*planned.shown.carried, *planned.shown.tail)
    measure(
        conversation,
        [entry for entry in entries if entry.position in carried],
        [entry for entry in planned.shown.tail if entry.position > conversation.covered_to],
        chain.links,
    )


def describe(compaction: Compaction, chain: Chain, final: Final) -> None:
    """What the log entry says of the new summary."""
    compaction.method = final.method
    compaction.summary, compaction.sections = final.text, final.sections
    compaction.dropped_content, compaction.entities = final.dropped_content, final.entities
    compaction.notes = [*compaction.notes, *final.notes, *_carried_on(compaction, final.ledger)]
    compaction.tokens_out = chain.links[-1].tokens


def _carried_on(compaction: Compaction, ledger: Sequence[Note]) -> list[dict[str, Any]]:
    """The ledger as the log tells it: what this span added to it or said again, and what was there before."""
    first = compaction.span.first
    return [one for note in ledger for one in notes.logged([note], "new" if note.positions[0] >= first else "carried")]


def _target_reached(tokens: int, terms: Terms) -> bool:
    limit, target = terms.limits.limit, terms.policy.target
    return tokens <= target * limit if target else tokens < limit

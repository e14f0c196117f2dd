"""The apply: compare the input with what was read, then write node, coverage and sums in one transaction."""

from __future__ import annotations

from compaction_service.compactions.ending import end
from compaction_service.compactions.models import Compaction, NodeState, Outcome, Summary
from compaction_service.compactions.plans import Planned, plan_for
from compaction_service.compactions.spans import input_hash
from compaction_service.compactions.starting import job_terms, lock_conversation
from compaction_service.compactions.steps import Final
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.state import measure
from compaction_service.conversations.terms import Terms, breakdown
from compaction_service.engine import formats, jsontext


def apply(compaction: Compaction, final: Final) -> None:
    """End a running compaction with this summary: applied, or skipped (not smaller), or stale (semantics 10, 11).

    An append since the plan changes nothing here: its positions lie after the span. An edit, a pin, another node does.
    """
    conversation = lock_conversation(compaction)
    terms = job_terms(conversation, compaction)
    last = compaction.span.last
    planned = plan_for(conversation, terms, up_to=last, keep=True)
    if bytes(compaction.input_hash or b"") != input_hash(conversation, planned.nodes, last):
        end(compaction, conversation, Outcome.STALE, "input_changed")
        return
    if planned.plan.to_position != last:
        end(compaction, conversation, Outcome.STALE, "span_changed")
        return
    before = breakdown(conversation, terms)
    undo = {"covered_to": conversation.covered_to, "carried": conversation.carried}
    node = _node(compaction, conversation, terms, planned, final)
    _cover(conversation, planned, node)
    after = breakdown(conversation, terms)
    compaction.context_before = {"tokens": sum(before.values()), "breakdown": before}
    _describe(compaction, node, final)
    if sum(after.values()) >= sum(before.values()):
        compaction.context_after = compaction.context_before
        end(compaction, Conversation.objects.get(id=conversation.id), Outcome.SKIPPED, "not_smaller")
        return
    compaction.context_after = {"tokens": sum(after.values()), "breakdown": after}
    compaction.target_reached = _target_reached(sum(after.values()), terms)
    compaction.undo = undo
    retired = [one.id for one in planned.nodes]
    Summary.objects.filter(id__in=retired).update(state=NodeState.SUPERSEDED, retired_by=compaction)
    node.save(force_insert=True)
    conversation.version += 1
    end(compaction, conversation, Outcome.APPLIED)


def _node(compaction: Compaction, conversation: Conversation, terms: Terms, planned: Planned, final: Final) -> Summary:
    """The new rolling node: over the old span and the new (semantics 7, sliding)."""
    shown = formats.get(conversation.format).summary_message(final.text, terms.policy.summary_prefix)
    first = planned.nodes[0] if planned.nodes else None
    span = compaction.span
    return Summary(
        tenant_id=compaction.tenant_id,
        conversation_id=conversation.id,
        compaction=compaction,
        from_position=first.from_position if first else span.first,
        to_position=span.last,
        from_turn=first.from_turn if first else span.first_turn,
        to_turn=span.last_turn,
        text=final.text,
        sections=final.sections,
        tokens=terms.counter.message(conversation.format, shown),
        chars=jsontext.chars(shown),
        method=final.method,
        entities=final.entities,
    )


def _cover(conversation: Conversation, planned: Planned, node: Summary) -> None:
    """Move the coverage to the node's end, and measure what is shown then."""
    carried = set(planned.plan.carried)
    conversation.covered_to = node.to_position
    conversation.carried = list(planned.plan.carried)
    entries = (*planned.shown.carried, *planned.shown.tail)
    measure(
        conversation,
        [entry for entry in entries if entry.position in carried],
        [entry for entry in planned.shown.tail if entry.position > node.to_position],
        [node],
    )


def _describe(compaction: Compaction, node: Summary, final: Final) -> None:
    compaction.method = final.method
    compaction.summary, compaction.sections = final.text, final.sections
    compaction.dropped_content, compaction.entities = final.dropped_content, final.entities
    compaction.notes = [*compaction.notes, *final.notes]
    compaction.tokens_out = node.tokens


def _target_reached(tokens: int, terms: Terms) -> bool:
    limit, target = terms.limits.limit, terms.policy.target
    return tokens <= target * limit if target else tokens < limit

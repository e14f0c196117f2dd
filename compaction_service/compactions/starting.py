"""The first transaction of a job: plan the span under the conversation's lock, and queue the first pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.utils import timezone

from compaction_service.compactions.ending import end
from compaction_service.compactions.models import Compaction, Method, Outcome, Pass, PassKind
from compaction_service.compactions.plans import Planned, plan_for, summary_bound
from compaction_service.compactions.spans import input_hash
from compaction_service.compactions.states import begin
from compaction_service.conversations.models import CompactionState, Conversation, Message
from compaction_service.conversations.terms import Terms, breakdown, capped, terms_of
from compaction_service.engine.policy import Policy
from compaction_service.engine.strategies import rolls, takes_notes
from tenants.models import Tenant
from tenants.statements import Insert, Select, Update

_TURNS = Select(Message, "conversation_id = %s and position = any(%s)", names=("position", "turn"))
_STATE = Update(Conversation, ("compaction_state", "revision"), "id = %s")
_PASS = Insert(Pass)

NO_MODEL = "no_model"  # why a summary is extractive, or why there is none (semantics 7, Fallback)


def lock_conversation(compaction: Compaction) -> Conversation:
    return Conversation.objects.select_for_update().get(id=compaction.conversation_id)


def job_terms(conversation: Conversation, compaction: Compaction) -> Terms:
    """The terms under the policy the compaction was asked with; window and factor are the conversation's now.

    The window is capped by what the provider said it takes (trigger `overflow`), for this compaction only.
    """
    terms = replace(terms_of(conversation, {}), policy=Policy.from_dict(compaction.policy))
    return capped(terms, compaction.window_cap)


def open_job(compaction: Compaction, tenant: Tenant, *, opened: float) -> Pass | None:
    """Queued -> running: plan, and make the first pass. None when there is nothing to do: it has ended then.

    The compaction's conversation is locked by the caller. `opened`: the queue's time, seconds since the epoch.
    """
    conversation = compaction.conversation
    terms = job_terms(conversation, compaction)
    planned = plan_for(conversation, terms, up_to=compaction.up_to, before=compaction.work.get("before"))
    compaction.started_at = timezone.now()
    parts = breakdown(conversation, terms)
    compaction.context_before = {"tokens": sum(parts.values()), "breakdown": parts}
    if planned.plan.irreducible is not None:
        note_floor(compaction, planned, terms)
        end(compaction, conversation, Outcome.IRREDUCIBLE, planned.plan.irreducible)
        return None
    models = models_of(terms.policy, tenant)
    if not models and not terms.policy.extractive_fallback:
        end(compaction, conversation, Outcome.FAILED, NO_MODEL)
        return None
    compaction.fallback_reason = "" if models else NO_MODEL
    compaction.work["opened"] = opened
    _write_plan(compaction, conversation, terms, planned, models)
    conversation.compaction_state = CompactionState.RUNNING
    conversation.revision += 1
    _STATE.run(conversation, conversation.id)
    return queue_pass(compaction, number=1, kind=first_kind(compaction))


def first_kind(compaction: Compaction) -> PassKind:
    """What the span is read for first."""
    return PassKind.NOTES if takes_notes(compaction.strategy) else PassKind.SUMMARY


def note_floor(compaction: Compaction, planned: Planned, terms: Terms) -> None:
    """What no compaction can go below, for a reader who wonders why nothing was done (semantics 4)."""
    compaction.context_after = compaction.context_before
    compaction.target_reached = planned.plan.target_reached
    compaction.notes = [*_cap_note(compaction), {"floor_tokens": terms.shown(planned.plan.predicted_tokens)}]


def _cap_note(compaction: Compaction) -> list[dict[str, Any]]:
    return [] if compaction.window_cap is None else [{"provider_max_tokens": compaction.window_cap}]


def _write_plan(
    compaction: Compaction, conversation: Conversation, terms: Terms, planned: Planned, models: list[str]
) -> None:
    plan = planned.plan
    ends = (plan.covered[0], plan.covered[-1])
    turns = dict(_TURNS.tuples(conversation.id, list(ends)))
    compaction.from_position, compaction.to_position = plan.from_position, plan.to_position
    compaction.from_turn, compaction.to_turn = turns[ends[0]], turns[ends[1]]
    compaction.carried = list(plan.carried)
    compaction.input_hash = input_hash(conversation, planned.nodes, plan.to_position or 0)
    replaced = planned.nodes if rolls(compaction.strategy) else ()
    compaction.tokens_in = plan.span_tokens + sum(node.tokens for node in replaced)
    compaction.notes = _cap_note(compaction)
    bound = summary_bound(conversation, terms, planned)
    compaction.work = {
        "opened": compaction.work["opened"],  # the total deadline runs from here
        "models": models,
        "target": min(plan.summary_target, terms.raw(bound)),
        "bound": bound,
        "from": plan.from_position,
        "chunk": 0,
        "chunk_tokens": None,
    }
    begin(compaction)


def models_of(policy: Policy, tenant: Tenant) -> list[str]:
    """The models to try, in order; none: extractive (semantics 2)."""
    given = tenant.summarizer or {}
    first = policy.summarizer_model or given.get("model")
    rest = policy.fallback_models if policy.fallback_models is not None else given.get("fallback_models")
    return [name for name in (first, *(rest or ())) if name]


def queue_pass(compaction: Compaction, *, number: int, **fields: Any) -> Pass:
    """The next pass: by the first model left, else extractive."""
    models = compaction.work["models"]
    fields.setdefault("method", Method.LLM if models else Method.EXTRACTIVE)
    one = Pass(
        tenant_id=compaction.tenant_id,
        compaction=compaction,
        number=number,
        model=models[0] if models else "",
        **fields,
    )
    _PASS.run([one])
    return one

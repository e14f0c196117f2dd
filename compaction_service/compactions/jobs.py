"""Running a compaction, one pass per task: begin (a transaction), the work (none), finish (a transaction).

The automaton of compaction and pass is in docs/design.md. Every write after the work is under the fence of the claim: a
late worker's result is refused, and its cost recorded all the same.
"""

from __future__ import annotations

import logging
import random
import uuid
from dataclasses import replace
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from compaction_service import logs
from compaction_service.compactions import breakers, chains, claims, leases
from compaction_service.compactions.applying import apply, describe
from compaction_service.compactions.chains import Chain
from compaction_service.compactions.ending import end
from compaction_service.compactions.leases import Claim
from compaction_service.compactions.metrics import PASSES, called, refused
from compaction_service.compactions.models import LIVE, Compaction, Outcome, Pass, PassKind, PassStatus, Status, Work
from compaction_service.compactions.preparing import step_of
from compaction_service.compactions.starting import job_terms, lock_conversation, open_job, queue_pass
from compaction_service.compactions.states import move
from compaction_service.compactions.steps import (
    SMALLEST_CHUNK,
    Final,
    Model,
    Result,
    Spent,
    Step,
    ask,
    chunk_size,
    execute,
    price,
)
from compaction_service.compactions.wakeup import wake
from compaction_service.conversations.models import Conversation
from compaction_service.conversations.selectors import active_nodes
from compaction_service.engine.summary import notes
from compaction_service.engine.summary.report import MAX_DROPPED
from compaction_service.llm.breaker import outcome_of
from compaction_service.llm.retry import RetryPolicy, next_delay
from compaction_service.usage import budgets
from compaction_service.usage.services import call_record
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tenants.selectors import tenant_get

logger = logging.getLogger(__name__)

# Executions of one pass that ended without a word (a killed worker, a lost lease) before the model is given up.
MOST_ATTEMPTS = 5
# Executions that not even a next model or the extractive summary came of: beginning or ending the job itself fails.
LAST_ATTEMPT = 2 * MOST_ATTEMPTS
RETRY_AFTER = timedelta(seconds=1)
FOREIGN = timedelta(seconds=5)  # until a pass that only a newer version knows is looked at again


class Crashed(Exception):  # noqa: N818 -- it says what happened
    """A pass ended with an exception nobody expected; says its type only."""


def run(claim: Claim) -> None:
    """Run the next pass of a claimed compaction. Safe to run twice and to kill anywhere."""
    outside = logs.request_id.set(None)
    with leases.held(claim):
        try:
            with tenant_scope(claim.tenant_id):
                begun = begin(claim)
            with tenant_scope(claim.tenant_id):  # reads the span, under no lock
                step = step_of(begun) if begun else None
            if step is None:
                return
            connection.close()  # back to the pool: a model call may take minutes
            with PASSES.labels(step.kind.value).time():
                result, reservation = _execute(claim, step)
            with tenant_scope(claim.tenant_id):
                finish(claim, step, result, reservation)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the row is tried again, a bounded number of times
            # Only the kind is told: a message may quote the conversation.
            logger.error("pass failed", extra={"compaction": str(claim.compaction_id), "error": type(error).__name__})
            if not (claim.attempts >= LAST_ATTEMPT and _abandon(claim)):
                claims.release(claim, delay=RETRY_AFTER, progress=False)
            raise Crashed(type(error).__name__) from None
        finally:
            logs.request_id.reset(outside)
            _pass_on(claim)
            connection.close()


def _execute(claim: Claim, step: Step) -> tuple[Result, uuid.UUID | None]:
    """The work of a pass, outside any transaction; and the money put aside for its call, of a tenant with a budget.

    A model whose price nobody knows costs nothing by our count: it is called whatever the budget (docs/operations.md).
    """
    if step.model is None:
        return execute(step), None
    asked = ask(step, step.model)
    reservation = None
    if step.budget is not None and (amount := price(step, step.model, asked)):
        with tenant_scope(claim.tenant_id):
            reservation = budgets.reserve(step.budget, amount, seconds=settings.PASS_DEADLINE)
        connection.close()
        if reservation is None:
            refused("budget_exhausted")
            return Result(Spent(), rejected="budget_exhausted", called=False), None
    return execute(replace(step, asked=asked)), reservation


def _pass_on(claim: Claim) -> None:
    """A wake-up for the tenant's next job: the ones before may have found the tenant at its limit."""
    try:
        if claims.waits_for(claim):
            wake()
    except Exception as error:  # noqa: BLE001 -- the sweep comes in a second
        logger.warning("next job not woken", extra={"error": type(error).__name__})


def _abandon(claim: Claim) -> bool:
    """End a compaction that fails wherever it is touched, so that its conversation can be compacted again."""
    try:
        with tenant_scope(claim.tenant_id):
            compaction = _locked(claim)
            if compaction is not None:
                end(compaction, lock_conversation(compaction), Outcome.FAILED, "internal_error", follow=False)
    except Exception as error:  # noqa: BLE001 -- tried again by the next execution
        logger.error("job not abandoned", extra={"error": type(error).__name__})
        return False
    return True


def begin(claim: Claim) -> Pass | None:
    """Open the job if it is new, and mark its pass running. None: it has ended."""
    compaction = _locked(claim)
    if compaction is None:
        return None
    tenant = tenant_get()
    if compaction.status == Status.QUEUED:
        one = open_job(compaction, tenant, opened=claim.at.timestamp())
        if one is None:
            return None
    else:
        one = compaction.passes.filter(status__in=(PassStatus.QUEUED, PassStatus.RUNNING)).get()
    if one.kind not in PassKind.values:  # written by a newer version: for its workers
        claims.release(claim, delay=FOREIGN)
        return None
    one = _callable(claim, compaction, one, tenant)
    if one is None:
        return None
    move(one, PassStatus.RUNNING, started_at=claim.at)
    return one


def _callable(claim: Claim, compaction: Compaction, one: Pass, tenant: Tenant) -> Pass | None:
    """The pass, or the one in its place, whose model may be called now. None: none is left, and the job has ended."""
    if "opened" not in compaction.work:
        compaction.work["opened"] = claim.at.timestamp()
        compaction.save(update_fields=["work"])
    found: Pass | None = one
    if claim.attempts > MOST_ATTEMPTS:
        found = _next_model(compaction, one, error="worker_lost")
        Work.objects.filter(pk=claim.compaction_id).update(attempts=1)
    elif one.model and claim.at.timestamp() > compaction.work["opened"] + settings.COMPACTION_DEADLINE:
        compaction.work["models"] = [one.model]  # the others would be too late as well
        found = _next_model(compaction, one, error="deadline")
    while found is not None and found.model and not breakers.allows(found.model, tenant, claim.at):
        refused("breaker_open")
        found = _next_model(compaction, found, error="breaker_open")
    return found


def _locked(claim: Claim) -> Compaction | None:
    """The claimed compaction under its conversation's lock, if it is live and the claim is still ours."""
    # The conversation first, as everywhere (docs/design.md, Locks): nobody ends or joins the job meanwhile.
    conversation = (
        Conversation.objects.select_for_update(of=("self",)).filter(compactions=claim.compaction_id).order_by().first()
    )
    compaction = Compaction.objects.filter(id=claim.compaction_id, status__in=LIVE).first()
    if compaction is None or conversation is None:
        Work.objects.filter(pk=claim.compaction_id).delete()
        return None
    compaction.conversation = conversation  # as it is under its lock
    logs.request_id.set(compaction.request_id or None)  # what is logged of the job from here on carries it
    mine = Work.objects.filter(pk=claim.compaction_id, fence=claim.fence).exists()
    return compaction if mine else None


def finish(claim: Claim, step: Step, result: Result, reservation: uuid.UUID | None = None) -> None:
    """Write what a pass came to, if the claim is still ours, and queue what follows in the same transaction."""
    _write(claim, step, result)
    if step.model is not None and result.called:
        breakers.note(step.model.breaker, step.model.name, outcome_of(result.error), claim.now())
        budgets.settle(reservation, result.spent.cost)


def _write(claim: Claim, step: Step, result: Result) -> None:
    # The conversation first, as everywhere (docs/design.md, Locks); it may have been erased.
    conversation = Conversation.objects.select_for_update().filter(id=step.conversation_id).first()
    mine = (
        conversation is not None
        and Work.objects.select_for_update().filter(pk=claim.compaction_id, fence=claim.fence).exists()
    )
    _record(claim, step, result, late=not mine)
    if conversation is None or not mine:
        _add_late(step, result)
        logger.info("late result refused", extra={"compaction": str(claim.compaction_id), "pass": step.number})
        return
    compaction = Compaction.objects.get(id=claim.compaction_id)
    compaction.conversation = conversation
    one = Pass.objects.get(id=step.pass_id)
    _note(claim, one, step, result)
    if result.error is not None:
        _failed(claim, compaction, one, step, result)
    elif result.rejected:
        _give_up_model(claim, compaction, one, result.rejected, refused=True)
    elif result.noted is not None:
        _noted(claim, compaction, one, step, result)
    elif result.final is not None:
        _close(one, PassStatus.SUCCEEDED)
        _summarised(claim, compaction, one, result.final)
    else:
        _go_on(claim, compaction, one, step, result)


def _summarised(claim: Claim, compaction: Compaction, one: Pass, final: Final) -> None:
    """A text of the chain is ready: the span's, or a merge's. The next merge that is due, else the apply."""
    conversation = compaction.conversation
    terms = job_terms(conversation, compaction)
    bound = terms.raw(terms.policy.summary_chain_max_tokens)
    drafted = compaction.work.get("chain")
    if drafted is None:
        compaction.model = compaction.model or one.model
        chain = chains.started(compaction, terms, conversation.format, active_nodes(conversation), final)
        describe(compaction, chain, final)
    else:
        chain = Chain.from_json(drafted)
        merge = chain.due(compaction.strategy, bound)
        if merge is None:
            raise RuntimeError("a merge was run that is not due")
        made = chains.made_of(terms, conversation.format, final)
        chain = chain.after(merge, chains.merged_of(made, merge, chain.links[merge.start : merge.end]))
        compaction.notes = [*compaction.notes, *final.notes]
        compaction.dropped_content = [*compaction.dropped_content, *final.dropped_content][:MAX_DROPPED]
    if chain.due(compaction.strategy, bound) is None:
        apply(compaction, chain)
        return
    compaction.work["chain"] = chain.as_json()
    compaction.save()
    _queue(claim, compaction, one.number + 1, kind=PassKind.MERGE)


def _record(claim: Claim, step: Step, result: Result, *, late: bool) -> None:
    """The ledger: every call to a model, failed and late ones too."""
    if step.model is None or not result.called:
        return
    spent = result.spent
    status = "late" if late else "failed" if result.error or result.rejected else "ok"
    called(status)
    call_record(
        tenant_id=claim.tenant_id,
        conversation_id=step.conversation_id,
        compaction_id=step.compaction_id,
        pass_number=step.number,
        model=step.model.name,
        status=status,
        error=result.error.code if result.error else result.rejected,
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost=spent.cost,
        duration_ms=spent.duration_ms,
    )


def _add_late(step: Step, result: Result) -> None:
    """What a late call cost, in the log entry that has its sums already (semantics 10)."""
    spent = result.spent
    Compaction.objects.filter(id=step.compaction_id).exclude(status__in=LIVE).update(
        llm_tokens_in=F("llm_tokens_in") + spent.tokens_in,
        llm_tokens_out=F("llm_tokens_out") + spent.tokens_out,
        cost=F("cost") + (spent.cost or 0),
    )


def _note(claim: Claim, one: Pass, step: Step, result: Result) -> None:
    spent = result.spent
    if result.read is not None:
        one.from_position, one.to_position = result.read
    one.piece, one.output = step.part, result.text
    one.tokens_in += spent.tokens_in
    one.tokens_out += spent.tokens_out
    if spent.cost is not None:
        one.cost = (one.cost or 0) + spent.cost
    one.duration_ms = round((claim.now() - claim.at).total_seconds() * 1000)
    if step.kind == PassKind.SUMMARY and not result.last_chunk:
        one.kind = PassKind.CHUNK  # it turned out to be one of several


def _close(one: Pass, status: PassStatus, error: str = "") -> None:
    move(one, status, error=error)


def _failed(claim: Claim, compaction: Compaction, one: Pass, step: Step, result: Result) -> None:
    """A call that gave nothing: a shorter chunk, another attempt later, or the next model (semantics 7, Retry)."""
    error = result.error
    if error is None or step.model is None:
        raise ValueError("not a failed call")
    if error.overflow and step.reads_span and _shrink(compaction, step, step.model):
        _close(one, PassStatus.FAILED, error.code)
        _queue(claim, compaction, one.number + 1, kind=_read_as(step.kind))
        return
    one.attempts += 1  # only executions that came back with an answer count
    first = one.first_attempt_at = one.first_attempt_at or claim.at
    policy = RetryPolicy(settings.MODEL_ATTEMPTS, settings.MODEL_RETRY_SECONDS)
    now, jitter = claim.now().timestamp(), random.Random()  # noqa: S311 -- no secret
    delay = next_delay(one.attempts, error, first.timestamp(), now, jitter, policy)
    if delay is not None:
        move(one, PassStatus.QUEUED, error=error.code)
        claims.release(claim, delay=timedelta(seconds=delay))
        return
    _give_up_model(claim, compaction, one, error.code)


def _shrink(compaction: Compaction, step: Step, model: Model) -> bool:
    """Halve the chunks; False: they are as small as they get."""
    budget = chunk_size(step, model) // 2
    if budget < SMALLEST_CHUNK:
        return False
    _rechunk(compaction, step.kind, budget)
    compaction.save(update_fields=["work"])
    return True


def _read_as(kind: PassKind) -> PassKind:
    """The kind of a pass that goes on reading where one of this kind stopped."""
    return PassKind.NOTES if kind == PassKind.NOTES else PassKind.SUMMARY


def _rechunk(compaction: Compaction, kind: PassKind, budget: int | None) -> None:
    """Cut what was not read whole anew, into chunks of `budget` tokens; None: of what the next model can take."""
    start = compaction.work["from"]
    if compaction.work["chunk"]:  # inside a message that is read in pieces: again from its beginning
        chunk = PassKind.NOTES if kind == PassKind.NOTES else PassKind.CHUNK
        read = compaction.passes.filter(kind=chunk, status=PassStatus.SUCCEEDED).order_by("-number").first()
        start = start if read is None or read.to_position is None else read.to_position
    compaction.work |= {"chunk_tokens": budget, "from": start, "chunk": 0}


def _give_up_model(claim: Claim, compaction: Compaction, one: Pass, error: str, *, refused: bool = False) -> None:
    """The next model, else the extractive summary, else the end: failed, and nothing changed."""
    following = _next_model(compaction, one, error=error, refused=refused)
    if following is not None:
        _wake_next(claim)


def _next_model(compaction: Compaction, one: Pass, *, error: str, refused: bool = False) -> Pass | None:
    _close(one, PassStatus.FAILED, error)
    models = [name for name in compaction.work["models"] if name != one.model]
    compaction.work["models"] = models
    _rechunk(compaction, PassKind(one.kind), None)
    if one.kind == PassKind.NOTES and refused:
        compaction.work["refused"] = [*compaction.work.get("refused", ()), one.model]
    else:
        compaction.fallback_reason = compaction.fallback_reason or error
    # Summaries that are only too long need no model: what is left of the pass is the cut on sentence edges.
    shortening = one.kind in (PassKind.RESUMMARIZE, PassKind.MERGE)
    if not one.model or (not models and not shortening and not compaction.policy["extractive_fallback"]):
        end(compaction, lock_conversation(compaction), Outcome.FAILED, error)
        return None
    compaction.save(update_fields=["work", "fallback_reason"])
    kind = PassKind(one.kind) if shortening else _read_as(PassKind(one.kind))
    return queue_pass(compaction, number=one.number + 1, kind=kind)


def _go_on(claim: Claim, compaction: Compaction, one: Pass, step: Step, result: Result) -> None:
    """The next chunk after a chunk, a re-summarisation after a summary that is too long."""
    _close(one, PassStatus.SUCCEEDED)
    if result.last_chunk:
        _queue(claim, compaction, one.number + 1, kind=PassKind.RESUMMARIZE)
        return
    _next_chunk(claim, compaction, one, step, result)


def _noted(claim: Claim, compaction: Compaction, one: Pass, step: Step, result: Result) -> None:
    """The ledger has the notes of what was read: the next chunk's, or the summary, which reads the span anew."""
    if result.noted is None:
        raise ValueError("not a pass for notes")
    _close(one, PassStatus.SUCCEEDED)
    compaction.notes = [*compaction.notes, *result.noted.notes]
    compaction.work["ledger"] = notes.as_json(result.noted.ledger)
    if result.last_chunk:
        # Who was refused for notes may still write a good summary.
        compaction.work["models"] = [*compaction.work.pop("refused", ()), *compaction.work["models"]]
        compaction.work |= {"from": compaction.span.first, "chunk": 0, "chunk_tokens": None}
        compaction.save(update_fields=["notes", "work"])
        _queue(claim, compaction, one.number + 1, kind=PassKind.SUMMARY)
        return
    compaction.save(update_fields=["notes"])
    _next_chunk(claim, compaction, one, step, result)


def _next_chunk(claim: Claim, compaction: Compaction, one: Pass, step: Step, result: Result) -> None:
    # The same cuts for all chunks, though the running summary beside them changes its length.
    compaction.work["chunk_tokens"] = chunk_size(step, step.model) if step.model else None
    if result.next_from is None:
        compaction.work["chunk"] = step.chunk + 1
    else:
        compaction.work |= {"from": result.next_from, "chunk": 0}
    compaction.save(update_fields=["work"])
    _queue(claim, compaction, one.number + 1, kind=_read_as(step.kind))


def _queue(claim: Claim, compaction: Compaction, number: int, *, kind: PassKind) -> None:
    queue_pass(compaction, number=number, kind=kind)
    _wake_next(claim)


def _wake_next(claim: Claim) -> None:
    """The next pass is a task of its own."""
    claims.release(claim)
    transaction.on_commit(wake)

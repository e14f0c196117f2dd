"""Running a compaction, one pass per task: begin (a transaction), the work (none), finish (a transaction).

The automaton of compaction and pass is in docs/design.md. Every write after the work is under the fence of the claim: a
late worker's result is refused, and its cost recorded all the same. What follows a result is following.py's.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import F

from compaction_service import logs
from compaction_service.compactions import breakers, claims, leases
from compaction_service.compactions.asking import ask, price
from compaction_service.compactions.ending import end
from compaction_service.compactions.executing import execute
from compaction_service.compactions.following import follow, next_model
from compaction_service.compactions.leases import Claim
from compaction_service.compactions.metrics import PASSES, called, refused
from compaction_service.compactions.models import LIVE, Compaction, Outcome, Pass, PassKind, PassStatus, Status, Work
from compaction_service.compactions.preparing import step_of
from compaction_service.compactions.starting import lock_conversation, open_job
from compaction_service.compactions.states import move
from compaction_service.compactions.steps import Result, Spent, Step
from compaction_service.compactions.wakeup import wake
from compaction_service.conversations.models import Conversation
from compaction_service.llm.breaker import outcome_of
from compaction_service.usage import budgets
from compaction_service.usage.services import call_record
from tenants.models import Tenant
from tenants.scope import required_tenant, tenant_scope
from tenants.selectors import tenant_get, tenant_keep
from tenants.statements import Select

logger = logging.getLogger(__name__)

# Executions of one pass that ended without a word (a killed worker, a lost lease) before the model is given up.
MOST_ATTEMPTS = 5
# Executions that not even a next model or the extractive summary came of: beginning or ending the job itself fails.
LAST_ATTEMPT = 2 * MOST_ATTEMPTS
# Read with every pass.
_CONVERSATION = Select(
    Conversation,
    "id = (select conversation_id from compactions_compaction where tenant_id = %s and id = %s)",
    ending="for update",
)
_CLAIMED = Select(
    Compaction,
    "id = %s and status in ('queued', 'running') and exists "
    "(select from compactions_work where compaction_id = compactions_compaction.id and fence = %s for update)",
)
_LIVE_PASS = Select(Pass, "compaction_id = %s and status in ('queued', 'running')")
_PASS = Select(Pass, "id = %s")
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
        _forget(claim)
        return None
    tenant = tenant_get()
    if compaction.status == Status.QUEUED:
        one = open_job(compaction, tenant, opened=claim.at.timestamp())
        if one is None:
            return None
    else:
        [one] = _LIVE_PASS.rows(compaction.id)
        one.compaction = compaction
    if one.kind not in PassKind.values:  # written by a newer version: for its workers
        claims.release(claim, delay=FOREIGN)
        return None
    one = _callable(claim, compaction, one, tenant)
    if one is None:
        return None
    move(one, PassStatus.RUNNING, started_at=claim.at)
    return one


def _forget(claim: Claim) -> None:
    """Drop the row of a job that has ended; one that another worker has now is its."""
    if not Compaction.objects.filter(id=claim.compaction_id, status__in=LIVE).exists():
        Work.objects.filter(pk=claim.compaction_id).delete()


def _callable(claim: Claim, compaction: Compaction, one: Pass, tenant: Tenant) -> Pass | None:
    """The pass, or the one in its place, whose model may be called now. None: none is left, and the job has ended."""
    if "opened" not in compaction.work:
        compaction.work["opened"] = claim.at.timestamp()
        compaction.save(update_fields=["work"])
    found: Pass | None = one
    if claim.attempts > MOST_ATTEMPTS:
        found = next_model(compaction, one, error="worker_lost")
        Work.objects.filter(pk=claim.compaction_id).update(attempts=1)
    elif one.model and claim.at.timestamp() > compaction.work["opened"] + settings.COMPACTION_DEADLINE:
        compaction.work["models"] = [one.model]  # the others would be too late as well
        found = next_model(compaction, one, error="deadline")
    while found is not None and found.model and not breakers.allows(found.model, tenant, claim.at):
        refused("breaker_open")
        found = next_model(compaction, found, error="breaker_open")
    return found


def _locked(claim: Claim) -> Compaction | None:
    """The claimed compaction, its conversation and row locked, if it is live and the claim is still ours."""
    # The conversation first, as everywhere (docs/design.md, Locks): nobody ends or joins the job meanwhile.
    conversation = _conversation(claim)
    return None if conversation is None else _claimed(claim, conversation)


def _conversation(claim: Claim) -> Conversation | None:
    """The conversation of a claim, locked; None: it was erased."""
    return next(iter(_CONVERSATION.rows(required_tenant(), claim.compaction_id)), None)


def _claimed(claim: Claim, conversation: Conversation) -> Compaction | None:
    for compaction in _CLAIMED.rows(claim.compaction_id, claim.fence):
        compaction.conversation = conversation  # as it is under its lock
        logs.request_id.set(compaction.request_id or None)  # what is logged of the job from here on carries it
        return compaction
    return None


def finish(claim: Claim, step: Step, result: Result, reservation: uuid.UUID | None = None) -> None:
    """Write what a pass came to, if the claim is still ours, and queue what follows in the same transaction."""
    conversation = _conversation(claim)
    if conversation is None and not tenant_keep():
        return  # deleted with all it had: nothing may name it any more
    _write(claim, step, result, None if conversation is None else _claimed(claim, conversation))
    if step.model is not None and result.called:
        breakers.note(step.model.breaker, step.model.name, outcome_of(result.error), claim.now())
        budgets.settle(reservation, result.spent.cost)


def _write(claim: Claim, step: Step, result: Result, compaction: Compaction | None) -> None:
    _record(claim, step, result, late=compaction is None)
    if compaction is None:
        _add_late(step, result)
        logger.info("late result refused", extra={"compaction": str(claim.compaction_id), "pass": step.number})
        return
    [one] = _PASS.rows(step.pass_id)
    one.compaction = compaction
    follow(claim, one, step, result)


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

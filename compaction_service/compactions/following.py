"""What follows the result of a pass: another pass or attempt, another model, the apply, or the end of the job.

All of it in the transaction that writes the result, under the locks of the conversation and the job's row.
"""

from __future__ import annotations

import random
from datetime import timedelta

from django.conf import settings
from django.db import transaction

from compaction_service.compactions import chains, claims
from compaction_service.compactions.applying import apply, describe
from compaction_service.compactions.asking import SMALLEST_CHUNK, chunk_size
from compaction_service.compactions.chains import Chain
from compaction_service.compactions.ending import end
from compaction_service.compactions.leases import Claim
from compaction_service.compactions.models import Compaction, Outcome, Pass, PassKind, PassStatus
from compaction_service.compactions.starting import job_terms, lock_conversation, queue_pass
from compaction_service.compactions.states import move
from compaction_service.compactions.steps import Final, Model, Result, Step
from compaction_service.compactions.wakeup import wake
from compaction_service.conversations.selectors import active_nodes
from compaction_service.engine.summary import notes
from compaction_service.engine.summary.report import MAX_DROPPED
from compaction_service.llm.retry import RetryPolicy, next_delay


def follow(claim: Claim, one: Pass, step: Step, result: Result) -> None:
    """Write the result to its pass, and what comes of it."""
    compaction = one.compaction
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
    following = next_model(compaction, one, error=error, refused=refused)
    if following is not None:
        _wake_next(claim)


def next_model(compaction: Compaction, one: Pass, *, error: str, refused: bool = False) -> Pass | None:
    """Give the pass up and queue one in its place: by the next model, else extractive. None: the job has failed."""
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

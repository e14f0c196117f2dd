"""The tasks: thin, named explicitly, with no arguments, so that any worker of any version can take any message.

What another version puts into a message is ignored. A task that was renamed keeps its old name beside the new one for a
version, as a second registration; a message that nobody knows is dropped, since rows are the work.
"""

from __future__ import annotations

import logging
from typing import Any

from compaction_service.api import idempotency
from compaction_service.compactions import claims, jobs, wakeup
from compaction_service.conversations import recounts, retention
from tenants.scope import platform_scope
from worker import limits, stopping
from worker.app import app

logger = logging.getLogger(__name__)


@app.task(name="compactions.run")
def run(*_args: Any, **_kwargs: Any) -> None:
    """Claim the next due pass, whichever tenant's turn it is, and run it. Nothing due: nothing happens."""
    if stopping.begun():
        wakeup.wake()  # for another worker
        return
    claim = claims.claim()
    if claim is not None:
        jobs.run(claim)


@app.task(name="compactions.sweep")
def sweep(*_args: Any, **_kwargs: Any) -> None:
    """Wake-ups for due rows: heals lost messages, expired leases and retries that have come due.

    Where workers are merely busy these are too many; they expire before the next but one, so none pile up.
    """
    for task, due in ((run.name, claims.due), (recount.name, recounts.due)):
        count = due(limit=limits.SWEEP_WAKES)
        if count:
            wakeup.wake(count, task=task, expires=2 * limits.SWEEP)


@app.task(name=recounts.TASK)
def recount(*_args: Any, **_kwargs: Any) -> None:
    """Recount the next conversation whose model was changed. None due: nothing happens."""
    recounts.run_next()


@app.task(name="conversations.expire")
def expire(*_args: Any, **_kwargs: Any) -> None:
    """Erase the conversations that were untouched for longer than their tenant keeps them. Harmless twice."""
    retention.conversations_expire()


@app.task(name="idempotency.purge")
def purge(*_args: Any, **_kwargs: Any) -> None:
    """Delete answers past their day in small transactions. What a batch leaves, or a lost message, the next run takes.

    An answer past its day is never given again (api/idempotency.py), so running twice or late changes nothing.
    """
    for _ in range(limits.PURGE_BATCHES):
        with platform_scope():
            deleted = idempotency.purge()
        if deleted < idempotency.PURGED_AT_ONCE:
            return

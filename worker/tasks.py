"""The tasks: thin, named explicitly, with no arguments, so that any worker of any version can take any message."""

from __future__ import annotations

import logging

from compaction_service.compactions import claims, jobs, wakeup
from compaction_service.conversations import recounts
from worker import limits
from worker.app import app

logger = logging.getLogger(__name__)


@app.task(name="compactions.run")
def run() -> None:
    """Claim the next due pass, whichever tenant's turn it is, and run it. Nothing due: nothing happens."""
    claim = claims.claim()
    if claim is not None:
        jobs.run(claim)


@app.task(name="compactions.sweep")
def sweep() -> None:
    """Wake-ups for due rows: heals lost messages, expired leases and retries that have come due.

    Where workers are merely busy these are too many; they expire before the next but one, so none pile up.
    """
    for task, due in ((run.name, claims.due), (recount.name, recounts.due)):
        count = due(limit=limits.SWEEP_WAKES)
        if count:
            wakeup.wake(count, task=task, expires=2 * limits.SWEEP)


@app.task(name=recounts.TASK)
def recount() -> None:
    """Recount the next conversation whose model was changed. None due: nothing happens."""
    recounts.run_next()

"""A stop of the worker: passes that run may end within the grace period, then their rows go to the next worker."""

from __future__ import annotations

import logging
import threading
import time

from django.db import connection

from compaction_service.compactions import leases, wakeup

logger = logging.getLogger(__name__)

POLL = 0.1  # seconds
_stopping = threading.Event()


def begun() -> bool:
    """Whether this process is stopping: it takes no more work then."""
    return _stopping.is_set()


def begin(grace: float) -> None:
    """Take no more work, and after `grace` seconds hand back what still runs. Returns at once; safe to call twice.

    The process lives on until its calls have ended or it is killed: what they cost is recorded, their results refused.
    """
    if not _stopping.is_set():
        _stopping.set()
        threading.Thread(target=_wait, args=(grace,), name="hand-back", daemon=True).start()


def _wait(grace: float) -> None:
    end = time.monotonic() + grace
    while time.monotonic() < end:
        if not leases.holds():
            return
        time.sleep(POLL)
    try:
        if count := leases.hand_back():
            wakeup.wake(count)
            logger.info("passes handed back", extra={"count": count})
    except Exception as error:  # noqa: BLE001 -- their leases end by themselves
        logger.warning("passes not handed back", extra={"error": type(error).__name__})
    finally:
        connection.close()

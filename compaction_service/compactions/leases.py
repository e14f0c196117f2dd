"""Claims in the hands of this process, and the heartbeat that keeps their leases (semantics 11)."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from compaction_service.compactions import clock
from compaction_service.compactions.models import Work

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=15)  # a killed worker's pass is taken over after this long at most
HEARTBEAT = 4.0  # seconds; three beats may be lost


@dataclass(frozen=True, slots=True)
class Claim:
    """One claimed compaction: until the fence changes, only its holder may write."""

    compaction_id: uuid.UUID
    tenant_id: uuid.UUID
    fence: uuid.UUID
    attempts: int
    at: datetime = field(default_factory=timezone.now)  # the queue's time when it was claimed
    since: float = field(default_factory=time.monotonic)

    def now(self) -> datetime:
        """The queue's time, by what has passed on this machine since the claim."""
        return self.at + timedelta(seconds=time.monotonic() - self.since)


_held: dict[uuid.UUID, Claim] = {}
_lock = threading.Lock()
_beat: threading.Thread | None = None


@contextmanager
def held(claim: Claim) -> Iterator[None]:
    """Keep the lease of a claim while the block runs, but no longer than a pass may take: then another worker has it.

    One thread beats for all claims of the process.
    """
    global _beat  # noqa: PLW0603 -- one heartbeat per process
    with _lock:
        _held[claim.fence] = claim
        if _beat is None or not _beat.is_alive():
            _beat = threading.Thread(target=_run, name="lease-heartbeat", daemon=True)
            _beat.start()
    try:
        yield
    finally:
        with _lock:
            _held.pop(claim.fence, None)  # handed back meanwhile


def _run() -> None:
    global _beat  # noqa: PLW0603
    pause = threading.Event()
    while not pause.wait(HEARTBEAT):
        with _lock:
            if not _held:
                _beat = None  # told under the lock: this thread is alive a moment longer, and beats no more
                return  # the next claim starts a new one
            oldest = time.monotonic() - settings.PASS_DEADLINE
            fences = [fence for fence, claim in _held.items() if claim.since > oldest]
        try:
            extend(fences)
        except Exception:  # noqa: BLE001 -- the database may be away for a while; the fence decides in the end
            logger.warning("leases not extended", extra={"count": len(fences)})
        finally:
            connection.close()


def extend(fences: list[uuid.UUID]) -> int:
    """Move the ends of these leases; returns how many are still ours."""
    return Work.objects.filter(fence__in=fences).update(lease_until=clock.later(LEASE))


def holds() -> int:
    """How many claims this process has in hand."""
    with _lock:
        return len(_held)


def hand_back() -> int:
    """Free all rows this process holds, for the next worker at once; returns how many. What still comes is late.

    The interrupted executions do not count: nothing was wrong with them.
    """
    with _lock:
        fences = list(_held)
        _held.clear()
    return Work.objects.filter(fence__in=fences).update(
        fence=None, lease_until=None, next_at=clock.later(), attempts=Greatest(F("attempts") - 1, 0)
    )

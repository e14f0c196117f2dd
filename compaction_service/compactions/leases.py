"""Claims in the hands of this process, and the heartbeat that keeps their leases (semantics 11)."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from compaction_service.compactions.models import Work

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=20)  # a killed worker's pass is taken over after this long at most
HEARTBEAT = 5.0  # seconds; three beats may be lost


@dataclass(frozen=True, slots=True)
class Claim:
    """One claimed compaction: until the fence changes, only its holder may write."""

    compaction_id: uuid.UUID
    tenant_id: uuid.UUID
    fence: uuid.UUID
    attempts: int


_held: dict[uuid.UUID, Claim] = {}
_lock = threading.Lock()
_beat: threading.Thread | None = None


@contextmanager
def held(claim: Claim) -> Iterator[None]:
    """Keep the lease of a claim while the block runs. One thread beats for all claims of the process."""
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
            del _held[claim.fence]


def _run() -> None:
    global _beat  # noqa: PLW0603
    pause = threading.Event()
    while not pause.wait(HEARTBEAT):
        with _lock:
            fences = list(_held)
            if not fences:
                _beat = None  # told under the lock: this thread is alive a moment longer, and beats no more
                return  # the next claim starts a new one
        try:
            extend(fences)
        except Exception:  # noqa: BLE001 -- the database may be away for a while; the fence decides in the end
            logger.warning("leases not extended", extra={"count": len(fences)})
        finally:
            connection.close()


def extend(fences: list[uuid.UUID]) -> int:
    """Move the ends of these leases; returns how many are still ours."""
    return Work.objects.filter(fence__in=fences).update(lease_until=timezone.now() + LEASE)

"""The times that must hold together, each with its reason (semantics 11)."""

from __future__ import annotations

from compaction_service.compactions.leases import HEARTBEAT, LEASE
from compaction_service.compactions.steps import CALL_TIMEOUT

SWEEP = 1.0  # seconds between sweeps: what a lost wake-up costs at most
SWEEP_WAKES = 64  # wake-ups a sweep sends at most: a full worker process
PURGE = 600.0  # seconds between purges of stored answers past their day
PURGE_BATCHES = 100  # of one purge at most: it must not hold a worker's thread for long
VISIBILITY_TIMEOUT = (
    900  # seconds until Redis redelivers an unacknowledged message; a redelivered wake-up finds no due row
)


def check() -> None:
    """Model timeout < broker redelivery, heartbeat well under the lease. Raises ValueError at start-up."""
    if not CALL_TIMEOUT < VISIBILITY_TIMEOUT:
        raise ValueError("a model call may outlast the broker's redelivery")
    if not 3 * HEARTBEAT < LEASE.total_seconds() <= 30:
        raise ValueError("the lease must outlast three heartbeats and be at most 30 s")

"""The times that must hold together, each with its reason (semantics 11)."""

from __future__ import annotations

from django.conf import settings

from compaction_service.compactions.leases import HEARTBEAT, LEASE

SWEEP = 1.0  # seconds between sweeps: what a lost wake-up costs at most
SWEEP_WAKES = 96  # wake-ups a sweep sends at most: a full worker process
EXPIRE = 3600.0  # seconds between looks for conversations past their tenant's retention, which is told in days
PURGE = 600.0  # seconds between purges of stored answers past their day
PURGE_BATCHES = 100  # of one purge at most: it must not hold a worker's thread for long


def check() -> None:
    """Heartbeat well under the lease, and the lease over well before a redelivery. Raises ValueError at start-up.

    Model timeout < pass deadline < redelivery is a check of the settings (compaction_service/checks.py).
    """
    if not 3 * HEARTBEAT < LEASE.total_seconds() <= 30:
        raise ValueError("the lease must outlast three heartbeats and be at most 30 s")
    if not settings.PASS_DEADLINE + LEASE.total_seconds() < settings.BROKER_REDELIVERY:
        raise ValueError("BROKER_REDELIVERY must be longer than PASS_DEADLINE and a lease")

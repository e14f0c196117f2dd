"""Who held which job, and when a lease ended with nobody to extend it: how long recovery took."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

import psycopg

from compaction_service.compactions.leases import LEASE
from tests.reliability.cluster import Cluster

EVERY_S = 0.2
_LOOK = """
select compaction_id, fence, extract(epoch from lease_until)::float8, extract(epoch from clock_timestamp())::float8
from compactions_work where fence is not null
"""


@dataclass
class Held:
    """One claim: when it was first seen, and when its lease would have ended as last seen."""

    seen: float
    until: float


@dataclass
class Interrupted:
    """A claim whose holder went silent: nothing was heard of it from `since` on, another took over at `taken`."""

    compaction: UUID
    since: float
    taken: float


@dataclass
class Watch(threading.Thread):
    """Looks at the claims a few times a second."""

    cluster: Cluster
    claims: dict[UUID, dict[UUID, Held]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(name="watch", daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        while not self.over.is_set():
            try:
                with psycopg.connect(self.cluster.owner_url, autocommit=True, connect_timeout=5) as connection:
                    while not self.over.wait(EVERY_S):
                        for compaction, fence, until, now in connection.execute(_LOOK):
                            held = self.claims.setdefault(compaction, {}).setdefault(fence, Held(now, until))
                            held.until = until
            except psycopg.OperationalError:  # it is being restarted
                time.sleep(EVERY_S)

    def interrupted(self) -> list[Interrupted]:
        """Every claim that was lost to the end of its lease and taken over, in no order."""
        found = []
        for compaction, fences in self.claims.items():
            held = sorted(fences.values(), key=lambda one: one.seen)
            for lost, following in pairwise(held):
                if following.seen >= lost.until - EVERY_S:
                    found.append(Interrupted(compaction, lost.until - LEASE.total_seconds(), following.seen))
        return found

"""Moments chosen by SQL: a row lock held by the test, and what waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.reliability.cluster import Cluster, until

_WAITING = """
select count(*) as n from pg_stat_activity
where wait_event_type = 'Lock' and query ilike '%%conversations_conversation%%'
"""


@contextmanager
def locked(cluster: Cluster, path: str) -> Iterator[None]:
    """Hold the row lock of a conversation: plans, applies and appends to it wait."""
    identity = path.rpartition("/")[2]
    with psycopg.connect(cluster.owner_url) as connection:
        connection.execute("select 1 from conversations_conversation where id = %s for update", [identity])
        yield


def until_waiting(cluster: Cluster, count: int = 1) -> None:
    """Wait until `count` transactions wait for a conversation's lock."""
    until("somebody waits for the lock", lambda: cluster.sql(_WAITING)[0]["n"] >= count)


def work(cluster: Cluster, entry: str) -> dict[str, Any] | None:
    """The work row of a compaction, None once it has ended."""
    rows = cluster.sql("select * from compactions_work where compaction_id = %s", entry.rpartition("/")[2])
    return rows[0] if rows else None


def until_claimed(cluster: Cluster, entry: str) -> None:
    until("the job is claimed", lambda: (row := work(cluster, entry)) is not None and row["fence"] is not None)


def calls(cluster: Cluster, entry: str) -> list[str]:
    """Statuses in the ledger of a compaction's calls, oldest first."""
    query = "select status from usage_call where compaction_id = %s order by id"
    return [row["status"] for row in cluster.sql(query, entry.rpartition("/")[2])]

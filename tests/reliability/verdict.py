"""What is counted when the dust has settled: by SQL over all tenants, as the owner of the database sees them."""

from __future__ import annotations

import json

from compaction_service.usage.models import OUTCOMES
from tests.reliability.client import PATIENCE_S
from tests.reliability.cluster import Cluster, Never, until

_STUCK = """
select id::text as what from compactions_compaction where status in ('queued', 'running')
union all select 'work of ' || compaction_id from compactions_work
union all select 'conversation ' || id from conversations_conversation
  where compaction_live is not null or compaction_state <> 'idle'
union all select 'pass ' || p.id from compactions_pass p join compactions_compaction c on c.id = p.compaction_id
  where p.status in ('queued', 'running') and c.status not in ('queued', 'running')
"""

# A compaction writes one node over its span, and a merge one over what it merged: never two over the same.
_TWICE = {
    "two nodes of one compaction over one span": """
        select compaction_id::text || ' ' || from_position || '..' || to_position as what from compactions_summary
        group by compaction_id, from_position, to_position, level having count(*) > 1""",
    "a position under two active nodes": """
        select a.conversation_id::text || ' ' || a.from_position || '..' || a.to_position as what
        from compactions_summary a join compactions_summary b
          on a.conversation_id = b.conversation_id and a.id < b.id and a.state = 'active' and b.state = 'active'
          and int4range(a.from_position, a.to_position, '[]') && int4range(b.from_position, b.to_position, '[]')""",
    "a node of a compaction that did not apply": """
        select s.compaction_id::text as what from compactions_summary s
        join compactions_compaction c on c.id = s.compaction_id where c.outcome <> 'applied'""",
    "an applied compaction without a node": """
        select c.id::text as what from compactions_compaction c where c.outcome = 'applied'
          and not exists (select 1 from compactions_summary s where s.compaction_id = c.id)""",
    "a pass that succeeded after its compaction ended otherwise": """
        select p.id::text as what from compactions_pass p join compactions_compaction c on c.id = p.compaction_id
        where p.status = 'succeeded' and p.started_at > c.finished_at""",
}

# What usage says of a conversation against its rows: an end or an append that counted twice, or not at all, shows here.
# A fork is a copy and used nothing: its copied entries and messages are in no day.
_USAGE = """
select d.conversation_id::text as what, {differences}
from (select conversation_id, sum(messages) as messages, {day_sums} from usage_day group by 1) d
join (select conversation_id, {row_counts} from compactions_compaction group by 1) c using (conversation_id)
where {differ}
"""


def stuck(cluster: Cluster) -> list[str]:
    return [row["what"] for row in cluster.sql(_STUCK)]


def until_quiet(cluster: Cluster, *, within: float = PATIENCE_S) -> list[str]:
    """Wait until no compaction is live; what is stuck after that time."""
    try:
        until("nothing is live", lambda: not stuck(cluster), within=within, every=0.5)
    except Never:
        return stuck(cluster)
    return []


def double_applied(cluster: Cluster) -> list[str]:
    """Whatever was applied or counted twice."""
    found = [f"{name}: {row['what']}" for name, query in _TWICE.items() for row in cluster.sql(query)]
    query = _USAGE.format(
        differences=", ".join(f"d.{one} as day_{one}, c.{one} as row_{one}" for one in OUTCOMES),
        day_sums=", ".join(f"sum({one}) as {one}" for one in OUTCOMES),
        row_counts=", ".join(f"count(*) filter (where outcome = '{one}') as {one}" for one in OUTCOMES),
        differ=" or ".join(f"d.{one} <> c.{one}" for one in OUTCOMES),
    )
    return found + [f"usage: {row}" for row in cluster.sql(query) if row["what"] not in cluster.forks]


def unsound(cluster: Cluster) -> dict[str, list[str]]:
    """What breaks the product's own invariants, by conversation."""
    found: dict[str, list[str]] = json.loads(cluster.python("tests.reliability.audit", *sorted(cluster.forks)))
    return found

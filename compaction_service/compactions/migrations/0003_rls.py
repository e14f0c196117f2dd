"""Row-level security, and the constraint that keeps active summaries disjoint."""

from __future__ import annotations

from django.db import migrations
from django.db.migrations.operations.base import Operation

from tenants import rls

# Equality of a uuid inside an exclusion constraint would need an extension that not every server has; a range over
# "<conversation>:<position>" as text needs none. An apply retires the old nodes before it writes the new one.
DISJOINT = """
create type summary_span as range (subtype = text, collation = "C");
alter table compactions_summary add constraint summary_disjoint exclude using gist (
  summary_span(
    (conversation_id::text || lpad(from_position::text, 10, '0')) collate "C",
    (conversation_id::text || lpad(to_position::text, 10, '0')) collate "C",
    '[]'
  ) with &&
) where (state = 'active')
"""
UNDO = "alter table compactions_summary drop constraint summary_disjoint; drop type summary_span"


class Migration(migrations.Migration):
    dependencies = [("compactions", "0002_initial"), ("tenants", "0002_rls")]

    operations: list[Operation] = [
        rls.tenant_table("compactions_compaction"),
        rls.tenant_table("compactions_pass"),
        rls.tenant_table("compactions_summary"),
        # The queue holds no text, and a claim must see all tenants to be fair (docs/design.md).
        rls.shared_table("compactions_work", app_rights=rls.RIGHTS),
        migrations.RunSQL(DISJOINT, UNDO),
    ]

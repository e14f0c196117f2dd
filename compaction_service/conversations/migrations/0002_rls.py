"""Row-level security."""

from __future__ import annotations

from django.db import migrations
from django.db.migrations.operations.base import Operation

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_initial"), ("tenants", "0002_rls")]

    operations: list[Operation] = [
        rls.tenant_table("conversations_conversation"),
        rls.tenant_table("conversations_message"),
        # The row is updated by every append: room on its page keeps those updates off the indexes.
        migrations.RunSQL(
            "alter table conversations_conversation set (fillfactor = 70)",
            "alter table conversations_conversation reset (fillfactor)",
        ),
    ]

"""Row-level security."""

from __future__ import annotations

from django.db import migrations
from django.db.migrations.operations.base import Operation

from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("usage", "0001_initial"), ("tenants", "0002_rls")]

    operations: list[Operation] = [rls.tenant_table("usage_call"), rls.tenant_table("usage_day")]

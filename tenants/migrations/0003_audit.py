import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import compaction_service.ids
import tenants.scope
from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_rls")]

    operations = [
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.UUIDField(default=compaction_service.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("action", models.CharField(max_length=40)),
                ("actor", models.CharField(max_length=255)),
                ("target", models.CharField(blank=True, max_length=255)),
                ("changed", django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), default=list, size=None)),
                ("request_id", models.CharField(blank=True, max_length=128)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("tenant", models.ForeignKey(db_constraint=False, db_index=False, default=tenants.scope.current_tenant, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant")),
            ],
            options={"indexes": [models.Index(fields=["tenant", "id"], name="tenants_audit_tenant")]},
        ),
        rls.tenant_table("tenants_auditevent", app_rights="select, insert"),
    ]

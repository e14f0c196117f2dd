import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import compaction_service.ids
import tenants.scope
from tenants import rls


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_audit"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Member",
            fields=[
                ("id", models.UUIDField(default=compaction_service.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ("role", models.CharField(choices=[("viewer", "Viewer"), ("reviewer", "Reviewer"), ("owner", "Owner")], default="viewer", max_length=16)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("tenant", models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="tenants.tenant")),
                ("user", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL)),
            ],
            options={"abstract": False},
        ),
        rls.tenant_table("tenants_member", app_rights="select"),
    ]

"""The roles, who may touch which table, and the one door before the tenant is known."""

from __future__ import annotations

from django.db import migrations
from django.db.migrations.operations.base import Operation

from tenants import rls

AUTHENTICATE = """
returns table (
  key_id uuid, key_name varchar, digest bytea, pepper smallint, scopes varchar[], expires_at timestamptz,
  revoked_at timestamptz, last_used_at timestamptz, tenant_id uuid, name varchar, status varchar, policy jsonb,
  summarizer jsonb, redaction boolean, retention_days integer, limits jsonb, weight smallint, created_at timestamptz
) language plpgsql stable strict security definer set search_path = pg_catalog, public, pg_temp as $body$
begin
  return query
  select k.id, k.name, k.digest, k.pepper, k.scopes, k.expires_at, k.revoked_at, k.last_used_at, t.id, t.name,
         t.status, t.policy, t.summarizer, t.redaction, t.retention_days, t.limits, t.weight, t.created_at
  from public.tenants_apikey k join public.tenants_tenant t on t.id = k.tenant_id
  where k.prefix = wanted;
end $body$
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions", "0001_initial"),
    ]

    operations: list[Operation] = [
        rls.create_roles(),
        # The application may read its tenant's row and change the tenant's own settings; limits are the platform's.
        rls.tenant_table(
            "tenants_tenant",
            column="id",
            app_rights="select, update (policy, summarizer, summarizer_key, redaction, retention_days)",
        ),
        rls.tenant_table("tenants_apikey"),
        rls.platform_table(
            "tenants_platformkey",
            "auth_user",
            "auth_group",
            "auth_permission",
            "auth_user_groups",
            "auth_user_user_permissions",
            "auth_group_permissions",
            "django_admin_log",
            "django_content_type",
            "django_session",
        ),
        rls.shared_table("django_migrations"),  # readiness compares it with the files
        rls.security_definer("public.tenants_authenticate(wanted text)", AUTHENTICATE),
    ]

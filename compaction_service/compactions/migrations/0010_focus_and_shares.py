from django.db import migrations, models

from tenants import rls

FUNCTION = "public.compactions_shares(wanted uuid[])"
BODY = """
returns table (id uuid, weight smallint, in_flight bigint)
language sql stable strict security definer set search_path = pg_catalog, public, pg_temp as $body$
  select t.id, t.weight, (t.limits->>'compactions_in_flight')::bigint
  from public.tenants_tenant t where t.id = any(wanted){0}
$body$
"""
BEFORE = rls.security_definer(FUNCTION, BODY.format(""))
# A suspended tenant has no share: its jobs are not claimed, and wait until it is active again.
SHARES = rls.security_definer(FUNCTION, BODY.format(" and t.status = 'active'"))


class Migration(migrations.Migration):

    dependencies = [
        ('compactions', '0009_summaries_by_tenant'),
        ('tenants', '0004_members'),
    ]

    operations = [
        migrations.AddField(
            model_name='compaction',
            name='focus_from',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.RunSQL(BEFORE.reverse_sql, BEFORE.sql),
        SHARES,
    ]

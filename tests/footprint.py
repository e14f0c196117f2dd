"""All rows of a tenant, over every table of the database that has any: as the platform's role sees them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connections

from tenants.rls import quoted
from tenants.scope import platform_scope

_TABLES = """
select c.relname, c.relrowsecurity, c.relforcerowsecurity,
       (select count(*) from pg_policy p where p.polrelid = c.oid)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'public' and c.relkind in ('r', 'p')
  and (c.relname = 'tenants_tenant' or exists (
    select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped))
order by c.relname
"""


@dataclass(frozen=True)
class Table:
    """A table with a tenant's rows."""

    name: str
    enabled: bool  # row-level security
    forced: bool  # for its owner too
    policies: int

    @property
    def sql(self) -> str:
        return quoted(self.name)

    @property
    def column(self) -> str:
        """The column that says whose a row is."""
        return "id" if self.name == "tenants_tenant" else "tenant_id"


@cache
def tables() -> list[Table]:
    """Every table that has a tenant, by the owner's view of the catalog: the application's role may not see all."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(_TABLES)
        return [Table(*row) for row in cursor.fetchall()]


def rows_of(tenant_id: UUID) -> dict[str, list[Any]]:
    """The tenant's rows of each table as JSON, in a fixed order."""
    found = {}
    with platform_scope(), connections["platform"].cursor() as cursor:
        for table in tables():
            one = f"select to_jsonb(t)::text from {table.sql} t where {quoted(table.column)} = %s"  # noqa: S608
            cursor.execute(one, [tenant_id])
            found[table.name] = sorted(row[0] for row in cursor.fetchall())
    return {name: [json.loads(row) for row in rows] for name, rows in found.items()}

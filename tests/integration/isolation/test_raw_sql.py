"""Raw SQL under the application's role, over every table with a tenant: with no tenant set, and with the wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import ProgrammingError, connection, connections, transaction

from tenants.scope import tenant_scope
from tests.footprint import Table, rows_of, tables
from tests.inprocess import Service
from tests.integration.isolation.conftest import House

# A session without a tenant (a worker looking for work) sees all rows of these: they hold no text (docs/design.md).
DIRECTORIES = {"compactions_turn", "compactions_work", "conversations_recount"}
DEFINER = """
select p.proname, p.proconfig is not null and p.proconfig::text like '%search_path=pg_catalog%'
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where p.prosecdef and n.nspname not in ('pg_catalog', 'information_schema')
"""
GRANTS = """
select c.relname, privilege_type from pg_class c join pg_namespace n on n.oid = c.relnamespace,
  lateral aclexplode(c.relacl) a where n.nspname = 'public' and c.relkind in ('r', 'p', 'v', 'm')
  and a.grantee in (0, (select oid from pg_roles where rolname = %s))
"""


@contextmanager
def _session(tenant_id: UUID | None) -> Iterator[Any]:
    """A cursor under the application's role: of this tenant, or of none. Nothing that it does stays."""
    assert connection.settings_dict["USER"] == settings.APP_ROLE
    if tenant_id is None:
        with transaction.atomic(), connection.cursor() as cursor:
            yield cursor
            transaction.set_rollback(True)
    else:
        with tenant_scope(tenant_id), connection.cursor() as cursor:
            yield cursor
            transaction.set_rollback(True)


def _refused(tenant_id: UUID | None, statement: str, *params: Any) -> bool:
    """Whether PostgreSQL refuses it for row-level security or for want of a right."""
    try:
        with _session(tenant_id) as cursor:
            cursor.execute(statement, params)
    except ProgrammingError as error:
        assert "row-level security" in str(error) or "permission denied" in str(error), error  # noqa: PT017
        return True
    return False


def _touched(tenant_id: UUID | None, statement: str, *params: Any) -> int:
    """How many rows a statement sees or changes; one that is refused, none."""
    try:
        with _session(tenant_id) as cursor:
            cursor.execute(statement, params)
            return int(cursor.rowcount)
    except ProgrammingError as error:
        assert "permission denied" in str(error), error  # noqa: PT017
        return 0


def _holes(table: Table, row: Any, owner: UUID, caller: UUID | None) -> list[str]:
    """What a caller can do to a row of `owner` in this table."""
    name, mine = table.sql, f'"{table.column}" = %s'
    found = []
    # An owner that moves to its own value changes no row, and asks for the same rights.
    for what, statement, params in (
        ("select", f"select 1 from {name} where {mine}", [owner]),  # noqa: S608
        ("select all", f"select 1 from {name} where {mine} or true", [owner]),  # noqa: S608
        ("update", f'update {name} set "{table.column}" = "{table.column}" where {mine}', [owner]),  # noqa: S608
        ("delete", f"delete from {name} where {mine}", [owner]),  # noqa: S608
    ):
        touched = _touched(caller, statement, *params)
        if what == "select all" and caller is not None:
            touched -= _touched(caller, f"select 1 from {name} where {mine}", caller)  # noqa: S608
        if touched:
            found.append(f"{what} {table.name}")
    insert = f"insert into {name} select * from jsonb_populate_record(null::{name}, %s::jsonb)"  # noqa: S608
    if not _refused(caller, insert, json.dumps(row)):
        found.append(f"insert {table.name}")
    return found


def test_tables__all_of_them__have_a_row_to_steal(house: House) -> None:
    assert [name for name, rows in rows_of(house.member.id).items() if not rows] == []


def test_tables__all_of_them__are_under_forced_security(db: None) -> None:
    assert [one for one in tables() if (one.enabled, one.forced, one.policies) != (True, True, 2)] == []


def test_raw_sql__no_tenant_or_another__reads_and_changes_nothing_of_any_table(house: House, burglar: Service) -> None:
    before = rows_of(house.member.id)
    tried, holes = 0, []
    for table in tables():
        for row in before[table.name][:1]:
            for caller in (None, burglar.tenant_id):
                if caller is None and table.name in DIRECTORIES:
                    continue
                holes += _holes(table, row, house.member.id, caller)
                tried += 5
    assert holes == []
    assert tried >= 100
    assert rows_of(house.member.id) == before


def test_raw_sql__own_rows__can_be_given_to_nobody(house: House, burglar: Service) -> None:
    given = []
    for table in tables():
        statement = f'update {table.sql} set "{table.column}" = %s'  # noqa: S608
        if not _refused(house.member.id, statement, burglar.tenant_id):
            given.append(table.name)
    assert given == []


def test_directories__columns__hold_ids_numbers_and_times_only(db: None) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "select distinct data_type from information_schema.columns where table_name = any(%s)", [list(DIRECTORIES)]
        )
        kinds = {row[0] for row in cursor.fetchall()}
    assert kinds <= {"uuid", "smallint", "integer", "double precision", "timestamp with time zone"}


def test_functions__that_run_as_another_role__are_two_with_a_fixed_path(db: None) -> None:
    """The look-up of a key, and weights and limits for claims."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(DEFINER)
        assert sorted(cursor.fetchall()) == [("compactions_shares", True), ("tenants_authenticate", True)]


def test_rights__of_the_application__reach_no_table_but_these(db: None) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(GRANTS, [settings.APP_ROLE])
        rights = cursor.fetchall()
    of_tenants = {table.name for table in tables()}
    assert {name for name, _ in rights} - of_tenants == {"django_migrations", "registry_model"}
    assert {right for name, right in rights if name not in of_tenants} == {"SELECT"}
    assert {right for _, right in rights} <= {"SELECT", "INSERT", "UPDATE", "DELETE"}


def test_setting__of_a_scope__ends_with_its_transaction(house: House) -> None:
    with tenant_scope(house.member.id), connection.cursor() as cursor:
        cursor.execute("select current_setting('app.tenant')")
        assert cursor.fetchone() == (str(house.member.id),)
    with connection.cursor() as cursor:
        cursor.execute("select coalesce(current_setting('app.tenant', true), '')")
        assert cursor.fetchone() == ("",)

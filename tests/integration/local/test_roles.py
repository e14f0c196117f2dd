from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from compaction_service.local import environment, roles
from compaction_service.local.errors import StackError
from compaction_service.local.roles import Role
from tests.stack import changed


@pytest.fixture
def owner_url() -> str:
    return changed(os.environ["DATABASE_URL"], dbname=f"roles_{uuid4().hex}")


@pytest.fixture
def logins(owner_url: str) -> Iterator[tuple[Role, Role]]:
    """The two roles of a database of this test's own; removed afterwards."""
    values = environment.complete({}, {"DATABASE_URL": owner_url}, {})
    app, platform = (roles.role_of(name, values[name]) for name in environment.ROLES)
    yield app, platform
    roles.drop_database_and_roles(owner_url, app, platform)


def execute(url: str, statement: str, *names: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
        return cursor.fetchall() if cursor.description else []


def test_ensure__nothing_there__makes_roles_that_can_log_in_and_no_more(
    owner_url: str, logins: tuple[Role, Role]
) -> None:
    roles.ensure_database(owner_url)
    roles.ensure_roles(owner_url, *logins)

    for role in logins:
        rights = "select rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolcanlogin from pg_roles"
        assert execute(role.url, f"{rights} where rolname = current_user") == [(False, False, False, False, True)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute(role.url, "create table public.mine ()")


def test_ensure__a_table_no_migration_granted__stays_closed(owner_url: str, logins: tuple[Role, Role]) -> None:
    roles.ensure_database(owner_url)
    roles.ensure_roles(owner_url, *logins)
    execute(owner_url, "create table public.forgotten ()")

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(logins[0].url, "select * from public.forgotten")


def test_ensure__run_again__changes_nothing(owner_url: str, logins: tuple[Role, Role]) -> None:
    for _ in range(2):
        roles.ensure_database(owner_url)
        roles.ensure_roles(owner_url, *logins)

    assert execute(logins[0].url, "select 1") == [(1,)]


def test_ensure__role_bypasses_row_level_security__is_refused(owner_url: str, logins: tuple[Role, Role]) -> None:
    roles.ensure_database(owner_url)
    execute(owner_url, "create role {} login bypassrls", logins[0].name)

    with pytest.raises(StackError, match="BYPASSRLS"):
        roles.ensure_roles(owner_url, *logins)


def test_ensure__owner_may_not_create_roles__says_what_to_run_without_the_password(
    owner_url: str, logins: tuple[Role, Role]
) -> None:
    roles.ensure_database(owner_url)
    plain = f"{logins[0].name[:50]}_owner"
    execute(owner_url, "create role {} login", plain)
    as_plain = changed(owner_url, user=plain)
    try:
        with pytest.raises(StackError) as caught:
            roles.ensure_roles(as_plain, *logins)
    finally:
        execute(owner_url, "drop role {}", plain)

    assert f'CREATE ROLE "{logins[0].name}" LOGIN NOSUPERUSER NOBYPASSRLS' in str(caught.value)
    assert logins[0].password not in str(caught.value)


def test_ensure_database__server_away__is_an_error_for_a_person() -> None:
    with pytest.raises(StackError, match="DATABASE_URL cannot be used"):
        roles.ensure_database("postgresql://u@127.0.0.1:1/compaction")


def test_drop__others_are_connected__removes_database_and_roles(owner_url: str, logins: tuple[Role, Role]) -> None:
    roles.ensure_database(owner_url)
    roles.ensure_roles(owner_url, *logins)
    with psycopg.connect(logins[0].url):
        roles.drop_database_and_roles(owner_url, *logins)

    with pytest.raises(psycopg.OperationalError):
        execute(replace(logins[0]).url, "select 1")
    assert not execute(
        changed(owner_url, dbname="postgres"),
        f"select from pg_roles where rolname = '{conninfo_to_dict(logins[0].url)['user']}'",
    )

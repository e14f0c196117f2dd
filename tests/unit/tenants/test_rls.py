"""What PostgreSQL itself refuses, whatever Python does. (Over every table: tests/integration/isolation.)"""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import ProgrammingError, connection, connections, transaction

from compaction_service import checks
from tenants.rls import quoted
from tenants.scope import tenant_scope

PLATFORM_ONLY = ["tenants_platformkey", "auth_user", "django_session", "django_admin_log"]


def _rows(query: str, *params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        return list(cursor.fetchall()) if cursor.description else [cursor.rowcount]


def test_raw_sql__another_tenant_set__sees_and_changes_none_of_the_first(tenant: Any, stranger: Any) -> None:
    with tenant_scope(stranger.id):
        assert _rows("select id from tenants_apikey where tenant_id = %s", tenant.id) == []
        assert _rows("select id from tenants_tenant where id = %s", tenant.id) == []
        assert _rows("update tenants_apikey set name = 'x' where tenant_id = %s", tenant.id) == [0]
        assert _rows("delete from tenants_apikey where tenant_id = %s", tenant.id) == [0]


def test_raw_sql__insert_for_another_tenant__fails(tenant: Any, stranger: Any) -> None:
    insert = """insert into api_idempotency (tenant_id, key, fingerprint, status, headers, body, encrypted, created_at)
                values (%s, 'k', '', 200, '{}', '', false, now())"""
    with pytest.raises(ProgrammingError, match="row-level security"), tenant_scope(stranger.id):
        _rows(insert, tenant.id)
    with pytest.raises(ProgrammingError, match="row-level security"):
        _rows(insert, tenant.id)


def test_raw_sql__row_moved_to_another_tenant__fails(tenant: Any, stranger: Any) -> None:
    with pytest.raises(ProgrammingError, match="row-level security"), tenant_scope(tenant.id):
        _rows("update tenants_apikey set tenant_id = %s", stranger.id)


@pytest.mark.parametrize("table", PLATFORM_ONLY)
def test_raw_sql__platform_table__is_denied(db: None, table: str) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"):
        _rows(f"select count(*) from {quoted(table)}")  # noqa: S608


@pytest.mark.parametrize("change", ["status = 'active'", "limits = '{}'", "weight = 9", "name = 'x'"])
def test_raw_sql__tenant_changes_what_the_platform_decides__is_denied(tenant: Any, change: str) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), tenant_scope(tenant.id):
        _rows(f"update tenants_tenant set {change}")  # noqa: S608


def test_raw_sql__application_takes_the_platform_role__is_denied(settings: Any, db: None) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        _rows(f"set local role {quoted(settings.PLATFORM_ROLE)}")


def test_authenticate__known_prefix__gives_one_row_and_no_provider_key(tenant: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("select * from tenants_authenticate(%s)", [tenant.key.split("_")[1]])
        rows, columns = cursor.fetchall(), [column.name for column in cursor.description or []]
    assert len(rows) == 1
    assert "summarizer_key" not in columns


def test_assert_safe_role__application_role__passes(db: None) -> None:
    checks.assert_safe_role.cache_clear()
    checks.assert_safe_role()


@pytest.mark.parametrize("alias", ["owner", "platform"])
def test_assert_safe_role__role_that_could_see_other_tenants__refuses(
    alias: str, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks.assert_safe_role.cache_clear()
    monkeypatch.setattr(checks, "connections", {"default": connections[alias]})
    with pytest.raises(ImproperlyConfigured, match="not isolated"):
        checks.assert_safe_role()
    checks.assert_safe_role.cache_clear()

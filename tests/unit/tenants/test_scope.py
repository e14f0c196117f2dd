from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connections

from compaction_service.routers import current_alias
from tenants import services
from tenants.models import ApiKey, Tenant
from tenants.scope import NoTenantInScope, WrongScope, current_tenant, platform_scope, tenant_scope

QUERIES: list[Callable[[], Any]] = [
    ApiKey.objects.all,
    ApiKey.objects.count,
    lambda: ApiKey.objects.filter(name="x"),
    lambda: ApiKey.objects.exclude(name="x"),
    lambda: ApiKey.objects.get(name="x"),
    ApiKey.objects.first,
    lambda: ApiKey.objects.create(name="x"),
    lambda: ApiKey.objects.bulk_create([]),
    lambda: ApiKey.objects.update(name="x"),
    lambda: ApiKey.objects.values("id"),
    lambda: ApiKey.objects.raw("select 1"),
    lambda: ApiKey.objects.using("platform"),
    lambda: ApiKey().save(),
]


@pytest.mark.parametrize("query", QUERIES)
def test_manager__no_tenant_in_scope__raises(query: Callable[[], Any]) -> None:
    with pytest.raises(NoTenantInScope):
        query()


def test_manager_none__no_tenant_in_scope__is_empty() -> None:
    assert list(ApiKey.objects.none()) == []


def test_unscoped_manager__application_role__raises() -> None:
    with pytest.raises(WrongScope):
        ApiKey.unscoped.all()


def test_tenant_scope__two_tenants__each_sees_its_own(tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant.id):
        mine = set(ApiKey.objects.values_list("tenant_id", flat=True))
    with tenant_scope(stranger.id):
        theirs = set(ApiKey.objects.values_list("tenant_id", flat=True))
    assert (mine, theirs) == ({tenant.id}, {stranger.id})


def test_tenant_scope__same_tenant_inside__joins(tenant: Any) -> None:
    with tenant_scope(tenant.id), tenant_scope(tenant.id):
        assert ApiKey.objects.count() == 2


def test_tenant_scope__another_tenant_inside__raises(tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant.id), pytest.raises(WrongScope), tenant_scope(stranger.id):
        pass


def test_tenant_scope__exception__rolls_back_and_ends(tenant: Any) -> None:
    def fail() -> None:
        with tenant_scope(tenant.id):
            services.key_create(["read"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert current_tenant() is None
    with tenant_scope(tenant.id):
        assert ApiKey.objects.count() == 2


def test_tenant_scope__inside_an_open_transaction__leaves_no_tenant_behind(tenant: Any) -> None:
    with platform_scope():
        with tenant_scope(tenant.id):
            assert _setting("platform") == str(tenant.id)
        assert _setting("platform") == ""


def test_save__row_of_another_tenant__raises(tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant.id), pytest.raises(WrongScope):
        ApiKey(tenant_id=stranger.id).save()


def test_platform_scope__inside_a_tenants__raises(tenant: Any) -> None:
    with tenant_scope(tenant.id), pytest.raises(WrongScope), platform_scope():
        pass


def test_platform_scope__unscoped__sees_all_tenants(tenant: Any, stranger: Any) -> None:
    with platform_scope():
        found = set(ApiKey.unscoped.values_list("tenant_id", flat=True))
    assert {tenant.id, stranger.id} <= found
    assert current_alias.get() == "default"


def test_platform_scope__exception__rolls_back(tenant: Any) -> None:
    def fail() -> None:
        with platform_scope():
            services.tenant_create(f"{tenant.tenant.name} too")
            services.tenant_create(tenant.tenant.name)

    with pytest.raises(IntegrityError):
        fail()
    with platform_scope():
        assert not Tenant.objects.filter(name=f"{tenant.tenant.name} too").exists()


def _setting(alias: str) -> str:
    with connections[alias].cursor() as cursor:
        cursor.execute("select current_setting('app.tenant', true)")
        return str(cursor.fetchone()[0])

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from tenants import selectors, services
from tenants.limits import LimitError, Limits, check, limits_of
from tenants.models import ApiKey, Tenant
from tenants.scope import platform_scope, tenant_scope


def _alive(secret: str, after: timedelta = timedelta()) -> bool:
    return selectors.key_find(secret, timezone.now() + after) is not None


def test_key_find__good_key__gives_the_tenant_in_one_round_trip(tenant: Any, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        found = selectors.key_find(tenant.key, timezone.now())
    assert found is not None
    assert found.principal.tenant == tenant.tenant
    assert found.principal.tenant.policy == {}
    assert found.principal.scopes == {"read", "write", "admin"}
    assert "summarizer_key" in found.principal.tenant.get_deferred_fields()


def test_key_find__secret_of_another_key_behind_the_prefix__is_none(tenant: Any) -> None:
    prefix = "_".join(tenant.key.split("_")[:2])
    assert not _alive(f"{prefix}_{tenant.read_key.split('_', 2)[2]}")
    assert not _alive(f"ck_{'0' * 12}_{tenant.key.split('_', 2)[2]}")


def test_key_create__expiry__ends_the_key(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        issued = services.key_create(["read"], expires_at=timezone.now() + timedelta(hours=1))
    assert _alive(issued.secret)
    assert not _alive(issued.secret, after=timedelta(hours=2))


def test_key_revoke__key__ends_it_once(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        issued = services.key_create(["read"])
        assert services.key_revoke(issued.key.id)
        assert not services.key_revoke(issued.key.id)
    assert not _alive(issued.secret)


def test_key_revoke__key_of_another_tenant__is_not_found(tenant: Any, stranger: Any) -> None:
    with tenant_scope(tenant.id):
        issued = services.key_create(["read"])
    with tenant_scope(stranger.id):
        assert not services.key_revoke(issued.key.id)
    assert _alive(issued.secret)


def test_key_rotate__overlap__both_work_until_it_ends(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        old = services.key_create(["write"], "ci")
        new = services.key_rotate(old.key.id, timedelta(hours=1))
    assert new is not None
    assert (new.key.name, new.key.scopes) == ("ci", ["write"])
    assert _alive(old.secret)
    assert not _alive(old.secret, after=timedelta(hours=2))
    assert _alive(new.secret, after=timedelta(hours=2))


def test_key_rotate__key_that_expires_sooner__is_not_prolonged(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        end = timezone.now() + timedelta(minutes=1)
        old = services.key_create(["read"], expires_at=end)
        services.key_rotate(old.key.id, timedelta(hours=1))
        assert ApiKey.objects.get(id=old.key.id).expires_at == end


def test_key_rotate__revoked_key__is_none(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        old = services.key_create(["read"])
        services.key_revoke(old.key.id)
        assert services.key_rotate(old.key.id, timedelta()) is None


def test_tenant_update__policy__is_merged_and_null_unsets(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        services.tenant_update(policy={"threshold": 0.5, "enabled": True})
        services.tenant_update(policy={"threshold": None, "keep_tool_results": 1})
        assert selectors.tenant_get().policy == {"enabled": True, "keep_tool_results": 1}


def test_tenant_update__bad_policy__names_the_field_and_changes_nothing(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        with pytest.raises(services.TenantError) as raised:
            services.tenant_update(policy={"threshold": 7})
        assert raised.value.attr == "policy.threshold"
        assert selectors.tenant_get().policy == {}


def test_summarizer_set__key__is_stored_encrypted_and_read_back_in_scope_only(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        services.summarizer_set({"model": "gpt-4o", "api_key": "sk-secret"})
        stored = selectors.tenant_get()
        assert b"sk-secret" not in bytes(stored.summarizer_key or b"")
        assert "api_key" not in stored.summarizer
        assert selectors.summarizer_secret(selectors.tenant_get()) == "sk-secret"
    with pytest.raises(ValueError, match="scope"):
        selectors.summarizer_secret(stored)


def test_summarizer_set__new_base_url_without_a_key__drops_the_key(tenant: Any) -> None:
    with tenant_scope(tenant.id):
        services.summarizer_set({"api_base": "https://a.example/v1", "api_key": "sk-secret"})
        services.summarizer_set({"model": "gpt-4o"})
        assert selectors.summarizer_secret(selectors.tenant_get()) == "sk-secret"
        services.summarizer_set({"api_base": "https://b.example/v1"})
        assert selectors.summarizer_secret(selectors.tenant_get()) is None


def test_summarizer_check__address_inside_the_network__is_refused(settings: Any) -> None:
    settings.ALLOW_LOCAL_MODEL_URLS = False
    with pytest.raises(services.TenantError) as raised:
        services.summarizer_check({"api_base": "https://127.0.0.1/v1"})
    assert raised.value.attr == "summarizer.api_base"


def test_tenant_set_status__suspended__once(tenant: Any) -> None:
    with platform_scope():
        assert services.tenant_set_status(tenant.id, Tenant.Status.SUSPENDED)
        assert not services.tenant_set_status(tenant.id, Tenant.Status.SUSPENDED)


def test_tenant_set_limits__overrides__are_merged(tenant: Any) -> None:
    with platform_scope():
        services.tenant_set_limits(tenant.id, {"requests_per_minute": 5, "conversations": 7})
        changed = services.tenant_set_limits(tenant.id, {"requests_per_minute": None})
        assert changed.limits == {"conversations": 7}
        with pytest.raises(services.TenantError, match="no such limit"):
            services.tenant_set_limits(tenant.id, {"requests": 5})


def test_limits_of__overrides__beside_defaults() -> None:
    limits = limits_of({"monthly_budget": 12.5, "conversations": 3, "from_a_newer_version": 1})
    assert limits == Limits(monthly_budget=Decimal("12.5"), conversations=3)


@pytest.mark.parametrize("value", [0, -1, True, "5", 2**60, 1.5])
def test_check__limit_that_is_not_a_number_in_range__names_it(value: Any) -> None:
    with pytest.raises(LimitError) as raised:
        check({"conversations": value})
    assert raised.value.field == "conversations"

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tenants import services
from tenants.models import ApiKey, Tenant
from tenants.scope import platform_scope


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    with platform_scope():
        client.force_login(get_user_model().objects.create_superuser(f"root-{uuid4()}", password="x"))
    return client


def test_admin__nobody_logged_in__asks_to(db: None) -> None:
    assert Client().get("/admin/tenants/tenant/").status_code == 302


@pytest.mark.parametrize("model", ["tenant", "apikey", "platformkey"])
def test_admin__lists__show_all_tenants(staff: Client, tenant: Any, stranger: Any, model: str) -> None:
    with platform_scope():
        services.platform_key_create("ops")
    page = staff.get(f"/admin/tenants/{model}/")
    assert page.status_code == 200
    if model == "tenant":
        assert tenant.tenant.name in page.content.decode()
        assert stranger.tenant.name in page.content.decode()


def test_admin__suspended_by_hand__is_stored(staff: Client, tenant: Any) -> None:
    path = f"/admin/tenants/tenant/{tenant.id}/change/"
    form = {"name": tenant.tenant.name, "status": "suspended", "weight": 1, "policy": "{}", "summarizer": "{}",
            "limits": "{}", "retention_days": ""}  # fmt: skip
    assert staff.get(path).status_code == 200
    assert staff.post(path, form).status_code == 302
    with platform_scope():
        assert Tenant.objects.get(id=tenant.id).status == "suspended"


def test_admin__key__shows_no_digest(staff: Client, tenant: Any) -> None:
    with platform_scope():
        key = ApiKey.unscoped.filter(tenant_id=tenant.id)[0]
    page = staff.get(f"/admin/tenants/apikey/{key.id}/change/")
    assert page.status_code == 200
    assert "digest" not in page.content.decode()

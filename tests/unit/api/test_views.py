from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from rest_framework.response import Response

from compaction_service.api.cache import client as redis_client
from compaction_service.api.throttling import TenantThrottle
from compaction_service.api.views import TenantView
from tenants import services
from tenants.scope import platform_scope


@pytest.fixture(autouse=True)
def _throttle() -> Iterator[None]:
    yield
    TenantThrottle._ask_after = 0.0
    redis_client.cache_clear()


def test_handler__runs__in_the_tenants_scope(client: Client, tenant: Any) -> None:
    assert client.get("/work").json() == {"tenant": str(tenant.id), "keys": 2}


def test_handler__raises__rolls_back(client: Client) -> None:
    assert client.generic("POST", "/work?then=raise").status_code == 422
    assert client.get("/work").json()["keys"] == 2


def test_handler__of_its_own_transactions__holds_none_while_it_waits(client: Client) -> None:
    assert client.generic("POST", "/wait").json() == {"outside": False, "inside": True, "after": False}


def test_head__view_with_get__answers_without_a_body(client: Client) -> None:
    response = client.head("/work")
    assert (response.status_code, response.content) == (200, b"")


def test_scope__too_small__is_a_403_that_names_it(tenant: Any) -> None:
    client = Client(headers={"Authorization": f"Bearer {tenant.read_key}"})
    response = client.generic("POST", "/work")
    assert response.status_code == 403
    assert "write" in response.json()["errors"][0]["detail"]
    assert client.get("/work").status_code == 200


def test_tenant_view__method_without_a_scope__cannot_be_defined() -> None:
    with pytest.raises(TypeError, match="post"):

        class _Forgetful(TenantView):
            scopes = {"GET": "read"}

            def get(self, _request: Any) -> Response:
                return Response()

            def post(self, _request: Any) -> Response:
                return Response()


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "nonsense", "*/*"])
def test_answer__any_accept__is_json(client: Client, accept: str) -> None:
    response = client.get("/work?format=xml", headers={"Accept": accept})
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert "Vary" not in response.headers


def test_throttle__limit_used_up__is_a_429_until_the_next_minute(client: Client, tenant: Any) -> None:
    with platform_scope():
        services.tenant_set_limits(tenant.id, {"requests_per_minute": 3})
    responses = [client.get("/work") for _ in range(7)]  # more than two windows' worth, should a minute end meanwhile
    assert responses[0].status_code == 200
    assert responses[-1].status_code == 429
    assert 1 <= int(responses[-1].headers["Retry-After"]) <= 60
    assert responses[-1].json()["errors"][0]["code"] == "throttled"


def test_throttle__cache_away__lets_everything_through(client: Client, tenant: Any, settings: Any) -> None:
    settings.CACHE_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    with platform_scope():
        services.tenant_set_limits(tenant.id, {"requests_per_minute": 1})
    assert [client.get("/work").status_code for _ in range(3)] == [200, 200, 200]


def test_platform_view__platform_key__sees_all_tenants(tenant: Any, stranger: Any, anonymous: Client) -> None:
    with platform_scope():
        secret = services.platform_key_create("ops")
    response = anonymous.get("/v1/admin/keys", headers={"Authorization": f"Bearer {secret}"})
    assert response.json()["asker"] == "platform key:ops"
    assert response.json()["keys"] >= 4


def test_platform_view__tenants_key__is_a_401(client: Client) -> None:
    assert client.get("/v1/admin/keys").status_code == 401


def test_tenant_view__platform_key__is_a_401(anonymous: Client, db: None) -> None:
    with platform_scope():
        secret = services.platform_key_create("ops")
    assert anonymous.get("/work", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_platform_view__superusers_session__works(anonymous: Client, db: None) -> None:
    name = f"root-{id(anonymous)}"
    with platform_scope():
        get_user_model().objects.filter(username=name).delete()
        user = get_user_model().objects.create_superuser(name, password="x")
        anonymous.force_login(user)
    response = anonymous.get("/v1/admin/keys")
    assert (response.status_code, response.json()["asker"]) == (200, f"staff:{name}")

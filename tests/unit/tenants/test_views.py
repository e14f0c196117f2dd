from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from tenants import services
from tenants.models import ApiKey, Tenant
from tenants.scope import platform_scope, tenant_scope


def _client(key: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {key}"}, raise_request_exception=False)


@pytest.fixture
def client(tenant: Any) -> Client:
    return _client(tenant.key)


def _patch(client: Client, **fields: Any) -> Any:
    return client.patch("/v1/tenant", fields, content_type="application/json")


def _errors(response: Any) -> list[tuple[str, str | None]]:
    return [(error["code"], error["attr"]) for error in response.json()["errors"]]


def test_tenant_get__key__shows_its_own_tenant(client: Client, tenant: Any) -> None:
    body = client.get("/v1/tenant").json()
    assert (body["id"], body["name"]) == (str(tenant.id), tenant.tenant.name)
    assert body["limits"]["compactions_in_flight"] == 64
    assert body["summarizer"]["api_key_set"] is False


def test_tenant_update__all_settings__are_stored_and_the_key_is_not_shown(client: Client) -> None:
    response = _patch(
        client,
        policy={"threshold": 0.5},
        summarizer={"model": "openai/x", "api_key": "sk-secret", "extra_headers": {"X-Team": "a"}},
        redaction=True,
        retention_days=30,
    )
    assert response.status_code == 200
    assert b"sk-secret" not in response.content
    body = client.get("/v1/tenant").json()
    assert body["policy"] == {"threshold": 0.5}
    assert body["summarizer"]["api_key_set"] is True
    assert (body["redaction"], body["retention_days"]) == (True, 30)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"policy": {"threshold": 2}}, ("invalid", "policy.threshold")),
        ({"policy": {"threshhold": 0.5}}, ("unknown_field", "policy.threshhold")),
        ({"policy": {"instructions": "\0"}}, ("unstorable", "policy")),
        ({"policy": [1]}, ("not_object", "policy")),
        ({"limits": {"conversations": 1}}, ("read_only", "limits")),
        ({"summarizer": {"modle": "x"}}, ("unknown_field", "summarizer.modle")),
        ({"summarizer": {"api_base": "ftp://example.org"}}, ("invalid", "summarizer.api_base")),
        ({"summarizer": {"extra_headers": {"a\r\nb": "c"}}}, ("header", "summarizer.extra_headers")),
        ({"summarizer": {"model": "oobabooga/http://169.254.169.254/latest"}}, ("invalid", "summarizer.model")),
        ({"summarizer": {"model": "openai/https://169.254.169.254/v1"}}, ("invalid", "summarizer.model")),
        ({"summarizer": {"model": "ollama/llama3"}}, ("invalid", "summarizer.model")),
        ({"summarizer": {"fallback_models": ["x", "bedrock/x"]}}, ("invalid", "summarizer.fallback_models.1")),
        ({"policy": {"summarizer_model": "sagemaker/x"}}, ("invalid", "policy.summarizer_model")),
        ({"policy": {"fallback_models": ["x", "http://127.0.0.1"]}}, ("invalid", "policy.fallback_models.1")),
        ({"retention_days": 0}, ("min_value", "retention_days")),
    ],
)
def test_tenant_update__bad_field__is_a_400_that_names_it(client: Client, fields: Any, expected: Any) -> None:
    response = _patch(client, **fields)
    assert response.status_code == 400
    assert response.json()["type"] == "validation_error"
    assert _errors(response) == [expected]


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "authorization", "X-API-Key", "x-goog-api-key", "Host", "Content-Length", "Content_Length"),
        *("CONTENT-TYPE", "Content-Encoding", "Transfer-Encoding", "Accept-Encoding", "Connection", "Keep-Alive", "TE"),
        *("Trailer", "Upgrade", "HTTP2-Settings", "Expect", "Cookie", "Proxy-Authorization", "Proxy-Connection"),
    ],
)
def test_tenant_update__header_that_is_the_clients_own__is_a_400_that_names_it(client: Client, name: str) -> None:
    response = _patch(client, summarizer={"extra_headers": {"X-Team": "a", name: "5"}})
    assert (response.status_code, _errors(response)) == (400, [("reserved", "summarizer.extra_headers")])
    assert name in response.json()["errors"][0]["detail"]
    assert client.get("/v1/tenant").json()["summarizer"]["extra_headers"] == {}


def test_tenant_update__one_bad_field_of_two__changes_nothing(client: Client) -> None:
    assert _patch(client, summarizer={"model": "x"}, policy={"threshold": 9}).status_code == 400
    assert client.get("/v1/tenant").json()["summarizer"]["model"] is None


def test_tenant_update__read_key__is_a_403(tenant: Any) -> None:
    response = _patch(_client(tenant.read_key), redaction=True)
    assert (response.status_code, _errors(response)) == (403, [("permission_denied", None)])


def test_api_keys__create_list_rotate_revoke__works(client: Client) -> None:
    made = client.post("/v1/api-keys", {"scopes": ["read"], "name": "ci"}, content_type="application/json")
    assert made.status_code == 201
    assert _client(made.json()["key"]).get("/v1/tenant").status_code == 200
    listed = client.get("/v1/api-keys?limit=1").json()
    assert (listed["data"][0]["id"], "key" in listed["data"][0]) == (made.json()["id"], False)
    path = f"/v1/api-keys/{made.json()['id']}"
    rotated = client.post(f"{path}/rotate", {"overlap_seconds": 0}, content_type="application/json")
    assert rotated.status_code == 201
    assert _client(made.json()["key"]).get("/v1/tenant").status_code == 401
    path = f"/v1/api-keys/{rotated.json()['id']}"
    assert [client.delete(path).status_code, client.delete(path).status_code] == [204, 404]
    assert _client(rotated.json()["key"]).get("/v1/tenant").status_code == 401


def test_api_keys__list__cursor_walks_all_newest_first(client: Client, tenant: Any) -> None:
    with tenant_scope(tenant.id):
        expected = [str(services.key_create(["read"]).key.id) for _ in range(5)][::-1]
    seen: list[str] = []
    url = "/v1/api-keys?limit=2"
    while True:
        page = client.get(url).json()
        seen += [row["id"] for row in page["data"]]
        if page["next_cursor"] is None:
            break
        url = f"/v1/api-keys?limit=2&cursor={page['next_cursor']}"
    assert seen[:5] == expected
    assert len(seen) == len(set(seen)) == 7


def test_api_keys__of_another_tenant__are_not_found(client: Client, stranger: Any) -> None:
    with tenant_scope(stranger.id):
        foreign = services.key_create(["read"])
    assert client.delete(f"/v1/api-keys/{foreign.key.id}").status_code == 404
    assert client.post(f"/v1/api-keys/{foreign.key.id}/rotate", {}, "application/json").status_code == 404
    assert client.delete(f"/v1/api-keys/{uuid4()}").status_code == 404
    assert str(foreign.key.id) not in client.get("/v1/api-keys").content.decode()


def test_api_keys__expiry_in_the_past__is_a_400(client: Client) -> None:
    fields = {"scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}
    response = client.post("/v1/api-keys", fields, content_type="application/json")
    assert _errors(response) == [("invalid", "expires_at")]


def test_api_keys__repeated_with_an_idempotency_key__gives_the_same_secret_and_keeps_it_encrypted(
    client: Client, tenant: Any
) -> None:
    def post() -> Any:
        return client.post(
            "/v1/api-keys", {"scopes": ["read"]}, content_type="application/json", headers={"Idempotency-Key": "k"}
        )

    first, second = post(), post()
    assert second.headers["Idempotency-Replayed"] == "true"
    assert first.content == second.content
    with tenant_scope(tenant.id):
        from compaction_service.api.models import IdempotencyKey

        assert first.json()["key"] not in IdempotencyKey.objects.get().body
        assert ApiKey.objects.count() == 3


def test_any_request__suspended_tenant__is_a_403(client: Client, tenant: Any) -> None:
    with platform_scope():
        services.tenant_set_status(tenant.id, Tenant.Status.SUSPENDED)
    response = client.get("/v1/tenant")
    assert (response.status_code, _errors(response)) == (403, [("tenant_suspended", None)])


def test_any_request__key_used_twice_in_a_minute__is_noted_once(tenant: Any, client: Client) -> None:
    def used() -> Any:
        with tenant_scope(tenant.id):
            return ApiKey.objects.get(name="full").last_used_at

    assert used() is None
    client.get("/v1/tenant")
    first = used()
    client.get("/v1/tenant")
    assert first is not None
    assert used() == first

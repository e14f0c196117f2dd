"""`/v1/admin` beside tenants: the registry, and the log over all tenants."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from compaction_service.api.models import IdempotencyKey
from tenants import keys, services
from tenants.models import Tenant
from tenants.scope import PLATFORM, platform_scope
from tests.conftest import Member
from tests.contract.document import check_answer, document, operation, operations
from tests.contract.test_access import _client, _things

JSON = "application/json"


@pytest.fixture
def platform(db: None) -> Client:
    with platform_scope():
        return _client(services.platform_key_create("test"))


def _patch(client: Client, path: str, body: Any) -> Any:
    return client.patch(path, json.dumps(body), content_type=JSON)


def test_models__overridden_and_cleared__are_seen_by_tenants(platform: Client, tenant: Member) -> None:
    name = f"house/model-{uuid4().hex}"
    made = _patch(platform, f"/v1/admin/models/{name}", {"context_window": 9000, "tokenizer": "o200k_base"})
    check_answer(operation("admin_models_override"), made.status_code, made.json())
    assert (made.status_code, made.json()["context_window"]) == (200, 9000)
    seen = _client(tenant.key).get(f"/v1/models/{name}").json()
    assert (seen["context_window"], seen["source"]) == (9000, "override")
    assert platform.delete(f"/v1/admin/models/{name}").status_code == 204
    assert platform.delete(f"/v1/admin/models/{name}").status_code == 404


@pytest.mark.parametrize("body", [{"context_window": 0}, {"tokenizer": "none"}, {"window": 1}, {"factor": "1"}])
def test_models__bad_override__is_a_400(platform: Client, body: Any) -> None:
    refused = _patch(platform, "/v1/admin/models/gpt-4o", body)
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, next(iter(body)))


def test_models__sync__tells_what_it_did(platform: Client) -> None:
    done = platform.post("/v1/admin/models/sync")
    check_answer(operation("admin_models_sync"), done.status_code, done.json())
    assert done.json()["same"] > 1000


def test_compactions__of_all_tenants__are_listed_without_texts(
    platform: Client, tenant: Member, stranger: Member
) -> None:
    ids = {str(member.id): _things(member)["compaction_id"] for member in (tenant, stranger)}
    page = platform.get("/v1/admin/compactions?limit=250&outcome=skipped").json()
    check_answer(operation("admin_compactions_list"), 200, page)
    found = {row["tenant"]: row["id"] for row in page["data"]}
    assert ids.items() <= found.items()
    of_one = platform.get(f"/v1/admin/compactions?tenant={tenant.id}").json()["data"]
    assert [row["id"] for row in of_one] == [ids[str(tenant.id)]]
    assert platform.get("/v1/admin/compactions?tenant=x").status_code == 400
    assert platform.get("/v1/admin/compactions?status=x").status_code == 400


def test_summaries__of_all_tenants__are_listed_without_texts(
    platform: Client, tenant: Member, stranger: Member
) -> None:
    things = {str(member.id): _things(member) for member in (tenant, stranger)}
    page = platform.get("/v1/admin/summaries?limit=250&state=stale").json()
    check_answer(operation("admin_summaries_list"), 200, page)
    found = {row["tenant"]: row["id"] for row in page["data"]}
    assert {one: names["summary_id"] for one, names in things.items()}.items() <= found.items()
    assert not {"text", "sections", "entities"} & page["data"][0].keys()
    of_one = platform.get(f"/v1/admin/summaries?conversation={things[str(tenant.id)]['ref']}").json()["data"]
    assert [row["tenant"] for row in of_one] == [str(tenant.id)]
    for wrong in ("tenant=x", "conversation=1", "state=x", "created_after=x"):
        refused = platform.get(f"/v1/admin/summaries?{wrong}")
        assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, wrong.partition("=")[0])


@pytest.mark.parametrize("kind", ["compaction", "summary"])
def test_entry_or_node__of_any_tenant__is_whole_and_the_look_is_told_to_its_tenant(
    platform: Client, tenant: Member, kind: str
) -> None:
    plural = {"compaction": "compactions", "summary": "summaries"}[kind]
    identifier = _things(tenant)[f"{kind}_id"]
    seen = platform.get(f"/v1/admin/{plural}/{identifier}").json()
    check_answer(operation(f"admin_{plural}_get"), 200, seen)
    assert seen.pop("tenant") == str(tenant.id)
    assert seen == _client(tenant.key).get(f"/v1/{plural}/{identifier}").json()
    looks = _client(tenant.key).get("/v1/audit?action=content.viewed").json()["data"]
    platforms = [one for one in looks if one["actor"].startswith("platform key:")]
    assert [one["target"] for one in platforms] == [f"{kind}:{identifier}"]
    assert platform.get(f"/v1/admin/{plural}/{uuid4()}").status_code == 404


def _post(client: Client, path: str, body: Any, key: str) -> Any:
    return client.post(path, json.dumps(body), content_type=JSON, headers={"Idempotency-Key": key})


def test_tenants__first_key_cannot_be_stored__no_tenant_is_left(
    platform: Client, tenant: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = keys.prefix_of(tenant.key, keys.TENANT)
    monkeypatch.setattr("secrets.token_hex", lambda _bytes: taken)  # the prefix is unique, and this one is in use
    name, key = f"half-{uuid4()}", uuid4().hex
    assert _post(platform, "/v1/admin/tenants", {"name": name}, key).status_code == 500
    with platform_scope():
        assert not Tenant.objects.filter(name=name).exists()
    monkeypatch.undo()
    assert _post(platform, "/v1/admin/tenants", {"name": name}, key).status_code == 201


def test_tenants__created_twice_with_one_key__are_one_and_the_answer_is_the_same(platform: Client) -> None:
    body, key = {"name": f"once-{uuid4()}"}, uuid4().hex
    first, again = (_post(platform, "/v1/admin/tenants", body, key) for _ in range(2))
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert _client(again.json()["key"]).get("/v1/tenant").status_code == 200
    other = _post(platform, "/v1/admin/tenants", {"name": f"two-{uuid4()}"}, key)
    assert (other.status_code, other.json()["errors"][0]["code"]) == (409, "idempotency_conflict")
    elsewhere = _post(platform, "/v1/admin/models/sync", {}, key)
    assert (elsewhere.status_code, elsewhere.json()["errors"][0]["code"]) == (409, "idempotency_conflict")


def test_idempotency__key_of_the_platform__is_not_a_tenants(platform: Client, tenant: Member) -> None:
    key = uuid4().hex
    assert _post(platform, "/v1/admin/models/sync", {}, key).status_code == 200
    made = _post(_client(tenant.key), "/v1/api-keys", {"scopes": ["read"]}, key)
    assert (made.status_code, "Idempotency-Replayed" in made.headers) == (201, False)


def test_idempotency__answers_with_a_secret__are_stored_encrypted(platform: Client, tenant: Member) -> None:
    own = _client(tenant.key)
    key_id = own.get("/v1/api-keys").json()["data"][0]["id"]
    asked = {
        "admin_tenants_create": (platform, "/v1/admin/tenants", {"name": f"kept-{uuid4()}"}),
        "api_keys_create": (own, "/v1/api-keys", {"scopes": ["read"]}),
        "api_keys_rotate": (own, f"/v1/api-keys/{key_id}/rotate", {}),
    }
    assert asked.keys() == {one.id for one in operations() if one.method == "POST" and _shows_a_key(one.body)}
    for client, path, body in asked.values():
        key = uuid4().hex
        secret = _post(client, path, body, key).json()["key"]
        with platform_scope():
            owner = PLATFORM if client is platform else tenant.id
            row = IdempotencyKey.unscoped.get(tenant_id=owner, key=key)
        assert (row.encrypted, secret in row.body, secret[-43:] in row.body) == (True, False, False), path


def _shows_a_key(body: dict[str, Any]) -> bool:
    answers = [answer["content"][JSON]["schema"] for status, answer in body["responses"].items() if status < "300"]
    names = [schema.get("$ref", "").rpartition("/")[2] for schema in answers]
    return any("key" in document()["components"]["schemas"].get(name, {}).get("properties", {}) for name in names)

"""Every operation of the document: reachable, and closed to whoever may not use it."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from compaction_service.compactions.models import Compaction, Summary
from compaction_service.conversations.models import Conversation
from tenants import services
from tenants.models import ApiKey, AuditEvent, Scope
from tenants.scope import TenantModel, platform_scope, tenant_scope
from tests.conftest import Member
from tests.contract.document import JSON_TYPE, Operation, check_answer, operations

ALL = operations()
IDS = [one.id for one in ALL]
OF_A_TENANT = [one for one in ALL if not one.path.startswith("/v1/admin")]
# What a path names that belongs to a tenant. A model's name belongs to nobody.
OWNED = [one for one in OF_A_TENANT if "{" in one.path and "{name}" not in one.path]


def _client(key: str | None) -> Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return Client(headers=headers, raise_request_exception=False)


def _request(client: Client, one: Operation, names: dict[str, str]) -> Any:
    """The operation with its own example for a body."""
    path = one.path.format(**names)
    if needed := [p["name"] for p in one.parameters if p["in"] == "query" and p.get("required")]:
        path += "?" + "&".join(f"{name}=1" for name in needed)
    if "requestBody" not in one.body:
        return client.generic(one.method, path)
    media = one.body["requestBody"]["content"][JSON_TYPE]
    example = next(iter(media["examples"].values()))["value"]
    return client.generic(one.method, path, json.dumps(example), content_type=JSON_TYPE)


def _things(member: Member) -> dict[str, str]:
    """One of everything a path may name, of this tenant."""
    asked = {"model": "gpt-4o", "external_id": f"x-{uuid4()}", "messages": [{"role": "user", "content": "hello"}]}
    made = _client(member.key).post("/v1/conversations", asked, content_type=JSON_TYPE)
    now = timezone.now()
    with tenant_scope(member.id):
        conversation = Conversation.objects.get(id=made.json()["id"])
        compaction = Compaction.objects.create(
            conversation=conversation, status="succeeded", outcome="skipped", trigger="manual", requested_by="test",
            strategy="sliding", policy={}, finished_at=now,
        )  # fmt: skip
        summary = Summary.objects.create(
            conversation=conversation, compaction=compaction, from_position=1, to_position=2, from_turn=1, to_turn=1,
            text="", tokens=1, chars=1, method="extractive", state="stale",
        )  # fmt: skip
        key = services.key_create([Scope.READ]).key
    return {
        "ref": str(conversation.id),
        "position": "1",
        "compaction_id": str(compaction.id),
        "summary_id": str(summary.id),
        "key_id": str(key.id),
        "tenant_id": str(member.id),
        "name": "gpt-4o",
    }


def _rows(member: Member) -> dict[str, int]:
    with tenant_scope(member.id):
        models = [model for model in apps.get_models() if issubclass(model, TenantModel) and model is not AuditEvent]
        return {model._meta.label: model.objects.count() for model in models}


def _checked(response: Any, one: Operation, status: int) -> None:
    assert response.status_code == status, (one.id, response.content)
    check_answer(one, status, response.json())


@pytest.mark.parametrize("one", ALL, ids=IDS)
def test_operation__no_key__is_a_401(db: None, one: Operation) -> None:
    names = dict.fromkeys(["ref", "compaction_id", "summary_id", "key_id", "tenant_id"], str(uuid4()))
    _checked(_request(_client(None), one, {**names, "position": "1", "name": "x"}), one, 401)


@pytest.mark.parametrize("one", OF_A_TENANT, ids=[one.id for one in OF_A_TENANT])
def test_operation__own_things__is_reached_and_answers_as_documented(tenant: Member, one: Operation) -> None:
    response = _request(_client(tenant.key), one, _things(tenant))
    assert response.status_code not in (401, 403, 405, 415, 500), (one.id, response.content)
    body = response.json() if response.headers.get("Content-Type") == JSON_TYPE and response.content else None
    check_answer(one, response.status_code, body)


@pytest.mark.parametrize("one", OWNED, ids=[one.id for one in OWNED])
def test_operation__things_of_another_tenant__is_a_404_and_changes_nothing(
    tenant: Member, stranger: Member, one: Operation
) -> None:
    names = _things(stranger)
    before = _rows(tenant), _rows(stranger)
    _checked(_request(_client(tenant.key), one, names), one, 404)
    with tenant_scope(stranger.id):
        external = Conversation.objects.get(id=names["ref"]).external_id
        assert not ApiKey.objects.get(id=names["key_id"]).revoked_at
    if "{ref}" in one.path:
        _checked(_request(_client(tenant.key), one, {**names, "ref": f"ext:{external}"}), one, 404)
    assert (_rows(tenant), _rows(stranger)) == before


@pytest.mark.parametrize("one", OF_A_TENANT, ids=[one.id for one in OF_A_TENANT])
def test_operation__read_key__may_read_and_nothing_else(tenant: Member, one: Operation) -> None:
    names = _things(tenant)
    before = _rows(tenant)
    response = _request(_client(tenant.read_key), one, names)
    reads = (
        one.method == "GET" and "/api-keys" not in one.path and "/audit" not in one.path
    ) or one.id == "tokens_count"
    if reads:
        assert response.status_code != 403, one.id
    else:
        _checked(response, one, 403)
    assert _rows(tenant) == before


PLATFORM = [one for one in ALL if one not in OF_A_TENANT]


@pytest.mark.parametrize("one", PLATFORM, ids=[one.id for one in PLATFORM])
def test_platform_operation__key_of_a_tenant__is_a_401(tenant: Member, one: Operation) -> None:
    _checked(_request(_client(tenant.key), one, _things(tenant)), one, 401)


@pytest.fixture
def platform(db: None) -> Client:
    """The API as the platform sees it."""
    with platform_scope():
        return _client(services.platform_key_create("test"))


def test_platform__create_suspend_and_limit_a_tenant__holds_for_its_key(platform: Client) -> None:
    body = {"name": f"made-{uuid4()}", "limits": {"requests_per_minute": 1000}, "weight": 2}
    made = platform.post("/v1/admin/tenants", body, content_type=JSON_TYPE)
    assert made.status_code == 201
    path, own = f"/v1/admin/tenants/{made.json()['id']}", _client(made.json()["key"])
    assert own.get("/v1/tenant").json()["limits"]["requests_per_minute"] == 1000
    changed = platform.patch(path, {"status": "suspended", "limits": {"max_body_bytes": 2048}}, content_type=JSON_TYPE)
    assert (changed.json()["status"], changed.json()["limits"]["requests_per_minute"]) == ("suspended", 1000)
    refused = own.get("/v1/tenant")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (403, "tenant_suspended")
    platform.patch(path, {"status": "active", "weight": 3}, content_type=JSON_TYPE)
    assert own.get("/v1/tenant").json()["limits"]["max_body_bytes"] == 2048
    assert platform.get(path).json()["weight"] == 3
    assert made.json()["id"] in [row["id"] for row in platform.get("/v1/admin/tenants").json()["data"]]


def test_platform__name_in_use__is_a_409(platform: Client, tenant: Member) -> None:
    response = platform.post("/v1/admin/tenants", {"name": tenant.tenant.name}, content_type=JSON_TYPE)
    assert (response.status_code, response.json()["errors"][0]["attr"]) == (409, "name")


@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"limits": {"conversations": 0}}, "limits.conversations"),
        ({"limits": {"nonsense": 1}}, "limits.nonsense"),
        ({"limits": 7}, "limits"),
        ({"status": "gone"}, "status"),
        ({"weight": 0}, "weight"),
        ({"name": "new"}, "name"),
    ],
)
def test_platform__bad_change__is_a_400_that_names_it_and_changes_nothing(
    platform: Client, tenant: Member, body: dict[str, Any], attr: str
) -> None:
    path = f"/v1/admin/tenants/{tenant.id}"
    before = platform.get(path).json()
    response = platform.patch(path, {"status": "suspended", **body}, content_type=JSON_TYPE)
    assert (response.status_code, response.json()["errors"][0]["attr"]) == (400, attr)
    assert platform.get(path).json() == before


def test_platform__tenant_of_none__is_a_404(platform: Client) -> None:
    path = f"/v1/admin/tenants/{uuid4()}"
    assert platform.get(path).status_code == 404
    assert platform.patch(path, {"weight": 2}, content_type=JSON_TYPE).status_code == 404

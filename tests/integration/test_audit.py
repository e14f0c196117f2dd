"""The audit trail: who looked, changed, reverted and erased, by key, staff and the service; and no word of content."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from compaction_service.conversations import retention
from tenants import services
from tenants.models import AuditEvent, Member, PlatformKey
from tenants.scope import PLATFORM, platform_scope
from tests.footprint import rows_of
from tests.inprocess import Service

JSON = "application/json"
TURN = [{"role": role, "content": "the zebra crossed " * 60} for role in ("user", "assistant")]


def _trail(service: Service, **params: str) -> list[Any]:
    """Oldest first: action, actor, target, changed."""
    query = "&".join(f"{name}={value}" for name, value in {"limit": "250", **params}.items())
    found = service.get(f"audit?{query}")["data"]
    return [(one["action"], one["actor"], one["target"], one["changed"]) for one in reversed(found)]


def test_trail__reads_and_writes_by_a_key__tells_who_did_what(service: Service) -> None:
    path = service.create(external_id=f"zebra-{uuid4()}", messages=TURN * 4)
    row = service.get(path)
    of = f"conversation:{row['id']}"
    service.get(f"conversations/ext:{row['external_id']}/messages")
    service.get(f"{path}/messages")  # the same look again
    service.context(path)  # the agent's own work
    compaction = service.compact(path)
    service.post(f"compactions/{compaction['id']}/revert", status=200)
    service.patch("tenant", {"policy": {"threshold": 0.7}, "retention_days": 9})
    service.patch(path, {"policy": {"threshold": 0.7}, "metadata": {"zebra": "zebra"}})
    key = service.post("api-keys", {"name": "x", "scopes": ["read"]})
    service.call("DELETE", f"api-keys/{key['id']}", status=204)
    service.call("DELETE", f"{path}/messages/1")
    service.call("DELETE", path)
    service.get(path, status=404)

    one: tuple[str, str, list[str]] = ("key:full", f"compaction:{compaction['id']}", [])
    assert _trail(service) == [
        ("content.viewed", "key:full", of, []),
        ("content.viewed", *one),
        ("compaction.reverted", *one),
        ("tenant.changed", "key:full", "", ["policy.threshold", "retention_days"]),
        ("conversation.changed", "key:full", of, ["metadata", "policy.threshold"]),
        ("key.created", "key:full", "", []),
        ("key.revoked", "key:full", f"key:{key['id']}", []),
        ("message.erased", "key:full", of, []),
        ("conversation.erased", "key:full", of, []),
    ]
    assert _trail(service, action="key.revoked") == [("key.revoked", "key:full", f"key:{key['id']}", [])]
    assert len(_trail(service, target=of)) == 4
    assert "zebra" not in json.dumps(rows_of(service.tenant_id)["tenants_auditevent"])


def test_trail__staff_and_platform__are_in_the_tenants_own(service: Service) -> None:
    path = service.create(messages=TURN)
    with platform_scope():
        root = User.objects.create(username=f"ann-{uuid4()}", is_staff=True, is_superuser=True)
        key = services.platform_key_create("ops")
        staff = Client()
        staff.force_login(root)
    ident = path.removeprefix("conversations/")
    assert staff.get(f"/admin/conversations/conversation/{ident}/change/").status_code == 200
    platform = Client(headers={"Authorization": f"Bearer {key}"})
    limits = {"limits": {"conversations": 5}}
    where = f"/v1/admin/tenants/{service.tenant_id}"
    assert platform.patch(where, json.dumps(limits), content_type="application/json").status_code == 200
    assert _trail(service) == [
        ("content.viewed", f"staff:{root.username}", f"conversation:{ident}", []),
        ("limits.changed", "platform key:ops", f"tenant:{service.tenant_id}", ["limits.conversations"]),
    ]
    assert staff.get("/admin/tenants/auditevent/").status_code == 200


def test_trail__retention__is_told_as_the_services_work(service: Service, clock: Any) -> None:
    path = service.create(messages=TURN)
    service.patch("tenant", {"retention_days": 1})
    retention.conversations_expire(clock.now())
    assert ("conversation.erased", "service:retention", path.replace("conversations/", "conversation:"), []) in _trail(
        service
    )


def test_trail__refused_and_replayed_requests__are_told_once(service: Service) -> None:
    service.call("DELETE", f"api-keys/{uuid4()}", status=404)
    for _ in range(2):
        service.call("POST", "api-keys", {"scopes": ["read"]}, status=201, **{"Idempotency-Key": "k"})
    assert [one[0] for one in _trail(service)] == ["key.created"]


def _of_platform(target: str) -> list[Any]:
    """Oldest first: action, actor, changed."""
    with platform_scope():
        found = AuditEvent.unscoped.filter(tenant_id=PLATFORM, target=target).order_by("id")
        return list(found.values_list("action", "actor", "changed"))


def _clients() -> tuple[Client, Client, User]:
    with platform_scope():
        root = User.objects.create(username=f"ann-{uuid4()}", is_staff=True, is_superuser=True)
        key = services.platform_key_create("ops")
        staff = Client()
        staff.force_login(root)
    return Client(headers={"Authorization": f"Bearer {key}"}), staff, root


def test_trail__tenant_made_and_deleted__is_told_in_its_own_and_then_in_the_platforms(db: None) -> None:
    platform, staff, _ = _clients()
    made = platform.post("/v1/admin/tenants", {"name": f"gone-{uuid4()}"}, content_type=JSON).json()
    path, of = f"/v1/admin/tenants/{made['id']}", f"tenant:{made['id']}"
    own = Client(headers={"Authorization": f"Bearer {made['key']}"})
    first = own.get("/v1/audit").json()["data"][0]
    assert (first["action"], first["actor"], first["target"]) == ("tenant.created", "platform key:ops", of)
    assert platform.delete(path).status_code == 409  # refused, and so not told
    platform.patch(path, {"status": "suspended"}, content_type=JSON)
    assert platform.delete(path).status_code == 200
    assert _of_platform(of) == [("tenant.deleted", "platform key:ops", [])]
    page = staff.get("/admin/tenants/auditevent/").content.decode()
    assert of in page
    assert "the platform" in page


def test_trail__platform_keys_and_models__are_the_platforms(service: Service) -> None:
    platform, staff, root = _clients()
    secret = StringIO()
    call_command("create_platform_key", "spare", stdout=secret)
    with platform_scope():
        key = PlatformKey.objects.get(prefix=secret.getvalue().split("_")[1])
    staff.post("/admin/tenants/platformkey/", {"action": "revoke", "_selected_action": [str(key.id)]})
    assert _of_platform(f"platform_key:{key.id}") == [
        ("platform_key.created", "command:create_platform_key", []),
        ("platform_key.revoked", f"staff:{root.username}", []),
    ]
    name = f"house/model-{uuid4().hex}"
    platform.patch(f"/v1/admin/models/{name}", {"context_window": 9000}, content_type=JSON)
    platform.delete(f"/v1/admin/models/{name}")
    assert _of_platform(f"model:{name}") == [
        ("model.changed", "platform key:ops", ["context_window"]),
        ("model.cleared", "platform key:ops", []),
    ]
    assert _trail(service) == []


def test_trail__members_of_a_tenant__are_told_to_it(service: Service) -> None:
    _, staff, root = _clients()
    with platform_scope():
        user = User.objects.create(username=f"bob-{uuid4()}", is_staff=True)
    form = {"user": user.pk, "tenant": str(service.tenant_id), "role": "owner"}
    assert staff.post("/admin/tenants/member/add/", form).status_code == 302
    with platform_scope():
        member = Member.unscoped.get(user=user)
    again = staff.post("/admin/tenants/member/add/", form)  # of one tenant at most
    assert (again.status_code, "already exists" in again.content.decode()) == (200, True)
    assert staff.post(f"/admin/tenants/member/{member.id}/delete/", {"post": "yes"}).status_code == 302
    actor, of = f"staff:{root.username}", f"member:{member.id}"
    assert _trail(service) == [
        ("member.changed", actor, of, ["role", "tenant", "user"]),
        ("member.removed", actor, of, []),
    ]
